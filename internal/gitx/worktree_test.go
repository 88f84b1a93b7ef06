package gitx

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// Whatever the umask, only its owner may look into a new worktree.
func TestNewWorktreeIsPrivate(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0))
	w := newWorld(t)
	private := func() {
		t.Helper()
		fi, err := os.Stat(w.path)
		must(t, err)
		if fi.Mode().Perm() != 0o700 {
			t.Errorf("the mode is %v", fi.Mode())
		}
	}
	private()
	must(t, os.RemoveAll(w.path))
	added(t)(w.git.AddWorktree(t.Context(), w.common, w.path, branch, "", true))
	private()
	must(t, os.RemoveAll(w.path))
	added(t)(w.git.AddWorktree(t.Context(), w.common, w.path, branch, "", false))
	private()
}

// A .git file may name the repository itself, or something else in it.
func TestWorktreeWhoseGitFileNamesTheRepository(t *testing.T) {
	for _, name := range []string{"", "/modules/sub", "/worktrees/a/b"} {
		w := newWorld(t)
		must(t, os.MkdirAll(w.common+name, 0o700))
		write(t, w.path, ".git", "gitdir: "+w.common+name+"\n")
		_, err := w.git.Worktree(ctx, w.common, w.path, branch)
		if !errors.Is(err, errUnregistered) || !strings.Contains(err.Error(), "its .git file names ") ||
			!strings.HasSuffix(err.Error(), ".git"+name+", which is not a worktree of "+w.common) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestCheckWorktree(t *testing.T) {
	tests := []struct {
		name  string
		spoil func(w *world)
		want  error // nil: passes
		wrong string
	}{
		{"untouched", func(*world) {}, nil, ""},
		{"gone", func(w *world) { must(w.t, os.RemoveAll(w.path)) }, errMissing, ""},
		{"empty directory", func(w *world) {
			must(w.t, os.RemoveAll(w.path))
			must(w.t, os.Mkdir(w.path, 0o700))
		}, errMissing, ""},
		{"deleted and made again", func(w *world) {
			must(w.t, os.RemoveAll(w.path))
			write(w.t, w.path, "a.txt", "x")
		}, errUnregistered, ""},
		{"a repository of its own", func(w *world) {
			must(w.t, os.Remove(filepath.Join(w.path, ".git")))
			w.sh(w.path, "init", "-q")
		}, errUnregistered, ""},
		{"pruned", func(w *world) { must(w.t, os.RemoveAll(filepath.Join(w.common, "worktrees"))) },
			errUnregistered, ""},
		{"moved", func(w *world) {
			moved := w.path + "-moved"
			must(w.t, os.Rename(w.path, moved))
			w.path = moved
		}, errUnregistered, ""},
		{"replaced by a symlink to it", func(w *world) {
			moved := w.path + "-moved"
			must(w.t, os.Rename(w.path, moved))
			must(w.t, os.Symlink(moved, w.path))
		}, errUnregistered, ""},
		{"of another repository", func(w *world) {
			w.sh(w.home, "clone", "-q", w.repo, "other")
			w.common = filepath.Join(w.home, "other", ".git")
		}, errUnregistered, ""},
		{"repository gone", func(w *world) { must(w.t, os.RemoveAll(w.repo)) }, errUnregistered, ""},
		{"on another branch", func(w *world) { w.sh(w.path, "checkout", "-q", "-b", "other") }, nil, "other"},
		{"detached", func(w *world) { w.sh(w.path, "checkout", "-q", "--detach") }, nil, "-"},
		{"HEAD is a symlink", func(w *world) {
			w.sh(w.path, "-c", "core.preferSymlinkRefs=true", "symbolic-ref", "HEAD", "refs/heads/"+branch)
		}, nil, ""},
		{"repository reached by a symlink", func(w *world) {
			must(w.t, os.Symlink(w.repo, filepath.Join(w.home, "alias")))
			w.common = filepath.Join(w.home, "alias", ".git")
		}, nil, ""},
		{"locked", func(w *world) { w.sh(w.repo, "worktree", "lock", w.path) }, nil, ""},
		{"moved by git", func(w *world) {
			moved := w.path + "-moved"
			w.sh(w.repo, "worktree", "move", w.path, moved)
			w.path = moved
		}, nil, ""},
		{"torn .git file", func(w *world) { write(w.t, w.path, ".git", "gitdir") }, errUnregistered, ""},
		{"empty HEAD", func(w *world) { write(w.t, w.common, "worktrees/workspace/HEAD", "") }, nil, "-"},
		{"relative links", func(w *world) {
			admin := filepath.Join(w.common, "worktrees", "workspace")
			there, _ := filepath.Rel(w.path, admin)
			back, _ := filepath.Rel(admin, filepath.Join(w.path, ".git"))
			write(w.t, w.path, ".git", "gitdir: "+there+"\n")
			write(w.t, admin, "gitdir", back+"\n")
		}, nil, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			w.t = t
			tt.spoil(w)
			wt, err := w.git.Worktree(ctx, w.common, w.path, branch)
			switch {
			case tt.wrong != "":
				on := tt.wrong
				if on == "-" {
					on = ""
				}
				if err == nil || !strings.Contains(err.Error(), cmp.Or(on, "detached")) {
					t.Fatalf("got %v", err)
				}
				wt, err = w.git.Worktree(ctx, w.common, w.path, "")
				must(t, err)
				equal(t, "HEAD", wt.Head, on)
			case tt.want != nil:
				if !errors.Is(err, tt.want) {
					t.Fatalf("got %v, want %v", err, tt.want)
				}
			default:
				must(t, err)
				equal(t, "path", wt.Path, w.path)
				equal(t, "admin", wt.AdminDir, filepath.Join(w.repo, ".git", "worktrees", "workspace"))
			}
		})
	}
}

// TestNeverTheEnclosingRepository: the worktree turns into a plain directory between its check and the next command.
func TestNeverTheEnclosingRepository(t *testing.T) {
	w := newWorld(t)
	w.path = filepath.Join(w.repo, "sessions", "workspace")
	added(t)(w.git.AddWorktree(ctx, w.common, w.path, "session/t", w.base, true))
	wt, err := w.git.Worktree(ctx, w.common, w.path, "session/t")
	must(t, err)
	must(t, os.RemoveAll(w.path))
	write(t, w.path, "a.txt", "not the user's\n")
	write(t, w.repo, "users.txt", "the user's\n")
	before := snapshot(t, w.repo)

	for name, do := range map[string]func() error{
		"StageAll": func() error { _, _, err := w.git.StageAll(ctx, wt, w.base); return err },
		"Commit":   func() error { _, _, err := w.commit(ctx, wt, "x", false); return err },
		"CommitTree": func() error {
			_, err := w.git.CommitTree(ctx, wt, TreeCommit{
				Tree:    w.base,
				Parent:  w.base,
				Message: "x",
				Reflog:  "x",
			})
			return err
		},
		"ReadTree":   func() error { return w.git.ReadTree(ctx, wt, w.base, false) },
		"SoftReset":  func() error { return w.git.Reset(ctx, wt, w.base, false) },
		"HardReset":  func() error { return w.git.Reset(ctx, wt, w.base, true) },
		"Clean":      func() error { return w.git.clean(ctx, wt, nil) },
		"RewindTree": func() error { return rewind(w.git, wt, w.base) },
		"AttachHead": func() error { return w.git.AttachHead(ctx, wt, "session/t") },
	} {
		if err := do(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	after := snapshot(t, w.repo)
	for p, content := range before {
		if filepath.Base(p) == "tilth-products" {
			continue
		}
		equal(t, p, after[p], content)
	}
	equal(t, "user's HEAD", w.sh(w.repo, "rev-parse", "main"), w.base)
}

func TestAddAndRemoveWorktree(t *testing.T) {
	for _, kind := range []struct {
		name string
		init []string
		repo func(w *world)
	}{
		{name: "plain"},
		{name: "SHA-256", init: []string{"--object-format=sha256"}},
		{name: "bare", repo: func(w *world) {
			bare := filepath.Join(w.home, "bare.git")
			w.sh(w.home, "clone", "-q", "--bare", w.repo, bare)
			w.repo, w.common = bare, bare
		}},
		{name: "submodule", repo: func(w *world) {
			w.sh(w.home, "init", "-q", "super")
			super := filepath.Join(w.home, "super")
			w.sh(super, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", w.repo, "mod")
			w.repo, w.common = filepath.Join(super, "mod"), filepath.Join(super, ".git", "modules", "mod")
		}},
		{name: "separate git directory", repo: func(w *world) {
			w.sh(w.home, "clone", "-q", "--separate-git-dir", filepath.Join(w.home, "elsewhere"), w.repo, "sep")
			w.repo, w.common = filepath.Join(w.home, "sep"), filepath.Join(w.home, "elsewhere")
		}},
	} {
		t.Run(kind.name, func(t *testing.T) {
			w := newWorldOf(t, kind.init)
			if kind.repo != nil {
				kind.repo(w)
				w.path = filepath.Join(w.home, "wt")
				added(t)(w.git.AddWorktree(ctx, w.common, w.path, "session/t", w.base, true))
			} else {
				w.sh(w.path, "branch", "-q", "-M", "session/t")
			}
			wt, err := w.git.Worktree(ctx, w.common, w.path, "session/t")
			must(t, err)
			write(t, w.path, "b.txt", "b\n")
			tree, _, err := w.git.StageAll(ctx, wt, w.base)
			must(t, err)
			sha, _, err := w.commit(ctx, wt, "x", false)
			must(t, err)
			equal(t, "length of ids", len(sha), len(w.base))
			got, err := w.git.RevParse(ctx, w.common, sha+"^{tree}")
			must(t, err)
			equal(t, "tree", got, tree)
			next, err := w.git.CommitTree(ctx, wt, TreeCommit{
				Tree:    tree,
				Parent:  sha,
				Message: "FAILED\n",
				Reflog:  "tilth: x",
			})
			must(t, err)
			must(t, w.git.Reset(ctx, wt, sha, false))
			must(t, rewind(w.git, wt, w.base))
			_, err = w.git.RevParse(ctx, w.common, next+"^{tree}")
			must(t, err) // the placeholder is still an object
			must(t, w.git.RemoveWorktree(ctx, w.common, w.path))
			equal(t, "worktree exists", exists(w.path), false)
			deleted(t)(w.git.DeleteBranch(ctx, w.common, "session/t"))
			_, ok, err := w.git.BranchTip(ctx, w.common, "session/t")
			must(t, err)
			equal(t, "branch exists", ok, false)
			equal(t, "admin entry", exists(w.common, "worktrees", "wt"), false)
		})
	}
}

func TestAddWorktreeAgain(t *testing.T) {
	w := newWorld(t)
	other := filepath.Join(w.home, "other")
	added(t)(w.git.AddWorktree(ctx, w.common, other, "other", w.base, true))
	must(t, os.RemoveAll(other))
	// Gone, and locked as a `git worktree add` that was killed leaves it.
	w.sh(w.repo, "worktree", "lock", "--reason", "initializing", w.path)
	must(t, os.RemoveAll(w.path))
	added(t)(w.git.AddWorktree(ctx, w.common, w.path, branch, "", true))
	w.wt()
	list, err := w.git.Worktrees(ctx, w.common)
	must(t, err)
	i := slices.IndexFunc(list, func(e WorktreeEntry) bool { return e.Path == other })
	if len(list) != 3 || i < 0 || !list[i].Prunable {
		t.Errorf("the entry of another worktree was dropped: %+v", list)
	}
}

func TestAddWorktreeWithoutFiles(t *testing.T) {
	w := newWorld(t)
	must(t, os.RemoveAll(w.path))
	added(t)(w.git.AddWorktree(ctx, w.common, w.path, branch, "", false))
	entries, err := os.ReadDir(w.path)
	must(t, err)
	equal(t, "entries", len(entries), 1)
	w.wt()
}

func TestAddWorktreeLeavesConfigAlone(t *testing.T) {
	w := newWorld(t)
	w.sh(w.home, "config", "--global", "branch.autoSetupMerge", "always")
	w.sh(w.home, "config", "--global", "checkout.defaultRemote", "origin")
	write(t, w.common, "hooks/post-checkout", "#!/bin/sh\ntouch "+w.home+"/hook-ran\n")
	before := read(t, w.common, "config")
	w.restart(w.leaks()...)
	added(t)(w.git.AddWorktree(ctx, w.common, filepath.Join(w.home, "x y"), "session/x", "main", true))
	equal(t, "config", read(t, w.common, "config"), before)
	equal(t, "hook ran", exists(w.home, "hook-ran"), false)
}

func TestRemoveWorktreeInEveryState(t *testing.T) {
	for name, spoil := range map[string]func(w *world){
		"dirty":      func(w *world) { write(w.t, w.path, "a.txt", "x", "new", "x") },
		"locked":     func(w *world) { w.sh(w.repo, "worktree", "lock", w.path) },
		"gone":       func(w *world) { must(w.t, os.RemoveAll(w.path)) },
		"gone, lock": func(w *world) { w.sh(w.repo, "worktree", "lock", w.path); must(w.t, os.RemoveAll(w.path)) },
		"made again": func(w *world) { must(w.t, os.RemoveAll(w.path)); write(w.t, w.path, "a.txt", "x") },
		"own repository": func(w *world) {
			must(w.t, os.Remove(filepath.Join(w.path, ".git")))
			w.sh(w.path, "init", "-q")
		},
		"torn .git":    func(w *world) { write(w.t, w.path, ".git", "") },
		"torn gitdir":  func(w *world) { write(w.t, w.common, "worktrees/workspace/gitdir", "") },
		"other branch": func(w *world) { w.sh(w.path, "checkout", "-q", "--detach") },
		"read-only": func(w *world) {
			write(w.t, w.path, "ro/x", "x")
			must(w.t, os.Chmod(filepath.Join(w.path, "ro"), 0o555))
		},
		"submodule": func(w *world) {
			w.sh(w.path, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", w.repo, "mod")
		},
		"broken index": func(w *world) { write(w.t, w.common, "worktrees/workspace/index", "x") },
		"stale lock":   func(w *world) { write(w.t, w.common, "worktrees/workspace/index.lock", "x") },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.t = t
			spoil(w)
			must(t, w.git.RemoveWorktree(ctx, w.common, w.path))
			equal(t, "worktree exists", exists(w.path), false)
			equal(t, "entry exists", exists(w.common, "worktrees"), false)
			deleted(t)(w.git.DeleteBranch(ctx, w.common, branch))
			must(t, w.git.RemoveWorktree(ctx, w.common, w.path)) // once more
		})
	}
}

func TestRemoveWorktreeDoesNotFollowSymlinks(t *testing.T) {
	w := newWorld(t)
	must(t, os.RemoveAll(w.path))
	precious := filepath.Join(w.home, "precious")
	write(t, precious, "x", "x")
	must(t, os.Symlink(precious, w.path))
	must(t, w.git.RemoveWorktree(ctx, w.common, w.path))
	equal(t, "link exists", exists(w.path), false)
	equal(t, "what it led to", read(t, precious, "x"), "x")
	equal(t, "entries of it", len(snapshot(t, precious)), 1)
}

func TestRemoveWorktreeUnregistered(t *testing.T) {
	w := newWorld(t)
	plain := filepath.Join(w.home, "plain")
	write(t, plain, "x", "x")
	for _, path := range []string{plain, w.repo, w.home, filepath.Join(w.home, "nowhere")} {
		must(t, w.git.RemoveWorktree(ctx, w.common, path))
	}
	equal(t, "plain directory", read(t, plain, "x"), "x")
	equal(t, "the repository", exists(w.repo, "a.txt"), true)
	must(t, w.git.RemoveWorktree(ctx, filepath.Join(w.home, "gone.git"), w.path))
	equal(t, "a worktree of another repository", exists(w.path, "a.txt"), true)
}

func TestRemoveWorktreeDryRun(t *testing.T) {
	w := newWorld(t)
	must(t, os.Remove(filepath.Join(w.path, ".git")))
	before := snapshot(t, w.home)
	d := dryRun(w.git)
	must(t, d.RemoveWorktree(ctx, w.common, w.path))
	deleted(t)(d.DeleteBranch(ctx, w.common, branch))
	equal(t, "files", len(snapshot(t, w.home)), len(before))
}

func TestDeleteBranchCheckedOutElsewhere(t *testing.T) {
	w := newWorld(t)
	_, err := w.git.DeleteBranch(ctx, w.common, branch)
	var gitErr *commandError
	if !errors.As(err, &gitErr) || !containsAll(err.Error(), "git branch: ", w.path) {
		t.Errorf("got %v", err)
	}
}

func TestDeleteBranchBroken(t *testing.T) {
	w := newWorld(t)
	must(t, w.git.RemoveWorktree(ctx, w.common, w.path))
	write(t, w.common, "refs/heads/"+branch, "")
	write(t, w.common, "packed-refs.lock", "", "config.lock", "", "refs/heads/"+branch+".lock", "")
	deleted(t)(w.git.DeleteBranch(ctx, w.common, branch))
	equal(t, "ref exists", exists(w.common, "refs/heads", branch), false)
}
