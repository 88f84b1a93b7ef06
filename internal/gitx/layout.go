package gitx

import (
	"bytes"
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
	place := []string{"--git-dir=" + filepath.Join(dir, ".git"), "--work-tree=" + dir}
	return command{dir: dir, args: append(place, args...)}
}

// TagRefs returns the tags of a repository as lines for a packed-refs file.
func (g *Git) TagRefs(ctx context.Context, common string) ([]byte, error) {
	return g.read(ctx, inRepo(common, "for-each-ref", "--format=%(objectname) %(refname)", "refs/tags/"))
}

// FilesAt returns the contents of files of a commit, by their paths; links within
// the commit are followed, and what is not there or no file is left out.
func (g *Git) FilesAt(ctx context.Context, common, commit string, paths []string) (map[string][]byte, error) {
	var in strings.Builder
	for _, p := range paths {
		in.WriteString(commit + ":" + p + "\n")
	}
	c := inRepo(common, "cat-file", "--batch", "--follow-symlinks")
	c.stdin = []byte(in.String())
	out, err := g.read(ctx, c)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for _, p := range paths {
		head, rest, ok := bytes.Cut(out, []byte("\n"))
		words := strings.Fields(string(head))
		if !ok || len(words) == 0 {
			break
		}
		out = rest
		switch words[0] {
		case "dangling", "loop", "notdir", "symlink":
			// The size and then the name of what was not found.
			out = after(out, words[1])
			continue
		}
		if len(words) != 3 || words[2] == "missing" {
			continue
		}
		n := atoi(words[2])
		if n > len(out) {
			break
		}
		if words[1] == "blob" {
			files[p] = out[:n:n]
		}
		out = after(out, words[2])
	}
	return files, nil
}

// after returns what follows an object of a size and its newline.
func after(out []byte, size string) []byte {
	return out[min(atoi(size)+1, len(out)):]
}
