package gitx

import (
	"context"
	"path/filepath"
	"strings"
)

// LayOut makes the files in dir equal to the tree to. dir holds a git directory
// of its own, whose index is that of the tree from; with from "", whatever the
// index and the files hold is replaced. Files that are not in the index stay.
func (g *Git) LayOut(ctx context.Context, dir, from, to string) error {
	args := []string{"read-tree", "--reset", "-u", to}
	if from != "" {
		// Two trees: only what differs between them is looked at.
		args = []string{"read-tree", "-m", "-u", from, to}
	}
	_, err := g.mutate(ctx, laidOut(dir, args...))
	return err
}

// LayOutPaths gives the files at paths the contents that the commit source has
// for them, in the index of dir too.
func (g *Git) LayOutPaths(ctx context.Context, dir, source string, paths []string) error {
	c := laidOut(dir, "--literal-pathspecs", "restore", "--quiet", "--source="+source, "--staged", "--worktree",
		"--pathspec-from-file=-", "--pathspec-file-nul")
	c.stdin = []byte(strings.Join(paths, "\x00") + "\x00")
	_, err := g.mutate(ctx, c)
	return err
}

func laidOut(dir string, args ...string) command {
	return command{dir: dir, args: append([]string{"--git-dir=" + filepath.Join(dir, ".git"), "--work-tree=" + dir}, args...)}
}

// TagRefs returns the tags of a repository as lines for a packed-refs file.
func (g *Git) TagRefs(ctx context.Context, common string) ([]byte, error) {
	return g.read(ctx, inRepo(common, "for-each-ref", "--format=%(objectname) %(refname)", "refs/tags/"))
}

// TreeBlobs returns the object ids of the files of a commit or tree that lie at
// paths; a path that is not there is left out.
func (g *Git) TreeBlobs(ctx context.Context, common, treeish string, paths []string) (map[string]string, error) {
	blobs := map[string]string{}
	if len(paths) == 0 {
		return blobs, nil
	}
	args := []string{"--literal-pathspecs", "ls-tree", "-r", "-z", "--full-tree", treeish, "--"}
	out, err := g.read(ctx, inRepo(common, append(args, paths...)...))
	if err != nil {
		return nil, err
	}
	// "<mode> blob <oid> TAB path"
	for _, f := range fields(out) {
		head, path, _ := strings.Cut(f, "\t")
		if words := strings.Fields(head); len(words) == 3 && words[1] == "blob" {
			blobs[path] = words[2]
		}
	}
	return blobs, nil
}
