package gitx

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/git-tilth/git-tilth/internal/proc"
)

// place is what the skipped commands of a dry run would have made of the place of a worktree.
type place int

const (
	unchanged place = iota
	made            // a worktree stands there, on its branch
	moved           // what stood there is somewhere else
	removed         // neither files nor an entry are left
)

// DryRun returns a Git whose mutations are traced as Skipped and not run. Reads run, so that a sequence of both takes
// the way that it would take for real: StageAll names the tree that it would make, [Git.Worktree] passes a worktree
// that a skipped command would have made, and a read in a directory that only a skipped command would have made finds
// nothing. Ids of commits are then empty.
func (g *Git) DryRun() *Git {
	d := *g
	d.dry, d.planned = true, &memo[place]{}
	return &d
}

// IsDryRun reports whether this Git runs no mutations.
func (g *Git) IsDryRun() bool { return g.dry }

// MoveAside renames what stands at the place of a worktree.
func (g *Git) MoveAside(path, to string) error {
	if g.plan(path, moved); g.dry {
		return nil
	}
	g.known.entries.set(path, "")
	return os.Rename(path, to)
}

// plan notes in a dry run what a skipped command would have made of a place.
func (g *Git) plan(path string, p place) {
	if g.dry {
		g.planned.set(path, p)
	}
}

func (g *Git) placeOf(path string) place {
	if !g.dry {
		return unchanged
	}
	p, _ := g.planned.get(path)
	return p
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

// PreviewTree names the tree that StageAll would make, and changes neither the worktree nor the repository.
func (g *Git) PreviewTree(ctx context.Context, wt Worktree, base string) (tree string, err error) {
	look := *g
	look.dry = false
	tree, _, err = look.stagePreview(ctx, wt, base)
	return tree, err
}

// stagePreview is StageAll with an index and objects of its own, which are gone when it returns.
func (g *Git) stagePreview(ctx context.Context, wt Worktree, base string) (tree string, leftOut []string, err error) {
	dir, remove, err := proc.TempDir("tree")
	if err != nil {
		return "", nil, err
	}
	defer remove()
	if err := os.MkdirAll(filepath.Join(dir, "objects", "info"), 0o700); err != nil {
		return "", nil, err
	}
	objects := filepath.Join(wt.Common, "objects")
	if strings.ContainsAny(objects, "\n\"#") {
		return "", nil, errors.New(objects + " cannot be named as an alternate")
	}
	alternates := filepath.Join(dir, "objects", "info", "alternates")
	if err := os.WriteFile(alternates, []byte(objects+"\n"), 0o600); err != nil {
		return "", nil, err
	}
	from, to := filepath.Join(wt.AdminDir, "index"), filepath.Join(dir, "index")
	index, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, index, 0o600)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", nil, err
	}
	// A file that was changed in the same tick as the index was written is told by the index's own time.
	if fi, err := os.Stat(from); err == nil {
		_ = os.Chtimes(to, fi.ModTime(), fi.ModTime())
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
