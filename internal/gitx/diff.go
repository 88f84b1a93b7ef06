package gitx

import (
	"bytes"
	"context"
	"strings"
)

// patchFlags fix the shape of a patch against every setting.
var patchFlags = []string{
	"--patch", "--find-renames", "--no-color", "--no-ext-diff", "--no-textconv", "--src-prefix=a/", "--dst-prefix=b/",
	"--unified=3", "--inter-hunk-context=0", "--diff-algorithm=myers", "--submodule=short", "--ignore-submodules=none",
	"--no-relative", "-O/dev/null",
}

// DiffTrees returns the patch from base to tree (commits or trees), at most max bytes of it (all if it is 0), cut at
// a line end. It is raw bytes: contents need not be UTF-8. None of the user's settings has a say in its shape.
func (g *Git) DiffTrees(ctx context.Context, wt Worktree, base, tree string, max int64) (patch []byte, truncated bool, err error) {
	c := g.inWorktree(wt, append(append([]string{"diff-tree", "-r"}, patchFlags...), "--end-of-options", base, tree, "--")...)
	c.more = append(c.more, attributesOf(base))
	return g.patch(ctx, c, max)
}

// CommitDiff returns the patch of a commit against its first parent, limited and shaped like that of DiffTrees. It
// needs no worktree.
func (g *Git) CommitDiff(ctx context.Context, common, sha string, max int64) (patch []byte, truncated bool, err error) {
	args := append([]string{"diff-tree", "-r", "--root", "--diff-merges=first-parent", "--no-commit-id"}, patchFlags...)
	return g.patch(ctx, inRepo(common, append(args, "--end-of-options", sha, "--")...), max)
}

func (g *Git) patch(ctx context.Context, c command, max int64) (patch []byte, truncated bool, err error) {
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

// attributesOf makes git read .gitattributes from base (from git 2.41; older ones read those of the worktree): what
// is to be judged must not be able to declare itself not worth showing.
func attributesOf(base string) string { return "GIT_ATTR_SOURCE=" + base }

// FileChange is one file that differs between two trees.
type FileChange struct {
	Path    string
	OldPath string // of a renamed file, else ""
	Status  string // A, D, M, T (type) or R
	Added   int    // lines; 0 when Binary
	Deleted int
	Binary  bool
}

// ChangedFiles lists what differs between two commits or trees, sorted by path as git sorts.
func (g *Git) ChangedFiles(ctx context.Context, wt Worktree, base, tree string) ([]FileChange, error) {
	c := g.inWorktree(wt, "diff-tree", "-r", "-z", "--raw", "--numstat", "--find-renames", "--no-ext-diff", "--no-textconv",
		"--ignore-submodules=none", "--no-relative", "-O/dev/null", "--end-of-options", base, tree, "--")
	c.more = append(c.more, attributesOf(base))
	out, err := g.read(ctx, c)
	if err != nil {
		return nil, err
	}
	return parseChanges(fields(out)), nil
}

// parseChanges reads --raw -z followed by --numstat -z:
//
//	:100644 100644 <oid> <oid> M NUL path NUL
//	:100644 100644 <oid> <oid> R90 NUL old NUL new NUL
//	3 TAB 1 TAB path NUL
//	3 TAB 1 TAB NUL old NUL new NUL
func parseChanges(f []string) []FileChange {
	var changes []FileChange
	at := map[string]int{}
	for len(f) > 1 && strings.HasPrefix(f[0], ":") {
		words := strings.Fields(f[0])
		c := FileChange{Status: words[len(words)-1][:1], Path: f[1]}
		f = f[2:]
		if (c.Status == "R" || c.Status == "C") && len(f) > 0 {
			c.OldPath, c.Path = c.Path, f[0]
			f = f[1:]
		}
		at[c.Path] = len(changes)
		changes = append(changes, c)
	}
	for len(f) > 0 {
		counts := strings.SplitN(f[0], "\t", 3)
		f = f[1:]
		if len(counts) < 3 {
			continue
		}
		path := counts[2]
		if path == "" && len(f) > 1 {
			path, f = f[1], f[2:]
		}
		i, ok := at[path]
		if !ok {
			continue
		}
		changes[i].Binary = counts[0] == "-"
		changes[i].Added, changes[i].Deleted = atoi(counts[0]), atoi(counts[1])
	}
	return changes
}
