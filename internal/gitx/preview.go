package gitx

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// preview is where a Git puts what it would otherwise write into a worktree's
// admin directory and the repository's objects.
type preview struct{ dir string }

// environ sends git's writes there. What the repository has is read beside it.
func (p *preview) environ() []string {
	if p == nil {
		return nil
	}
	return []string{"GIT_INDEX_FILE=" + filepath.Join(p.dir, "index"), "GIT_OBJECT_DIRECTORY=" + filepath.Join(p.dir, "objects")}
}

// TreeAhead names the tree that StageAll would make, and changes neither the
// worktree nor the repository.
func (g *Git) TreeAhead(ctx context.Context, wt Worktree, base string) (tree string, err error) {
	look := *g
	look.dry = false
	tree, _, err = look.stagePreview(ctx, wt, base)
	return tree, err
}

// stagePreview is StageAll with an index and objects of its own, which are gone when it returns.
func (g *Git) stagePreview(ctx context.Context, wt Worktree, base string) (tree string, leftOut []string, err error) {
	dir, err := os.MkdirTemp("", "tilth-tree-")
	if err != nil {
		return "", nil, err
	}
	defer os.RemoveAll(dir)
	if err := os.MkdirAll(filepath.Join(dir, "objects", "info"), 0o700); err != nil {
		return "", nil, err
	}
	objects := filepath.Join(wt.Common, "objects")
	if strings.ContainsAny(objects, "\n\"#") {
		return "", nil, errors.New(objects + " cannot be named as an alternate")
	}
	if err := os.WriteFile(filepath.Join(dir, "objects", "info", "alternates"), []byte(objects+"\n"), 0o600); err != nil {
		return "", nil, err
	}
	index, err := os.ReadFile(filepath.Join(wt.AdminDir, "index"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", nil, err
	}
	if err == nil {
		if err := os.WriteFile(filepath.Join(dir, "index"), index, 0o600); err != nil {
			return "", nil, err
		}
	}
	ahead := *g
	ahead.dry, ahead.preview, ahead.trace = false, &preview{dir}, g.tracePreview(dir, wt)
	return ahead.StageAll(ctx, wt, base)
}
