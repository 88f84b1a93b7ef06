package gitx

import (
	"context"
	"os"
	"path/filepath"
)

// operations are what git leaves in a worktree's admin directory while an
// operation waits to be continued, and the command that forgets it. --quit
// keeps HEAD, index and files as they are, where --abort would throw work away.
var operations = []struct{ file, command string }{
	{"rebase-merge", "rebase"},
	{"rebase-apply", "rebase"},
	{"CHERRY_PICK_HEAD", "cherry-pick"},
	{"REVERT_HEAD", "revert"},
	{"sequencer", "cherry-pick"},
	{"MERGE_HEAD", "merge"},
}

// QuitOperations forgets a merge, rebase, cherry-pick or revert that was left
// unfinished in the worktree, so that the next commit is an ordinary one. It
// costs no process when there is none.
func (g *Git) QuitOperations(ctx context.Context, wt Worktree) error {
	for _, op := range operations {
		path := filepath.Join(wt.AdminDir, op.file)
		if _, err := os.Lstat(path); err != nil {
			continue
		}
		if _, err := g.mutate(ctx, g.inWorktree(wt, op.command, "--quit")); err != nil {
			return err
		}
	}
	return nil
}

// AddWorktreeEmpty registers a worktree at path on an existing branch without
// checking anything out.
func (g *Git) AddWorktreeEmpty(ctx context.Context, common, path, branch string) error {
	_, err := g.mutate(ctx, inRepo(common, "worktree", "add", "--quiet", "--no-checkout", path, branch))
	return err
}
