package gitx

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// planned is what a dry run would have made so far: the worktrees that stand at
// their places, on their branches.
type planned struct {
	mu        sync.Mutex
	worktrees map[string]bool
}

// DryRun returns a Git whose mutations are traced as Skipped and not run. Reads
// run, so that a sequence of both takes the way that it would take for real:
// StageAll names the tree that it would make, [Git.Worktree] passes a worktree
// that a skipped command would have made, and a read in a directory that only a
// skipped command would have made finds nothing. Ids of commits are then empty.
func (g *Git) DryRun() *Git {
	d := *g
	d.dry, d.planned = true, &planned{worktrees: map[string]bool{}}
	return &d
}

// IsDryRun reports whether this Git runs no mutations.
func (g *Git) IsDryRun() bool { return g.dry }

// Worktree is [CheckWorktree], which in a dry run also passes a worktree that
// the skipped commands would have made or put back on its branch.
func (g *Git) Worktree(common, path, branch string) (Worktree, error) {
	wt, err := CheckWorktree(common, path, branch)
	if err == nil || !g.dry {
		return wt, err
	}
	g.planned.mu.Lock()
	defer g.planned.mu.Unlock()
	if !g.planned.worktrees[path] {
		return wt, err
	}
	admin, found := adminDirFor(common, path)
	if !found {
		admin = filepath.Join(common, "worktrees", filepath.Base(path))
	}
	return Worktree{Path: path, Branch: branch, Common: common, AdminDir: admin}, nil
}

// plan notes in a dry run that a skipped command would have made the worktree at path fit to work in.
func (g *Git) plan(path string) {
	if !g.dry {
		return
	}
	g.planned.mu.Lock()
	defer g.planned.mu.Unlock()
	g.planned.worktrees[path] = true
}

// missing reports whether a directory is not there.
func missing(dir string) bool {
	_, err := os.Lstat(dir)
	return err != nil && isAbsent(err)
}

// tracePreview is the trace of the commands of a preview. In a dry run those that write are traced as what they stand for:
// skipped commands in the worktree itself. Else they are a look ahead, which changes nothing.
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
