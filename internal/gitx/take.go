package gitx

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/git-tilth/git-tilth/internal/proc"
)

// Bench makes trees and commits that no ref names yet: until a branch is moved to one, nothing of the repository has
// changed but for objects that a gc takes away. In a dry run even those are made elsewhere.
type Bench struct {
	git    *Git
	common string
	dir    string   // for scratch indexes
	env    []string // where objects are written
}

// ErrOldGit says that git is too old to merge without a checkout.
var ErrOldGit = errors.New("this needs git 2.38 or newer")

// NewBench is a bench over the repository at common; remove takes its scratch files away.
func (g *Git) NewBench(ctx context.Context, common string) (b *Bench, remove func(), err error) {
	if !g.atLeast(ctx, 2, 38) {
		return nil, nil, ErrOldGit
	}
	dir, remove, err := proc.TempDir("take")
	if err != nil {
		return nil, nil, err
	}
	b = &Bench{git: g, common: common, dir: dir}
	if g.dry {
		b.env = []string{"GIT_OBJECT_DIRECTORY=" + filepath.Join(dir, "objects"),
			"GIT_ALTERNATE_OBJECT_DIRECTORIES=" + filepath.Join(common, "objects")}
		err = os.Mkdir(filepath.Join(dir, "objects"), 0o700)
	}
	return b, remove, err
}

func (b *Bench) run(ctx context.Context, stdin string, env []string, args ...string) (string, error) {
	c := inRepo(b.common, args...)
	c.more, c.stdin = append(env, b.env...), []byte(stdin)
	out, err := b.git.read(ctx, c)
	return strings.TrimSpace(string(out)), err
}

// Without names the tree of a commit without some files.
func (b *Bench) Without(ctx context.Context, commit string, paths []string) (tree string, err error) {
	if len(paths) == 0 {
		return b.git.TreeOf(ctx, b.common, commit)
	}
	index := []string{"GIT_INDEX_FILE=" + filepath.Join(b.dir, "index")}
	if _, err = b.run(ctx, "", index, "read-tree", commit); err == nil {
		_, err = b.run(ctx, strings.Join(paths, "\x00")+"\x00", index, "update-index", "--force-remove", "-z",
			"--stdin")
	}
	if err != nil {
		return "", err
	}
	return b.run(ctx, "", index, "write-tree")
}

// Merge names the tree that two commits make, or the files in which they conflict.
func (b *Bench) Merge(ctx context.Context, ours, theirs string) (tree string, conflicts []string, err error) {
	out, err := b.run(ctx, "", nil, "merge-tree", "--write-tree", "--name-only", "--no-messages", "-z",
		"--end-of-options", ours, theirs)
	list := fields([]byte(out))
	if exitCode(err) == 1 && len(list) > 1 {
		return "", list[1:], nil
	}
	if err != nil || len(list) == 0 {
		return "", nil, errors.Join(err)
	}
	return list[0], nil, nil
}

// Apply names the tree that the change from one tree to another makes of a third, or the files in which they conflict.
func (b *Bench) Apply(ctx context.Context, from, to, onto string) (tree string, conflicts []string, err error) {
	base, err := b.Commit(ctx, TreeCommit{Tree: from, Message: "base"}, nobody)
	if err != nil {
		return "", nil, err
	}
	ours, err := b.Commit(ctx, TreeCommit{Tree: onto, Parent: base, Message: "ours"}, nobody)
	if err != nil {
		return "", nil, err
	}
	theirs, err := b.Commit(ctx, TreeCommit{Tree: to, Parent: base, Message: "theirs"}, nobody)
	if err != nil {
		return "", nil, err
	}
	return b.Merge(ctx, ours, theirs)
}

// Commit makes a commit; with more parents it is a merge. author is variables that say who wrote it, none for the user.
func (b *Bench) Commit(ctx context.Context, c TreeCommit, author []string, more ...string) (sha string, err error) {
	args := []string{"commit-tree", "-F", "-"}
	if c.Parent != "" {
		args = append(args, "-p", c.Parent)
	}
	for _, p := range more {
		args = append(args, "-p", p)
	}
	env := append(b.git.identity(ctx, b.common), author...)
	if c.Sign {
		args, env = append(args, "-S"), append(env, b.git.signing()...)
	}
	return b.run(ctx, c.Message, env, append(args, c.Tree)...)
}

// Author is the variables that make a commit have the author and date of another one.
func (b *Bench) Author(ctx context.Context, commit string) ([]string, error) {
	out, err := b.run(ctx, "", nil, "rev-list", "--no-commit-header", "--max-count=1", "--date=raw",
		"--format=%an%x00%ae%x00%ad", commit, "--")
	f := strings.Split(out, "\x00")
	if err != nil || len(f) != 3 {
		return nil, errors.Join(err)
	}
	return []string{"GIT_AUTHOR_NAME=" + f[0], "GIT_AUTHOR_EMAIL=" + f[1], "GIT_AUTHOR_DATE=@" + f[2]}, nil
}

// Hooks runs hooks of the repository's that look at a commit before it is made: those without arguments over an index
// of its tree, commit-msg over its message, which it may change. dir is where they run. The error is a
// *HookRefusedError.
func (b *Bench) Hooks(ctx context.Context, dir string, c *TreeCommit, names ...string) error {
	file := filepath.Join(b.dir, "message")
	index := "GIT_INDEX_FILE=" + filepath.Join(b.dir, "hook-index")
	if b.git.dry {
		return nil
	}
	if err := os.WriteFile(file, []byte(c.Message), 0o600); err != nil {
		return err
	}
	if _, err := b.run(ctx, "", []string{index}, "read-tree", c.Tree); err != nil {
		return err
	}
	for _, name := range names {
		call := b.git.inUserDir(dir, "hook", "run", "--ignore-missing", name)
		if name == "commit-msg" {
			call.args = append(call.args, "--", file)
		}
		call.hooks, call.more = true, []string{index}
		if out, err := b.git.mutate(ctx, call); exitCode(err) > 0 {
			return &HookRefusedError{Output: strings.TrimSpace(out.stderr)}
		} else if err != nil {
			return err
		}
	}
	message, err := os.ReadFile(file)
	c.Message = string(message)
	return err
}

// Advance moves a branch from one commit to a descendant of it, with the user's hooks. at is where the branch is
// checked out, "" for nowhere: its files follow, or nothing is changed.
func (g *Git) Advance(ctx context.Context, common, branch, at, from, to, why string) error {
	c := inRepo(common, "update-ref", "-m", why, "refs/heads/"+branch, to, from)
	if at != "" {
		c = g.inUserDir(at, "merge", "--ff-only", "--no-squash", "--commit", "--no-stat", "--quiet", to)
		c.more = []string{"GIT_REFLOG_ACTION=" + why}
	}
	c.hooks = true
	out, err := g.mutate(ctx, c)
	if exitCode(err) > 0 {
		return fmt.Errorf("git refuses: %s", firstLines(out.stderr, errorLines))
	}
	return err
}

// HasChanges reports whether tracked files of the user's checkout at dir have changes, in the index or out of it, or
// what is in the middle of there.
func (g *Git) HasChanges(ctx context.Context, dir string) (bool, error) {
	out, err := g.read(ctx, g.inUserDir(dir, "status", "--porcelain=v1", "-z", "--untracked-files=no",
		"--ignore-submodules=dirty"))
	return len(out) > 0, err
}
