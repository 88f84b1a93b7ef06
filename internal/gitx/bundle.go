package gitx

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/text"
)

// Scratch is a repository for a moment, without files, which reads the objects of another one. What is written in it,
// objects and refs, is in no way part of the other, and goes with its directory.
type Scratch struct {
	git *Git
	dir string
}

// NewScratch makes a scratch repository in dir, which must not exist, over the objects of the repository at common.
func (g *Git) NewScratch(common, dir string) (*Scratch, error) {
	s := &Scratch{g, dir}
	if g.dry {
		return s, nil
	}
	config := "[core]\n\trepositoryformatversion = 0\n"
	if usesSHA256(common) {
		config = "[core]\n\trepositoryformatversion = 1\n[extensions]\n\tobjectFormat = sha256\n"
	}
	objects := filepath.Join(common, "objects")
	if strings.Contains(objects, "\n") {
		return nil, errors.New(objects + " cannot be named as an alternate")
	}
	if strings.ContainsAny(objects[:1], `"#`) || strings.ContainsAny(objects, `"\`) {
		objects = `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(objects) + `"`
	}
	files := map[string]string{
		"HEAD": "ref: refs/heads/none\n", "config": config, "objects/info/alternates": objects + "\n",
	}
	if shallow, err := os.ReadFile(filepath.Join(common, "shallow")); err == nil {
		files["shallow"] = string(shallow)
	}
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return nil, err
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			return nil, err
		}
	}
	return s, os.MkdirAll(filepath.Join(dir, "refs", "heads"), 0o700)
}

// nobody commits what no branch of the user's ever has.
var nobody = []string{
	"GIT_AUTHOR_NAME=git-tilth", "GIT_AUTHOR_EMAIL=git-tilth@localhost",
	"GIT_COMMITTER_NAME=git-tilth", "GIT_COMMITTER_EMAIL=git-tilth@localhost",
}

// Commit makes a commit of a tree, on parent.
func (s *Scratch) Commit(ctx context.Context, tree, parent, message string) (sha string, err error) {
	c := s.command("commit-tree", "-p", parent, "-F", "-", tree)
	c.stdin = []byte(message)
	c.more = append(c.more, nobody...)
	out, err := s.git.mutate(ctx, c)
	if out.skipped {
		return "<commit>", err
	}
	return string(bytes.TrimSpace(out.stdout)), err
}

// Bundle writes commits, by the names of branches, with all that they reach and base does not, into a git bundle at
// path, durably. Where base reaches all of them no file is made.
func (s *Scratch) Bundle(ctx context.Context, path, base string, commits map[string]string) error {
	beyond := false
	for name, sha := range commits {
		beyond = beyond || sha != base
		if s.git.dry {
			continue
		}
		if err := os.WriteFile(filepath.Join(s.dir, "refs", "heads", name), []byte(sha+"\n"), 0o600); err != nil {
			return err
		}
	}
	if !beyond {
		return nil
	}
	if _, err := s.git.mutate(ctx, s.command("bundle", "create", "--quiet", path, "--branches", "^"+base)); err != nil {
		return err
	}
	if s.git.dry {
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return errors.Join(f.Chmod(0o600), f.Sync())
}

// Remove takes the scratch repository away.
func (s *Scratch) Remove() error {
	if s.git.dry {
		return nil
	}
	return os.RemoveAll(s.dir)
}

func (s *Scratch) command(args ...string) command { return inRepo(s.dir, args...) }

// Unbundle brings the objects of a bundle into the repository. Nothing refers to them yet: whoever needs them moves a
// ref there at once.
func (g *Git) Unbundle(ctx context.Context, common, path string) error {
	if !g.dry && absent(path) {
		return errors.New(text.VisibleLine(path) + " is missing")
	}
	_, err := g.mutate(ctx, inRepo(common, "bundle", "unbundle", path))
	return err
}

// OpenBundle makes the objects of a bundle readable without bringing them into the repository at common: in a
// repository of their own, whose directory is returned and goes with remove. sha is the bundle's commit of a branch.
func (g *Git) OpenBundle(ctx context.Context, common, path, branch string) (dir, sha string, remove func(), err error) {
	if sha, err = g.BundleHead(ctx, common, path, branch); err != nil || sha == "" {
		return "", "", nil, cmp.Or(err, fmt.Errorf("%s holds no %s", text.VisibleLine(path), branch))
	}
	top, remove, err := proc.TempDir("bundle")
	if err != nil {
		return "", "", nil, err
	}
	dir = filepath.Join(top, "git")
	if _, err = g.NewScratch(common, dir); err == nil {
		err = g.Unbundle(ctx, dir, path)
	}
	if err != nil {
		remove()
	}
	return dir, sha, remove, err
}
