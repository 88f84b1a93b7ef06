package gitx

import (
	"bytes"
	"context"
)

// CommitDiff returns the patch of a commit against its first parent, at most
// max bytes of it, cut at a line end. It needs no worktree.
func (g *Git) CommitDiff(ctx context.Context, common, sha string, max int64) (patch []byte, truncated bool, err error) {
	c := inRepo(common, "diff-tree", "-r", "--root", "--patch", "--find-renames", "--no-commit-id", "--no-color", "--no-ext-diff",
		"--no-textconv", "--src-prefix=a/", "--dst-prefix=b/", "-O/dev/null", "--end-of-options", sha, "--")
	c.limit = max
	out, err := g.run(ctx, c)
	if err != nil {
		return nil, false, err
	}
	patch = out.stdout
	if out.truncated {
		patch = patch[:bytes.LastIndexByte(patch, '\n')+1]
	}
	return patch, out.truncated, nil
}
