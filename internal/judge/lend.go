package judge

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/project"
)

// What is lent are links, made anew where they differ: a dependency directory of the place is a directory whose entries
// lead to those of the worker's.
//
//   - A link among the worker's entries that leads back into its worktree (a workspace package, an editable install)
//     leads to the same file of the judged tree instead.
//   - node_modules/.bin goes before the user's PATH in every npm script. A name in it that is also a program of the
//     user's is left out, so that no node, sh or git of the worker's runs; unless the user's own lies in a node_modules
//     too, as a compiler does that was installed for all projects.
//   - A virtual environment is made anew around the user's interpreter of the same version (see venv.go).
//   - Cargo's target is not lent.
//
// The dependencies themselves are what the worker installed. Whoever does not want to take its word for them configures
// tilth.setup.

// shareDeps gives the place the worker's dependency directories and takes back what is no longer lent.
func (p *Checkout) shareDeps(ctx context.Context) error {
	var now []string
	p.laid.SkippedDeps = nil
	for _, dir := range p.wanted() {
		ok, err := p.lendDir(ctx, dir)
		if err != nil {
			return err
		}
		if ok {
			now = append(now, dir)
		}
	}
	for _, dir := range p.lent {
		if !slices.Contains(now, dir) && !p.tracked(dir) {
			if err := proc.RemoveAll(filepath.Join(p.Dir, dir)); err != nil {
				return err
			}
		}
	}
	p.lent = now
	return nil
}

// wanted lists the dependency directories that the tree may want and does not hold.
func (p *Checkout) wanted() []string {
	if !p.o.Borrow {
		return nil
	}
	dirs := directories(p.entries)
	want := map[string]bool{}
	for _, name := range project.ByName(project.Python).Lent { // Python needs no manifest
		want[name] = true
	}
	for _, e := range p.entries {
		base := path.Base(e.Path)
		for _, k := range project.Kinds {
			if !slices.Contains(k.Manifests, base) {
				continue
			}
			for _, name := range k.Lent {
				want[path.Join(path.Dir(e.Path), name)] = true
			}
		}
	}
	var out []string
	for dir := range want {
		// A dependency's own manifest, in a directory that is tracked, wants nothing.
		inDependency := slices.Contains(strings.Split(path.Dir(dir), "/"), "node_modules")
		_, entry := find(p.entries, dir)
		copied := p.kept[theSetup] != nil && p.kept[theSetup].roots[dir]
		if !dirs[dir] && !inDependency && !entry && !copied {
			out = append(out, dir)
		}
	}
	slices.Sort(out)
	return out
}

// lendDir makes one dependency directory; false says that the worker has none.
func (p *Checkout) lendDir(ctx context.Context, dir string) (bool, error) {
	from := filepath.Join(p.o.Worktree, filepath.FromSlash(dir))
	fi, err := os.Lstat(from)
	if err != nil || !fi.IsDir() {
		return false, nil
	}
	links, files := map[string]string{}, map[string][]byte{}
	if slices.Contains(project.ByName(project.Python).Lent, path.Base(dir)) {
		links, files, err = p.venv(ctx, dir)
	} else {
		err = p.linkEntries(dir, "", links)
	}
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(links) == 0 {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, syncDir(filepath.Join(p.Dir, filepath.FromSlash(dir)), links, files, "")
}

// linkEntries links the entries of sub, a directory in the dependency directory dir.
func (p *Checkout) linkEntries(dir, sub string, links map[string]string) error {
	from := filepath.Join(p.o.Worktree, filepath.FromSlash(dir), sub)
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, d := range entries {
		name := path.Join(sub, d.Name())
		switch {
		case slices.Contains(volatile, d.Name()):
		case sub == ".bin" && p.shadows(d.Name()):
		case sub == "" && d.IsDir() && (d.Name() == ".bin" || strings.HasPrefix(d.Name(), "@")):
			if err := p.linkEntries(dir, name, links); err != nil {
				return err
			}
		default:
			links[name] = p.target(dir, from, d)
		}
	}
	return nil
}

// target is where the link for one of the worker's entries leads.
func (p *Checkout) target(dir, from string, d fs.DirEntry) string {
	name := filepath.Join(from, d.Name())
	if d.Type()&fs.ModeSymlink == 0 {
		return name
	}
	to, err := os.Readlink(name)
	if err != nil {
		return name
	}
	if !filepath.IsAbs(to) {
		to = filepath.Join(from, to)
	}
	return p.judged(to, dir)
}

// judged is the path in the place for one in the worktree, but for what lies in the dependency directory dir itself.
func (p *Checkout) judged(to, dir string) string {
	for _, worktree := range p.worktree {
		rel, err := filepath.Rel(worktree, to)
		if err != nil || !filepath.IsLocal(rel) {
			continue
		}
		if in, err := filepath.Rel(filepath.FromSlash(dir), rel); err == nil && filepath.IsLocal(in) {
			return to
		}
		return filepath.Join(p.Dir, rel)
	}
	return to
}

// runners start what a project names, its tests above all.
var runners = []string{
	"node", "npm", "npx", "pnpm", "pnpx", "yarn", "yarnpkg", "bun", "bunx", "corepack", "deno",
}

// shadows reports whether a program of this name would take the place of one of the user's.
func (p *Checkout) shadows(name string) bool {
	found, err := p.program(name)
	if err != nil || slices.Contains(runners, name) {
		return err == nil
	}
	real, err := filepath.EvalSymlinks(found)
	return err != nil || !slices.Contains(strings.Split(real, string(filepath.Separator)), "node_modules")
}

// program finds a program of the user's: on PATH, and not in the worktree.
func (p *Checkout) program(name string) (string, error) {
	var path []string
	for _, dir := range filepath.SplitList(proc.Getenv(p.o.Environ, "PATH")) {
		if rel, err := filepath.Rel(filepath.Dir(p.Dir), dir); err != nil || !filepath.IsLocal(rel) {
			path = append(path, dir)
		}
	}
	return proc.LookPath(name, p.Dir, []string{"PATH=" + strings.Join(path, string(filepath.ListSeparator))})
}
