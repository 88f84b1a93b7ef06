package gitx

import (
	"context"
	"os"
	"path/filepath"
)

// ReadTree makes the index equal to tree. The files stay as they are, and what
// git remembers of unchanged ones is kept, so that the next staging does not
// read them all again.
func (g *Git) ReadTree(ctx context.Context, wt Worktree, tree string) error {
	return g.change(ctx, wt, "read-tree", "--reset", tree)
}

// ReadTreeIntoFiles makes the index and the tracked files equal to tree. HEAD
// stays where it is.
func (g *Git) ReadTreeIntoFiles(ctx context.Context, wt Worktree, tree string) error {
	return g.change(ctx, wt, "read-tree", "--reset", "-u", tree)
}

// SoftReset moves the worktree's branch to sha; index and files stay, conflicts
// of a merge in the index included.
func (g *Git) SoftReset(ctx context.Context, wt Worktree, sha string) error {
	err := g.change(ctx, wt, "reset", "--soft", "--quiet", sha)
	if err == nil {
		return nil
	}
	// git reset --soft takes conflicts in the index for a merge under way, even
	// when nothing else of it is left, and refuses.
	c := g.inWorktree(wt, "ls-files", "-z", "--unmerged")
	c.limit = 1
	if out, lerr := g.run(ctx, c); lerr != nil || len(out.stdout) == 0 {
		return err
	}
	return g.change(ctx, wt, "update-ref", "-m", "reset: moving to "+sha, "HEAD", sha)
}

// HardReset moves the worktree's branch to sha and makes index and tracked
// files equal to it.
func (g *Git) HardReset(ctx context.Context, wt Worktree, sha string) error {
	return g.change(ctx, wt, "reset", "--hard", "--quiet", sha)
}

// change runs a command that writes in the worktree, after what would stop it
// was put out of the way.
func (g *Git) change(ctx context.Context, wt Worktree, args ...string) error {
	if err := g.prepare(ctx, wt); err != nil {
		return err
	}
	_, err := g.mutate(ctx, g.inWorktree(wt, args...))
	return err
}

// unfinished are the files by which git knows that a worktree is in the middle
// of a merge, a rebase or the like. With them, a soft reset is refused and a
// commit becomes a merge.
var unfinished = []string{
	"MERGE_HEAD", "MERGE_MODE", "MERGE_MSG", "MERGE_RR", "AUTO_MERGE", "SQUASH_MSG", "CHERRY_PICK_HEAD", "REVERT_HEAD",
	"REBASE_HEAD", "BISECT_LOG", "BISECT_START", "rebase-merge", "rebase-apply", "sequencer",
}

// Unfinished names what was left unfinished in a worktree: "merge", "rebase"
// and so on, "" for nothing.
func Unfinished(wt Worktree) string {
	for _, o := range []struct{ file, name string }{
		{"rebase-merge", "rebase"}, {"rebase-apply", "rebase"}, {"MERGE_HEAD", "merge"}, {"CHERRY_PICK_HEAD", "cherry-pick"},
		{"REVERT_HEAD", "revert"}, {"BISECT_LOG", "bisection"},
	} {
		if _, err := os.Lstat(filepath.Join(wt.AdminDir, o.file)); err == nil {
			return o.name
		}
	}
	return ""
}

// QuitOperations forgets a merge, rebase, cherry-pick or bisection that was left
// unfinished in the worktree, as `git merge --quit` and its like do: HEAD, index
// and files stay as they are. (`git rebase --quit` would put an autostash among
// the user's stashes.) Every operation that writes does so first.
func (g *Git) QuitOperations(ctx context.Context, wt Worktree) error {
	return g.prepare(ctx, wt)
}

// prepare makes a worktree ready to be written: lock files of killed processes
// go, and what was left unfinished is forgotten.
func (g *Git) prepare(ctx context.Context, wt Worktree) error {
	if err := g.clearWorktreeLocks(ctx, wt); err != nil {
		return err
	}
	if g.dry {
		return nil
	}
	for _, name := range unfinished {
		if err := os.RemoveAll(filepath.Join(wt.AdminDir, name)); err != nil {
			return err
		}
	}
	return nil
}
