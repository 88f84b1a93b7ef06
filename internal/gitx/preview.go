package gitx

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
)

// Borrow makes a git directory in dir, without refs. Its alternates are the objects of the repository at common and of
// more git directories.
func Borrow(common, dir string, more ...string) error {
	if shallow, err := readFile(filepath.Join(common, "shallow")); err == nil {
		if err := writeIn(dir, "shallow", string(shallow)); err != nil {
			return err
		}
	}
	return errors.Join(writeIn(dir, "objects/info/alternates", Alternates(append([]string{common}, more...)...)),
		os.MkdirAll(filepath.Join(dir, "refs", "heads"), 0o700), emptyGitDir(common, dir))
}

// Alternates returns the path of the file through which a git directory borrows objects.
func Alternates(others ...string) (lines string) {
	for _, from := range others {
		objects := filepath.Join(from, "objects")
		if strings.ContainsAny(objects[:1], `"#`) || strings.ContainsAny(objects, "\"\\\n") {
			objects = Quote(objects)
		}
		lines += objects + "\n"
	}
	return lines
}

// emptyGitDir makes a minimal git directory in dir with the object format of the repository at common. The caller adds
// the objects.
func emptyGitDir(common, dir string) error {
	return errors.Join(writeIn(dir, "config", leastConfig(common)), writeIn(dir, "HEAD", "ref: refs/heads/none\n"),
		os.MkdirAll(filepath.Join(dir, "refs"), 0o700))
}

// leastConfig returns the config of a git directory with the format of the one at common, or "" for the default. Only
// the owner can read its files.
func leastConfig(common string) string {
	config := "[core]\n\trepositoryformatversion = 1\n\tsharedRepository = 0600\n"
	if common != "" && usesSHA256(common) {
		config += "[extensions]\n\tobjectFormat = sha256\n"
	}
	return config
}

// writeIn writes a private file below dir.
func writeIn(dir, name, content string) error {
	path := filepath.Join(dir, filepath.FromSlash(name))
	if is, err := os.ReadFile(path); err == nil && string(is) == content {
		return nil // unchanged after a kill here
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(content), 0o600)
}

// PreviewTree returns the tree that StageAll would make, and changes neither the worktree nor the repository. It
// writes objects to the git directory dir; with "" they are deleted when it returns.
func (g *Git) PreviewTree(ctx context.Context, wt Worktree, base, dir string) (tree string, err error) {
	look := *g
	look.dry = false
	tree, _, err = look.stagePreview(ctx, wt, base, dir)
	return tree, err
}

func (g *Git) stagePreview(ctx context.Context, wt Worktree, base, dir string) (
	tree string, leftOut []string, err error,
) {
	ahead := *g
	ahead.dry, ahead.trace = false, g.tracePreview(wt.AdminDir, wt.AdminDir)
	q := quarantine{wt: wt, look: true}
	if dir != "" {
		q.objects, q.private = filepath.Join(dir, "objects"), true
	}
	return ahead.stageIn(ctx, q, base)
}

// DryRunCopy returns a Git for a temporary git directory that replaces the one at place in a dry run. Writing commands
// run there, so that later commands can read the result. They are traced as skipped commands at place. Outside a dry
// run it returns g.
func (g *Git) DryRunCopy(dir, place string) *Git {
	if !g.dry {
		return g
	}
	there := *g
	there.dry, there.trace = false, g.tracePreview(dir, place)
	return &there
}

// tracePreview traces the commands of a preview. In a dry run it traces writing commands as skipped commands at place,
// and all others as commands that change nothing.
func (g *Git) tracePreview(dir, place string) func(Call) {
	return func(c Call) {
		if g.dry && c.Mutates {
			args := make([]string, len(c.Args))
			for i, a := range c.Args {
				args[i] = strings.ReplaceAll(a, dir, place)
			}
			c.Args, c.Took, c.Err, c.Skipped = args, 0, nil, true
		} else {
			c.Mutates, c.Ahead = false, true
		}
		g.trace(c)
	}
}

// CopyIndex copies a worktree's index file with its time, because git compares that time with files changed in the
// same tick.
func CopyIndex(wt Worktree, to string) (index []byte, err error) {
	from := filepath.Join(wt.AdminDir, "index")
	if index, err = readFile(from); err != nil {
		return nil, err
	}
	if fi, serr := os.Stat(from); serr == nil {
		defer func() { _ = os.Chtimes(to, fi.ModTime(), fi.ModTime()) }()
	}
	return index, os.WriteFile(to, index, 0o600)
}
