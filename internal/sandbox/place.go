package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/pattern"
)

// Place shows a tree at the paths of the user's checkouts. Imports, links and settings that name a checkout lead to the
// tree then. Without a mount namespace the checkouts are closed, so that no test can load them by mistake.
type Place struct {
	Tree string // a worktree or a judged checkout
	// Checkouts are the user's working trees of the repository, the session's first.
	Checkouts []string
	Git       string // the repository's common directory
	// Installed are the directories of the checkouts that stay visible, read-only, where the tree has none.
	Installed []string
	Starts    bool // a command for a directory of Tree starts in the same directory of the first checkout
}

// At returns a Box that shows a tree at the paths of the user's checkouts.
func (b *Box) At(p Place) *Box {
	return b.but(func(out *Box) {
		p.Tree = real(p.Tree)
		at := links(nil).reals(p.Checkouts)
		p.Checkouts = slices.DeleteFunc(at, func(dir string) bool { return !b.canCover(dir, p.Tree) })
		p.Git, p.Installed = real(p.Git), links(nil).reals(p.Installed)
		for _, o := range b.Open { // a virtual environment on PATH, and paths of tilth.sandboxRead
			fi, err := os.Stat(o.Path)
			if err == nil && fi.IsDir() && p.covers(o.Path) && !below(o.Path, p.Git) && !below(p.Git, o.Path) {
				p.Installed = append(p.Installed, real(o.Path))
			}
		}
		if out.place = &p; len(p.Checkouts) == 0 {
			out.place = nil
		}
	})
}

// canCover reports whether commands need no file of a checkout except the repository.
func (b *Box) canCover(dir, tree string) bool {
	needed := []string{tree, b.home, b.Layers, b.Temp, "/dev", "/tmp"}
	for _, s := range b.State {
		needed = append(needed, s.Path)
	}
	return !slices.ContainsFunc(links(nil).reals(needed), func(path string) bool { return below(path, dir) })
}

// covers reports whether a path is in one of the checkouts.
func (p *Place) covers(path string) bool {
	inside := func(dir string) bool { return path != dir && below(path, dir) }
	return p != nil && slices.ContainsFunc(p.Checkouts, inside)
}

// placed returns the Box for commands in a mount namespace, or without one: there the checkouts are closed.
func (b *Box) placed(space bool) *Box {
	p := b.place
	if p == nil {
		return b
	}
	return b.but(func(out *Box) {
		out.links = links{}
		inside := func(path string) bool {
			path = out.links.real(path)
			return (p.covers(path) || slices.Contains(p.Checkouts, path)) && !below(path, p.Tree)
		}
		out.Read = slices.DeleteFunc(slices.Clone(b.Read), inside)
		out.Open = slices.DeleteFunc(slices.Clone(b.Open), func(o Opening) bool { return inside(o.Path) })
		out.Read = append(out.Read, p.Git)
		out.Read = append(out.Read, p.Installed...)
		if !space {
			out.Hide = append(slices.Clone(b.Hide), p.Checkouts...)
		}
	})
}

// Inside returns the path of a file of the tree as commands see it: in the first checkout if they start there.
func (b *Box) Inside(path string) string {
	if b == nil || b.place == nil || !b.place.Starts {
		return path
	}
	at := real(path)
	if _, err := Spaces(); err != nil || !below(at, b.place.Tree) {
		return path
	}
	return b.place.Checkouts[0] + strings.TrimPrefix(at, b.place.Tree)
}

// Installed returns the directory of a user's checkout that commands see instead of a missing or empty one of the
// tree, or "".
func (b *Box) Installed(name string) string {
	if b == nil || b.place == nil || !isEmpty(filepath.Join(b.place.Tree, name)) {
		return ""
	}
	for _, dir := range b.place.Checkouts {
		if at := filepath.Join(dir, name); slices.Contains(b.place.Installed, at) {
			return at
		}
	}
	return ""
}

// isEmpty reports whether a directory is missing or has no entries.
func isEmpty(dir string) bool {
	entries, err := os.ReadDir(dir)
	fi, lerr := os.Lstat(dir)
	return lerr != nil || err == nil && fi.IsDir() && len(entries) == 0
}

// pointers maps the files of the tree that name the repository's git directory to their contents with another path for
// it: the .git file of a worktree, and the lists of borrowed objects of submodules.
func (p *Place) pointers(git string) map[string]string {
	out := map[string]string{}
	add := func(name string) {
		fi, err := os.Lstat(filepath.Join(p.Tree, name))
		if err != nil || !fi.Mode().IsRegular() {
			return
		}
		data, err := jsonl.ReadIn(p.Tree, name, maxPointer)
		if text := string(data); err == nil && strings.Contains(text, p.Git+"/") {
			out[name] = strings.ReplaceAll(text, p.Git+"/", git+"/")
		}
	}
	const borrowed = "objects/info/alternates"
	add(".git")
	var modules func(dir string, depth int)
	modules = func(dir string, depth int) {
		list, _ := jsonl.ReadIn(p.Tree, filepath.Join(dir, ".gitmodules"), maxPointer)
		for _, m := range modulePath().FindAllStringSubmatch(string(list), maxModules) {
			at := filepath.Join(dir, filepath.FromSlash(m[1]))
			if filepath.IsLocal(at) && depth < 8 {
				add(filepath.Join(at, ".git", borrowed))
				add(filepath.Join(".git", "modules", at, borrowed))
				modules(at, depth+1)
			}
		}
	}
	modules("", 0)
	return out
}

const (
	maxPointer = 1 << 20
	maxModules = 1000
)

var modulePath = pattern.New(`(?m)^\s*path\s*=\s*"?([^"\n]+?)"?\s*$`)
