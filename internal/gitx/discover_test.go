package gitx

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestDiscover(t *testing.T) {
	w := newWorld(t, "sub/dir/x.txt", "x\n")
	bare := filepath.Join(w.home, "bare.git")
	w.sh(w.home, "clone", "-q", "--bare", w.repo, bare)
	odd := filepath.Join(w.home, "new\nline")
	w.sh(w.home, "clone", "-q", w.repo, odd)
	away := filepath.Join(w.home, "away")
	write(t, away, "y.txt", "y\n")
	must(t, os.Symlink(w.repo, filepath.Join(w.home, "link")))
	w.sh(w.repo, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", bare, "mod")
	admin := filepath.Join(w.common, "worktrees", "workspace")
	modDir := filepath.Join(w.common, "modules", "mod")

	tests := []struct {
		name string
		dir  string
		env  []string
		want Location
	}{
		{"top", w.repo, nil, Location{CommonDir: w.common, GitDir: w.common, TopLevel: w.repo}},
		{"subdirectory", filepath.Join(w.repo, "sub/dir"), nil,
			Location{CommonDir: w.common, GitDir: w.common, TopLevel: w.repo}},
		{"symlink", filepath.Join(w.home, "link", "sub"), nil,
			Location{CommonDir: w.common, GitDir: w.common, TopLevel: w.repo}},
		{"linked worktree", w.path, nil, Location{CommonDir: w.common, GitDir: admin, TopLevel: w.path}},
		{"submodule", filepath.Join(w.repo, "mod"), nil,
			Location{CommonDir: modDir, GitDir: modDir, TopLevel: filepath.Join(w.repo, "mod")}},
		{"bare", bare, nil, Location{CommonDir: bare, GitDir: bare, Bare: true}},
		{"newline", filepath.Join(odd, "sub"), nil,
			Location{CommonDir: filepath.Join(odd, ".git"), GitDir: filepath.Join(odd, ".git"), TopLevel: odd}},
		{"below .git", filepath.Join(w.common, "refs"), nil,
			Location{CommonDir: w.common, GitDir: w.common, TopLevel: w.repo}},
		{"hook of another repository", w.home, []string{"GIT_DIR=" + bare},
			Location{CommonDir: bare, GitDir: bare, Bare: true}},
		{"hook at the top", w.repo, []string{"GIT_DIR=.git", "GIT_INDEX_FILE=.git/index"},
			Location{CommonDir: w.common, GitDir: w.common, TopLevel: w.repo}},
		{"hook of a linked worktree", w.path, []string{"GIT_DIR=" + admin},
			Location{CommonDir: w.common, GitDir: admin, TopLevel: w.path}},
		{"post-receive", w.common, []string{"GIT_DIR=."},
			Location{CommonDir: w.common, GitDir: w.common, TopLevel: w.repo}},
		{"separate work tree", away, []string{"GIT_DIR=" + w.common, "GIT_WORK_TREE=" + away},
			Location{CommonDir: w.common, GitDir: w.common, TopLevel: away}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := w.git.Discover(ctx, tt.dir, with(w.environ, tt.env...))
			must(t, err)
			tt.want.Source = cmp.Or(tt.want.TopLevel, tt.want.CommonDir)
			equal(t, "location", got, tt.want)
			if tt.name == "separate work tree" {
				return // nothing in it leads to its repository
			}
			common, err := CommonDirOf(got.Source)
			must(t, err)
			equal(t, "CommonDirOf", common, tt.want.CommonDir)
		})
	}
	if _, err := w.git.Discover(ctx, w.home, w.environ); !errors.Is(err, errNotRepo) {
		t.Errorf("outside of a repository: %v", err)
	}
	if _, err := w.git.Discover(ctx, filepath.Join(w.home, "nowhere"), w.environ); err == nil ||
		errors.Is(err, errNotRepo) {
		t.Errorf("no such directory: %v", err)
	}
	for _, dir := range []string{w.home, filepath.Join(w.repo, "sub"), filepath.Join(w.home, "nowhere")} {
		if got, err := CommonDirOf(dir); !errors.Is(err, errNotRepo) {
			t.Errorf("CommonDirOf(%s): %q, %v", dir, got, err)
		}
	}
}

func TestReadsInASeparateWorkTree(t *testing.T) {
	w := newWorld(t)
	away := filepath.Join(w.home, "away")
	write(t, away, "a.txt", "one\n")
	loc, err := w.git.Discover(ctx, away, with(w.environ, "GIT_DIR="+w.common, "GIT_WORK_TREE="+away))
	must(t, err)
	dirty, err := w.git.IsDirty(ctx, loc.TopLevel)
	must(t, err)
	equal(t, "dirty", dirty, false)
	write(t, away, "a.txt", "two\n")
	dirty, err = w.git.IsDirty(ctx, loc.TopLevel)
	must(t, err)
	equal(t, "dirty", dirty, true)
	head, err := w.git.RevParse(ctx, loc.GitDir, "HEAD^{commit}")
	must(t, err)
	equal(t, "head", head, w.base)
}

func TestDiscoverUntrustedOwner(t *testing.T) {
	w := newWorld(t)
	_, err := w.git.Discover(ctx, w.repo, with(w.environ, "GIT_TEST_ASSUME_DIFFERENT_OWNER=1"))
	var gitErr *commandError
	if errors.Is(err, errNotRepo) || !errors.As(err, &gitErr) {
		t.Errorf("an untrusted owner is told as such: %v", err)
	}
}
