package gitx

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/sandbox"
	"github.com/git-tilth/git-tilth/internal/text"
)

// treeHooks are the hooks of a repository whose config points into the tree (core.hooksPath = .husky): where they lie
// in a worktree, slash-separated, and what is laid out with them. A hook often runs files beside its directory.
type treeHooks struct{ dir, top string }

// hookPin says which hooks run in a worktree while a worker can rewrite those that lie there.
type hookPin struct {
	base string
	// untracked are the files beside and below the hooks that no commit has, as a setup left them before the first
	// turn.
	untracked map[string]hookFile
}

type hookFile struct {
	mode    fs.FileMode
	content []byte
}

// maxHookFile is the largest file that is kept for a hook.
const maxHookFile = 1 << 20

// Hooks says where in the worktree the repository's hooks lie, with what they may run beside them, "" if they lie
// elsewhere, and whether it has one of some. It costs no process once the repository's settings are known.
func (g *Git) Hooks(ctx context.Context, wt Worktree) (inTree string, has func(names ...string) bool, err error) {
	s, err := g.settingsAt(ctx, wt.Path, g.InWorktree(wt))
	if err != nil {
		return "", nil, err
	}
	dir := cmp.Or(s.hooksPath, filepath.Join(wt.Common, "hooks"))
	return hooksInTree(wt, s).top, func(names ...string) bool {
		return slices.ContainsFunc(names, func(name string) bool {
			fi, err := os.Stat(filepath.Join(dir, name))
			return err == nil && fi.Mode().IsRegular() && fi.Mode()&0o111 != 0
		})
	}, nil
}

func hooksInTree(wt Worktree, s *settings) treeHooks {
	rel, err := filepath.Rel(wt.Path, s.hooksPath)
	if s.hooksPath == "" || err != nil || !filepath.IsLocal(rel) || rel == "." {
		return treeHooks{}
	}
	h := treeHooks{dir: filepath.ToSlash(rel), top: path.Dir(filepath.ToSlash(rel))}
	if h.top == "." {
		h.top = h.dir
	}
	return h
}

// PinHooks makes the hooks that lie in the worktree run as base, a commit, has them. Files beside them that no commit
// has run as they were when this was first called.
func (g *Git) PinHooks(ctx context.Context, wt Worktree, base string) error {
	top, _, err := g.Hooks(ctx, wt)
	if err != nil || top == "" || g.dry {
		return err
	}
	pin, _ := g.known.hooks.get(wt.Path)
	if pin.untracked == nil {
		if pin.untracked, err = g.untrackedHooks(ctx, wt, base, top); err != nil {
			return err
		}
	}
	pin.base = base
	g.known.hooks.set(wt.Path, pin)
	return nil
}

// untrackedHooks reads the files below top that base does not have.
func (g *Git) untrackedHooks(ctx context.Context, wt Worktree, base, top string) (map[string]hookFile, error) {
	list, err := g.List(ctx, InRepo(wt.Common, "ls-tree", "-r", "-z", "--name-only", "--full-tree", base, "--", top))
	if err != nil {
		return nil, err
	}
	tracked := map[string]bool{}
	for _, p := range list {
		tracked[p] = true
	}
	files := map[string]hookFile{}
	_ = filepath.WalkDir(filepath.Join(wt.Path, top), func(p string, d fs.DirEntry, err error) error {
		rel, relErr := filepath.Rel(wt.Path, p)
		if err != nil || relErr != nil || !d.Type().IsRegular() || tracked[filepath.ToSlash(rel)] {
			return nil
		}
		fi, err := d.Info()
		if err != nil || fi.Size() > maxHookFile {
			return nil
		}
		if content, err := readFile(p); err == nil {
			files[rel] = hookFile{fi.Mode().Perm(), content}
		}
		return nil
	})
	return files, nil
}

// pin makes c, a command in a worktree, run the hooks that were known when the run began, and those of the tree from a
// directory of their own, which remove takes away. Those of the tree run in the sandbox, if there is one.
func (g *Git) pin(ctx context.Context, c *Command) (remove func(), err error) {
	wt := c.wt
	remove = func() {}
	s, err := g.settingsAt(ctx, wt.Path, g.InWorktree(wt))
	if err != nil {
		return remove, err
	}
	hooks, dir := hooksInTree(wt, s), cmp.Or(s.hooksPath, filepath.Join(wt.Common, "hooks"))
	if hooks.top != "" && !g.dry {
		var private string
		if private, remove, err = proc.TempDir("hooks"); err != nil {
			return func() {}, err
		}
		if err := g.layHooks(ctx, wt, hooks, private); err != nil {
			remove()
			return func() {}, err
		}
		dir, c.Boxed = filepath.Join(private, filepath.FromSlash(hooks.dir)), true
	}
	if c.Boxed && g.in.box != nil && !g.dry {
		laid := remove
		wrapped, unwrap, err := g.in.wrap(dir)
		if err != nil {
			laid()
			return func() {}, err
		}
		dir, remove = wrapped, func() { unwrap(); laid() }
	}
	c.Args = append([]string{"-c", "core.hooksPath=" + dir}, c.Args...)
	return remove, nil
}

// layHooks lays the pinned hooks of the tree out in an empty directory.
func (g *Git) layHooks(ctx context.Context, wt Worktree, hooks treeHooks, private string) error {
	pin, ok := g.known.hooks.get(wt.Path)
	if !ok {
		pin.base = "HEAD"
	}
	env := []string{"GIT_INDEX_FILE=" + filepath.Join(private, ".index"), "GIT_WORK_TREE=" + private}
	for _, args := range [][]string{
		{"read-tree", "--prefix=" + hooks.top + "/", pin.base + ":" + hooks.top}, {"checkout-index", "--all",
			"--force"},
	} {
		c := g.InWorktree(wt, args...)
		c.Dir, c.wt, c.Vars = private, Worktree{}, append([]string{"GIT_DIR=" + wt.AdminDir}, env...)
		// 128: the commit has no such directory.
		if _, err := g.Mutate(ctx, c); err != nil && ExitCode(err) != 128 {
			return err
		}
	}
	for rel, f := range pin.untracked {
		to := filepath.Join(private, rel)
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(to, f.content, f.mode); err != nil {
			return err
		}
	}
	return os.MkdirAll(filepath.Join(private, strings.TrimSuffix(hooks.dir, "/")), 0o700)
}

// inside is how a Git puts what lies in a worktree, and git would run, into a sandbox. Git itself stays outside: it
// gets the sandbox's descriptor, and instead of a hook or filter a script that enters it.
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
	s, err := g.settingsAt(ctx, wt.Path, g.InWorktree(wt))
	if err != nil {
		return nil, nil, err
	}
	return g.filtersInside(s.filters, wt.Path, box.With(wt.Path, wt.AdminDir, filepath.Join(wt.Common, "objects")))
}

// filtersInside is Inside, for what the box allows already. The scripts lie where nothing in the box can change them.
func (g *Git) filtersInside(filters []string, tree string, box *sandbox.Box) (in *Git, remove func(), err error) {
	dir, remove, err := proc.TempDir("hooks")
	if err != nil {
		return nil, nil, err
	}
	copied := *g
	copied.in = inside{box: box}
	for i, f := range filters {
		key, command, _ := strings.Cut(f, "=")
		if !runsFromTree(command, tree) {
			continue
		}
		script := filepath.Join(dir, fmt.Sprint(i))
		body := copied.in.script("/bin/sh", "-c", strings.ReplaceAll(command, "%f", `"$1"`), "sh")
		if err := os.WriteFile(script, body, 0o700); err != nil {
			remove()
			return nil, nil, err
		}
		if strings.Contains(command, "%f") {
			script += " %f"
		}
		copied.in.filters = append(copied.in.filters, key+"="+script)
	}
	return &copied, remove, nil
}

// filtering are the commands that read the files of a work tree as their content would be staged, or write them.
var filtering = []string{"add", "commit", "diff-index", "ls-files", "read-tree", "reset", "restore", "status",
	"update-index", "worktree", "write-tree"}

// boxed is the Git that runs a command.
func (g *Git) boxed(ctx context.Context, c Command) (in *Git, remove func(), err error) {
	tree := cmp.Or(c.Tree, c.wt.Path)
	if g.Boxing == nil || g.in.box != nil || tree == "" || g.dry && c.mutates ||
		!slices.Contains(filtering, subcommand(c.Args)) {
		return g, func() {}, nil
	}
	asked := g.In(tree)
	switch {
	case c.wt.Path != "":
		asked = g.InWorktree(c.wt)
	case absent(tree): // it is made
		asked = InRepo(c.Dir)
	}
	s, err := g.settingsAt(ctx, tree, asked)
	if err != nil {
		return g, func() {}, nil // git says itself what is wrong with the settings
	}
	lies := func(filter string) bool {
		_, command, _ := strings.Cut(filter, "=")
		return runsFromTree(command, tree)
	}
	if !slices.ContainsFunc(s.filters, lies) && !(c.Hooks && hooksInTree(c.wt, s).top != "") {
		return g, func() {}, nil
	}
	box, err := g.Boxing()
	if box == nil || err != nil {
		return g, func() {}, err
	}
	temp, gone, err := proc.TempDir("run")
	if err != nil {
		return nil, nil, err
	}
	box = box.In(temp).With(tree)
	if c.wt.Path != "" {
		box = box.With(c.wt.AdminDir, filepath.Join(c.wt.Common, "objects"))
	}
	in, unwrap, err := g.filtersInside(s.filters, tree, box)
	if err != nil {
		gone()
		return nil, nil, err
	}
	return in, func() { unwrap(); gone() }, nil
}

// runsFromTree reports whether a shell command names a file of the tree, in which it is run, or may name one of a tree
// that is not there yet.
func runsFromTree(command, tree string) bool {
	separates := func(r rune) bool { return strings.ContainsRune(" \t\"'=;|&()", r) }
	for _, word := range strings.FieldsFunc(command, separates) {
		path := word
		if !filepath.IsAbs(path) {
			path = filepath.Join(tree, path)
		}
		if rel, err := filepath.Rel(tree, path); err != nil || !filepath.IsLocal(rel) || rel == "." {
			continue
		}
		if _, err := os.Lstat(path); err == nil || strings.Contains(word, "/") &&
			(strings.HasPrefix(word, ".") || absent(tree)) {
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
