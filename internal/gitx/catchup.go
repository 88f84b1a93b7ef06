package gitx

import (
	"context"
	"strings"
)

// MergeBase names the best common ancestor of two commits; it is "" if they
// have none.
func (g *Git) MergeBase(ctx context.Context, common, a, b string) (string, error) {
	base, err := g.line(ctx, inRepo(common, "merge-base", "--end-of-options", a, b))
	if exitCode(err) == 1 {
		return "", nil
	}
	return base, err
}

// CatchUp brings to the index and the files what changed from one commit to
// another, in those paths that tree, which StageAll just made of the files,
// still has as they are in from. The others are somebody's work: they stay as
// they are. HEAD stays where it is, and a second time changes nothing.
//
// This is the two-tree merge of git read-tree -m, but that one refuses as a
// whole where both sides changed one path.
func (g *Git) CatchUp(ctx context.Context, wt Worktree, from, to, tree string) error {
	changed, err := g.paths(ctx, wt, from, to)
	if err != nil {
		return err
	}
	var worked []string
	if !g.dry { // the tree of a dry run is in no repository
		if worked, err = g.paths(ctx, wt, from, tree); err != nil {
			return err
		}
	}
	theirs := map[string]bool{}
	for _, p := range worked {
		theirs[p] = true
	}
	var list strings.Builder
	for _, p := range changed {
		if !theirs[p] {
			list.WriteString(p + "\x00")
		}
	}
	if list.Len() == 0 {
		return nil
	}
	if err := g.prepare(ctx, wt); err != nil {
		return err
	}
	c := g.inWorktree(wt, "--literal-pathspecs", "restore", "--quiet", "--source="+to, "--staged", "--worktree", "--ignore-skip-worktree-bits",
		"--pathspec-from-file=-", "--pathspec-file-nul")
	c.stdin = []byte(list.String())
	_, err = g.mutate(ctx, c)
	return err
}

// paths lists what differs between two commits or trees.
func (g *Git) paths(ctx context.Context, wt Worktree, a, b string) ([]string, error) {
	out, err := g.read(ctx, g.inWorktree(wt, "diff-tree", "-r", "-z", "--name-only", "--no-renames", "--ignore-submodules=none",
		"--no-relative", "--end-of-options", a, b, "--"))
	return fields(out), err
}
