package gitx

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/sandbox"
	"github.com/git-tilth/git-tilth/internal/text"
)

// inside is how a Git puts what lies in a worktree, and git would run, into a sandbox. Git itself stays outside: it gets
// the sandbox's descriptor, and instead of a hook or filter a script that enters it.
type inside struct {
	box     *sandbox.Box
	filters []string // settings that name such scripts for the filters, as configParameters takes them
}

// Inside returns a Git whose hooks and filters that lie in the worktree run in box, with the right to change the index
// and to add objects, as hooks do. A nil box changes nothing. What it needs is taken away by remove.
func (g *Git) Inside(ctx context.Context, wt Worktree, box *sandbox.Box) (in *Git, remove func(), err error) {
	if box == nil {
		return g, func() {}, nil
	}
	entries, err := g.ConfigList(ctx, wt.Common)
	if err != nil {
		return nil, nil, err
	}
	dir, remove, err := proc.TempDir("hooks")
	if err != nil {
		return nil, nil, err
	}
	copied := *g
	copied.in = inside{box: box.With(wt.Path, wt.AdminDir, filepath.Join(wt.Common, "objects"))}
	for i, e := range entries {
		if !strings.HasPrefix(e.Key, "filter.") || !runsFromTree(e.Value, wt.Path) {
			continue
		}
		switch script := filepath.Join(dir, fmt.Sprint(i)); filepath.Ext(e.Key) {
		case ".clean", ".smudge", ".process":
			body := copied.in.script("/bin/sh", "-c", strings.ReplaceAll(e.Value, "%f", `"$1"`), "sh")
			if err := os.WriteFile(script, body, 0o700); err != nil {
				remove()
				return nil, nil, err
			}
			if strings.Contains(e.Value, "%f") {
				script += " %f"
			}
			copied.in.filters = append(copied.in.filters, e.Key+"="+script)
		}
	}
	return &copied, remove, nil
}

// runsFromTree reports whether a shell command names a file of the tree, in which it is run.
func runsFromTree(command, tree string) bool {
	for _, word := range strings.FieldsFunc(command, func(r rune) bool { return strings.ContainsRune(" \t\"'=;|&()", r) }) {
		path := word
		if !filepath.IsAbs(path) {
			path = filepath.Join(tree, path)
		}
		if rel, err := filepath.Rel(tree, path); err != nil || !filepath.IsLocal(rel) || rel == "." {
			continue
		}
		if _, err := os.Lstat(path); err == nil || strings.HasPrefix(word, ".") && strings.Contains(word, "/") {
			return true
		}
	}
	return false
}

// script is a shell script that runs a program inside, with arguments before its own.
func (in inside) script(program string, args ...string) []byte {
	return []byte("#!/bin/sh\nTMPDIR=" + text.ShellQuote(in.box.Temp) + " exec " +
		text.ShellQuote(in.box.Enter(program, args...)...) + " \"$@\"\n")
}

// wrap makes a directory of hooks that run those of another one inside.
func (in inside) wrap(hooks string) (dir string, remove func(), err error) {
	if dir, remove, err = proc.TempDir("hooks"); err != nil {
		return "", nil, err
	}
	entries, _ := os.ReadDir(hooks)
	for _, e := range entries {
		hook := filepath.Join(hooks, e.Name())
		if fi, err := os.Stat(hook); err != nil || !fi.Mode().IsRegular() || fi.Mode()&0o111 == 0 {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, e.Name()), in.script(hook), 0o700); err != nil {
			remove()
			return "", nil, err
		}
	}
	return dir, remove, nil
}
