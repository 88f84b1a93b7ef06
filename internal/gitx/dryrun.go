package gitx

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// planned is what the skipped commands of a dry run would have made of the
// places of worktrees.
type planned struct {
	mu     sync.Mutex
	places map[string]place
}

type place int

const (
	unchanged place = iota
	made            // a worktree stands there, on its branch
	moved           // what stood there is somewhere else
	removed         // neither files nor an entry are left
)

// DryRun returns a Git whose mutations are traced as Skipped and not run. Reads
// run, so that a sequence of both takes the way that it would take for real:
// StageAll names the tree that it would make, [Git.Worktree] passes a worktree
// that a skipped command would have made, and a read in a directory that only a
// skipped command would have made finds nothing. Ids of commits are then empty.
func (g *Git) DryRun() *Git {
	d := *g
	d.dry, d.planned = true, &planned{places: map[string]place{}}
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
	if g.placeOf(path) != made {
		return wt, err
	}
	admin, found := adminDirFor(common, path)
	for n := 0; !found; n++ { // git's choice of a name
		admin = filepath.Join(common, "worktrees", filepath.Base(path))
		if n > 0 {
			admin += strconv.Itoa(n)
		}
		found = missing(admin)
	}
	return Worktree{Path: path, Branch: branch, Common: common, AdminDir: admin}, nil
}

// MoveAside renames what stands at the place of a worktree.
func (g *Git) MoveAside(path, to string) error {
	if g.plan(path, moved); g.dry {
		return nil
	}
	return os.Rename(path, to)
}

// plan notes in a dry run what a skipped command would have made of a place.
func (g *Git) plan(path string, p place) {
	if !g.dry {
		return
	}
	g.planned.mu.Lock()
	defer g.planned.mu.Unlock()
	g.planned.places[path] = p
}

func (g *Git) placeOf(path string) place {
	if !g.dry {
		return unchanged
	}
	g.planned.mu.Lock()
	defer g.planned.mu.Unlock()
	return g.planned.places[path]
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
