package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/text"
)

// scratch is a repository for a moment, without files, which reads the objects of another one. What is written in it,
// objects and refs, is in no way part of the other, and goes with its directory.
type scratch struct {
	git *gitx.Git
	dir string
}

// newScratch makes a scratch repository in dir over the objects of the repository at common.
func newScratch(g *gitx.Git, common, dir string) (*scratch, error) {
	s := &scratch{git: g, dir: dir}
	if g.IsDryRun() {
		return s, nil
	}
	return s, gitx.Borrow(common, dir)
}

// commit makes a commit of a tree, on parent.
func (s *scratch) commit(ctx context.Context, tree, parent, message string) (sha string, err error) {
	c := s.command("commit-tree", "-p", parent, "-F", "-", tree)
	c.Stdin = []byte(message)
	c.Vars = append(c.Vars, s.git.Identity(ctx, "", false)...)
	if s.git.IsDryRun() {
		sha = "<commit>"
	}
	made, err := s.git.Mutate(ctx, c)
	return cmp.Or(made, sha), err
}

// bundle writes commits, by the names of branches, with all that they reach and base does not, into a git bundle at
// path, durably. Where base reaches all of them no file is made.
func (s *scratch) bundle(ctx context.Context, path, base string, commits map[string]string) error {
	beyond := false
	for name, sha := range commits {
		beyond = beyond || sha != base
		if s.git.IsDryRun() {
			continue
		}
		if err := os.WriteFile(filepath.Join(s.dir, "refs", "heads", name), []byte(sha+"\n"), 0o600); err != nil {
			return err
		}
	}
	if !beyond {
		return nil
	}
	if _, err := s.git.Mutate(ctx, s.command("bundle", "create", "--quiet", path, "--branches", "^"+base)); err != nil {
		return err
	}
	if s.git.IsDryRun() {
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return errors.Join(f.Chmod(0o600), f.Sync())
}

// remove takes the scratch repository away.
func (s *scratch) remove() error {
	if s.git.IsDryRun() {
		return nil
	}
	return os.RemoveAll(s.dir)
}

func (s *scratch) command(args ...string) gitx.Command { return gitx.InRepo(s.dir, args...) }

// unbundle brings the objects of a bundle into the repository. Nothing refers to them yet: whoever needs them moves a
// ref there at once.
func unbundle(ctx context.Context, g *gitx.Git, common, path string) error {
	if !g.IsDryRun() && gone(path) {
		return errors.New(text.VisibleLine(path) + " is missing")
	}
	_, err := g.Mutate(ctx, gitx.InRepo(common, "bundle", "unbundle", path))
	return err
}

// OpenBundle makes the objects of a bundle readable without bringing them into the repository at common: in a
// repository of their own, whose directory is returned and goes with remove. sha is the bundle's commit of a branch.
func OpenBundle(ctx context.Context, g *gitx.Git, common, path, branch string) (dir, sha string, remove func(),
	err error) {
	if sha, err = bundleHead(ctx, g, common, path, branch); err != nil || sha == "" {
		return "", "", nil, cmp.Or(err, fmt.Errorf("%s holds no %s", text.VisibleLine(path), branch))
	}
	top, remove, err := proc.TempDir("bundle")
	if err != nil {
		return "", "", nil, err
	}
	dir = filepath.Join(top, "git")
	if _, err = newScratch(g, common, dir); err == nil {
		err = unbundle(ctx, g, dir, path)
	}
	if err != nil {
		remove()
	}
	return dir, sha, remove, err
}

// commitOf makes a commit of the tree that a command makes.
func (s *scratch) commitOf(ctx context.Context, parent string, c gitx.Command) (string, error) {
	tree, err := s.git.Mutate(ctx, c)
	if err != nil {
		return "", err
	}
	return s.commit(ctx, tree, parent, "kept\n")
}

// bundleHead is the commit that a bundle has under the name of a branch, "" for none. Its objects may not be there yet.
func bundleHead(ctx context.Context, g *gitx.Git, common, path, branch string) (sha string, err error) {
	out, err := g.Read(ctx, gitx.InRepo(common, "bundle", "list-heads", path, "refs/heads/"+branch))
	sha, _, _ = strings.Cut(string(out), " ")
	return sha, err
}
