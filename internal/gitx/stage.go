package gitx

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// StageAll puts everything into the index that is not ignored and no build
// product, and names the result: tree is its object id. What base (a commit)
// tracks stays tracked, wherever it lies. leftOut lists, relative to the
// worktree and sorted, what no ignore rule covers and what was left out all the
// same: build products, repositories within the worktree, files that cannot be
// read.
func (g *Git) StageAll(ctx context.Context, wt Worktree, base string) (tree string, leftOut []string, err error) {
	if err := g.prepare(ctx, wt); err != nil {
		return "", nil, err
	}
	add := g.inWorktree(wt, "add", "--all", "--sparse", "--ignore-errors")
	if _, err := g.keepOut(ctx, wt, &add, nil); err != nil {
		return "", nil, err
	}
	out, addErr := g.mutate(ctx, add)
	if out.skipped {
		return "", nil, nil
	}
	if addErr != nil && exitCode(addErr) != 1 {
		return "", nil, addErr
	}
	leftOut, more, err := g.sortOut(ctx, wt, base)
	if err != nil {
		return "", nil, err
	}
	if len(more) > 0 {
		if err := g.addPaths(ctx, wt, more); err != nil {
			return "", nil, err
		}
	}
	// With --ignore-errors git goes on past what it cannot add; that is then
	// still untracked. Anything else is an error.
	if addErr != nil && !slices.ContainsFunc(leftOut, func(p string) bool { return productRoot(wt.Path, p) == "" }) {
		return "", nil, addErr
	}
	written, err := g.mutate(ctx, g.inWorktree(wt, "write-tree"))
	if err != nil {
		return "", nil, err
	}
	return strings.TrimSpace(string(written.stdout)), leftOut, nil
}

// keepOut makes c run with ignore rules of the lowest rank for the build
// products, or, if keep is given, for exactly those paths. core.excludesFile is
// the place for that: rules of the lowest rank, which a .gitignore may overrule
// and which keep git from walking through a node_modules. The user's own file
// is copied in. The file lies in the worktree's admin directory and goes when
// that goes; undo removes it earlier.
func (g *Git) keepOut(ctx context.Context, wt Worktree, c *command, keep []string) (undo func(), err error) {
	s, err := g.settingsAt(ctx, wt.Path, g.inWorktree(wt))
	if err != nil {
		return nil, err
	}
	name, rules := "tilth-products", productRules()
	if keep != nil {
		name, rules = "tilth-keep", exactRules(keep)
	}
	users, err := os.ReadFile(s.excludes)
	if err != nil && !errors.Is(err, os.ErrNotExist) && s.excludes != "" {
		return nil, fmt.Errorf("core.excludesFile: %w", err)
	}
	file := filepath.Join(wt.AdminDir, name)
	if !g.dry {
		if err := os.WriteFile(file, []byte(rules+string(users)), 0o600); err != nil {
			return nil, err
		}
	}
	c.args = append([]string{"-c", "core.excludesFile=" + file}, c.args...)
	return func() { os.Remove(file) }, nil
}

// exactRules writes ignore rules that match exactly these paths. A path with a
// newline cannot be written in one; ? stands for it.
func exactRules(paths []string) string {
	var b strings.Builder
	for _, p := range paths {
		b.WriteByte('/')
		for i := range len(p) {
			switch p[i] {
			case '\\', '*', '?', '[', ' ', '\t', '\r':
				b.WriteByte('\\')
				b.WriteByte(p[i])
			case '\n':
				b.WriteByte('?')
			default:
				b.WriteByte(p[i])
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// sortOut looks at the index after `git add`: products and repositories that
// the worker itself had added and that base does not track are taken out again.
// It returns what is left out, and what git left out as a product and is none.
func (g *Git) sortOut(ctx context.Context, wt Worktree, base string) (leftOut, more []string, err error) {
	out, err := g.read(ctx, g.inWorktree(wt, "ls-files", "-z", "-t", "--stage", "--cached", "--others", "--exclude-standard", "--directory", "--no-empty-directory"))
	if err != nil {
		return nil, nil, err
	}
	var suspects []string
	for _, f := range fields(out) {
		if path, ok := strings.CutPrefix(f, "? "); ok {
			if root := productRoot(wt.Path, path); root != "" {
				leftOut = append(leftOut, root)
			} else {
				more = append(more, path)
			}
			continue
		}
		head, path, _ := strings.Cut(f, "\t")
		if strings.HasPrefix(head, "H 160000 ") || productRoot(wt.Path, path) != "" {
			suspects = append(suspects, path)
		}
	}
	_ = base
	_ = suspects
	slices.Sort(leftOut)
	return slices.Compact(leftOut), nil, nil
}

// addPaths stages exactly these paths.
func (g *Git) addPaths(ctx context.Context, wt Worktree, paths []string) error {
	c := g.inWorktree(wt, "add", "--all", "--sparse", "--ignore-errors", "--pathspec-from-file=-", "--pathspec-file-nul")
	c.more = append(c.more, "GIT_LITERAL_PATHSPECS=1")
	c.stdin = []byte(strings.Join(paths, "\x00"))
	_, err := g.mutate(ctx, c)
	return err
}
