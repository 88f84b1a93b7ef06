package gitx

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
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

// NewScratch makes a scratch repository in dir over the objects of the repository at common.
func (g *Git) NewScratch(common, dir string) (*Scratch, error) {
	s := &Scratch{git: g, dir: dir}
	if g.dry {
		return s, nil
	}
	return s, Borrow(common, dir)
}

// Borrow makes a git directory in dir, without refs, that has the objects of the repository at common as an alternate.
func Borrow(common, dir string) error {
	if shallow, err := os.ReadFile(filepath.Join(common, "shallow")); err == nil {
		if err := writeIn(dir, "shallow", string(shallow)); err != nil {
			return err
		}
	}
	objects := filepath.Join(common, "objects")
	if strings.ContainsAny(objects[:1], `"#`) || strings.ContainsAny(objects, "\"\\\n") {
		objects = `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(objects) + `"`
	}
	if err := writeIn(dir, "objects/info/alternates", objects+"\n"); err != nil {
		return err
	}
	return emptyGitDir(common, dir, "")
}

// emptyGitDir makes a git directory in dir, without objects and refs, of the kind of the one at common. settings are
// lines for the core section of its config.
func emptyGitDir(common, dir, settings string) error {
	config := "[core]\n\trepositoryformatversion = 1\n" + settings
	if usesSHA256(common) {
		config += "[extensions]\n\tobjectFormat = sha256\n"
	}
	for _, sub := range []string{"objects", "refs/heads"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			return err
		}
	}
	return errors.Join(writeIn(dir, "config", config), writeIn(dir, "HEAD", "ref: refs/heads/none\n"))
}

// writeIn writes a private file below dir.
func writeIn(dir, name, content string) error {
	path := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(content), 0o600)
}

// Nobody commits what no branch of the user's ever has.
var Nobody = []string{
	"GIT_AUTHOR_NAME=git-tilth", "GIT_AUTHOR_EMAIL=git-tilth@localhost",
	"GIT_COMMITTER_NAME=git-tilth", "GIT_COMMITTER_EMAIL=git-tilth@localhost",
}

// Commit makes a commit of a tree, on parent.
func (s *Scratch) Commit(ctx context.Context, tree, parent, message string) (sha string, err error) {
	c := s.command("commit-tree", "-p", parent, "-F", "-", tree)
	c.Stdin = []byte(message)
	c.Vars = append(c.Vars, Nobody...)
	if s.git.dry {
		sha = "<commit>"
	}
	made, err := s.git.Mutate(ctx, c)
	return cmp.Or(made, sha), err
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
	if _, err := s.git.Mutate(ctx, s.command("bundle", "create", "--quiet", path, "--branches", "^"+base)); err != nil {
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

func (s *Scratch) command(args ...string) Command { return InRepo(s.dir, args...) }

// Unbundle brings the objects of a bundle into the repository. Nothing refers to them yet: whoever needs them moves a
// ref there at once.
func (g *Git) Unbundle(ctx context.Context, common, path string) error {
	if !g.dry && absent(path) {
		return errors.New(text.VisibleLine(path) + " is missing")
	}
	_, err := g.Mutate(ctx, InRepo(common, "bundle", "unbundle", path))
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

// preview is where a Git puts what it would otherwise write into a worktree's admin directory and the repository's
// objects.
type preview struct{ dir string }

// environ sends git's writes there. What the repository has is read beside it.
func (p *preview) environ() []string {
	if p == nil {
		return nil
	}
	return []string{
		"GIT_INDEX_FILE=" + filepath.Join(p.dir, "index"), "GIT_OBJECT_DIRECTORY=" + filepath.Join(p.dir, "objects"),
	}
}

// PreviewTree names the tree that StageAll would make, and changes neither the worktree nor the repository. Its objects
// are written to the git directory dir, made by Borrow; with "" they are gone when it returns.
func (g *Git) PreviewTree(ctx context.Context, wt Worktree, base, dir string) (tree string, err error) {
	look := *g
	look.dry = false
	if dir == "" {
		tree, _, err = look.stagePreview(ctx, wt, base)
	} else {
		tree, _, err = look.stageInto(ctx, wt, base, dir)
	}
	return tree, err
}

// stagePreview is StageAll with an index and objects of its own, which are gone when it returns.
func (g *Git) stagePreview(ctx context.Context, wt Worktree, base string) (tree string, leftOut []string, err error) {
	dir, remove, err := proc.TempDir("tree")
	if err != nil {
		return "", nil, err
	}
	defer remove()
	if err := Borrow(wt.Common, dir); err != nil {
		return "", nil, err
	}
	return g.stageInto(ctx, wt, base, dir)
}

// stageInto is StageAll whose index and objects are written in dir, which reads those of the repository.
func (g *Git) stageInto(ctx context.Context, wt Worktree, base, dir string) (tree string, leftOut []string, err error) {
	if _, err := copyIndex(wt, filepath.Join(dir, "index")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", nil, err
	}
	ahead := *g
	ahead.dry, ahead.preview, ahead.trace = false, &preview{dir}, g.tracePreview(dir, wt)
	return ahead.StageAll(ctx, wt, base)
}

// tracePreview is the trace of the commands of a preview. In a dry run those that write are traced as what they stand
// for: skipped commands in the worktree itself. Else they are a look ahead, which changes nothing.
func (g *Git) tracePreview(dir string, wt Worktree) func(Call) {
	return func(c Call) {
		if g.dry && c.Mutates {
			args := make([]string, len(c.Args))
			for i, a := range c.Args {
				args[i] = strings.ReplaceAll(a, dir, wt.AdminDir)
			}
			c.Args, c.Took, c.Err, c.Skipped = args, 0, nil, true
		} else {
			c.Mutates = false
		}
		g.trace(c)
	}
}

// BundleHead is the commit that a bundle has under the name of a branch, "" for none. Its objects may not be there yet.
func (g *Git) BundleHead(ctx context.Context, common, path, branch string) (sha string, err error) {
	out, err := g.Read(ctx, InRepo(common, "bundle", "list-heads", path, "refs/heads/"+branch))
	sha, _, _ = strings.Cut(string(out), " ")
	return sha, err
}
