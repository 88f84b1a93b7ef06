package gitx

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
)

// mendIndex replaces an index that git cannot read, as a machine that lost its
// power leaves one, by the one of HEAD, and tells whether it did: git does
// nothing in the worktree with it, not even a reset. Only for where what was
// staged is given up anyway; no file is touched.
//
// On disk after each step: 1. no index, which git takes for an empty one; 2. the
// index of HEAD.
func (g *Git) mendIndex(ctx context.Context, wt Worktree) (mended bool, err error) {
	if g.dry || !g.indexBroken(ctx, wt) {
		return false, nil
	}
	err = os.Remove(filepath.Join(wt.AdminDir, "index"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return false, err
	}
	return true, g.change(ctx, wt, "read-tree", "--reset", "HEAD")
}

// indexBroken tells whether git says of the index that it cannot be read.
func (g *Git) indexBroken(ctx context.Context, wt Worktree) bool {
	c := g.inWorktree(wt, "ls-files", "-z", "--cached")
	c.limit = 1
	_, err := g.read(ctx, c)
	var said *Error
	return errors.As(err, &said) && said.ExitCode == 128 && strings.Contains(said.Stderr, "index") &&
		!strings.Contains(said.Stderr, "Permission denied")
}
