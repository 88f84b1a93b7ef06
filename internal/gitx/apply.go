package gitx

import (
	"context"
	"os"
	"path/filepath"
	"strings"
)

// ApplyChange names the tree that the change from one commit to another makes of a third, which is a tree or a commit.
// clean is false where it does not apply. What is there already applies again.
func (g *Git) ApplyChange(ctx context.Context, wt Worktree, from, to, onto string) (tree string, clean bool,
	err error) {
	if g.dry {
		return "", true, nil
	}
	dir, err := os.MkdirTemp("", "tilth-apply-")
	if err != nil {
		return "", false, err
	}
	defer os.RemoveAll(dir)
	index := func(stdin []byte, args ...string) (string, error) {
		c := g.inWorktree(wt, args...)
		c.more, c.stdin = append(c.more, "GIT_INDEX_FILE="+filepath.Join(dir, "index")), stdin
		out, err := g.mutate(ctx, c)
		return strings.TrimSpace(string(out.stdout)), err
	}
	// File by file first. Only this knows a new file that is there already.
	if _, err := index(nil, "read-tree", "-i", "-m", "--aggressive", from, onto, to); err != nil {
		return "", false, err
	}
	if tree, err = index(nil, "write-tree"); err == nil {
		return tree, true, nil
	}
	if _, err := index(nil, "read-tree", onto); err != nil {
		return "", false, err
	}
	patch, err := g.read(ctx, inRepo(wt.Common, "diff-tree", "-p", "--binary", "--full-index", "--no-ext-diff",
		"--no-textconv", "--no-renames", "--no-color", from, to))
	if err != nil {
		return "", false, err
	}
	_, err = index(patch, "-c", "apply.ignoreWhitespace=no", "apply", "--cached", "--3way", "--whitespace=nowarn")
	if exitCode(err) == 1 {
		return "", false, nil
	}
	if err == nil {
		tree, err = index(nil, "write-tree")
	}
	return tree, err == nil, err
}

// IndexTree names the tree that the index holds, "" where it holds conflicts.
func (g *Git) IndexTree(ctx context.Context, wt Worktree) (string, error) {
	out, err := g.mutate(ctx, g.inWorktree(wt, "write-tree"))
	if exitCode(err) == 128 {
		return "", nil
	}
	return strings.TrimSpace(string(out.stdout)), err
}

// BundleHead is the commit that a bundle has under the name of a branch, "" for none. Its objects may not be there yet.
func (g *Git) BundleHead(ctx context.Context, common, path, branch string) (sha string, err error) {
	out, err := g.read(ctx, inRepo(common, "bundle", "list-heads", path, "refs/heads/"+branch))
	sha, _, _ = strings.Cut(string(out), " ")
	return sha, err
}
