// Package packages reads the files of a worktree once, and finds its packages, their manifests and lock files.
package packages

import (
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/project"
	"github.com/git-tilth/git-tilth/internal/sandbox"
)

// surveyCap limits the examined entries of a worktree.
const surveyCap = 300_000

// Tree has the files of a worktree.
type Tree struct {
	Root  string // absolute, symlinks resolved
	Env   []string
	Box   *sandbox.Box
	Files []string // slash-separated, relative to Root, sorted
	Held  []string // all paths of the tree, including those not in Files; nil after a walk
}

// Survey reads a worktree. files are its files, nil for a walk.
func Survey(dir string, env []string, box *sandbox.Box, files []string) *Tree {
	p := &Tree{Root: proc.RealPath(dir), Env: env, Box: box, Held: files}
	if files == nil {
		p.walk()
	} else {
		p.take(files)
	}
	slices.Sort(p.Files)
	return p
}

// walk finds the files by looking.
func (p *Tree) walk() {
	seen := 0
	_ = filepath.WalkDir(p.Root, func(name string, d fs.DirEntry, err error) error {
		if seen++; seen > surveyCap {
			return fs.SkipAll
		}
		if err != nil {
			return nil
		}
		if d.IsDir() {
			if name != p.Root && p.skipDir(name, d.Name()) {
				return fs.SkipDir
			}
			return nil
		}
		p.Files = append(p.Files, filepath.ToSlash(strings.TrimPrefix(name, p.Root+string(filepath.Separator))))
		return nil
	})
}

// take adds files, except those that a walk of the tree would skip.
func (p *Tree) take(files []string) {
	skipped := map[string]bool{".": false}
	var skip func(dir string) bool
	skip = func(dir string) bool {
		if known, ok := skipped[dir]; ok {
			return known
		}
		skipped[dir] = skip(path.Dir(dir)) || p.skipDir(filepath.Join(p.Root, filepath.FromSlash(dir)), path.Base(dir))
		return skipped[dir]
	}
	for _, f := range files {
		if !skip(path.Dir(f)) {
			p.Files = append(p.Files, f)
		}
	}
}

func (p *Tree) skipDir(name, base string) bool {
	if base == ".git" || project.IsProduct(base) || project.IsForeign(base) {
		return true
	}
	return project.IsBuilt(name, project.OnDisk("")) // other directories may be called target, too
}

// ReadCap limits the bytes read of a file.
const ReadCap = 8 << 20

// Read returns the content of a file, or "" if it is missing or a link out of the project.
func (p *Tree) Read(rel string) string {
	data, err := jsonl.ReadIn(p.Root, filepath.FromSlash(rel), ReadCap)
	if err != nil {
		return ""
	}
	return string(data)
}

// Dirs returns the directories below the top that have a manifest.
func (p *Tree) Dirs() (dirs []string) {
	for _, k := range project.Kinds {
		for _, m := range k.Manifests {
			if !k.Else {
				dirs = append(dirs, p.DirsOf(m)...)
			}
		}
	}
	dirs = slices.DeleteFunc(dirs, func(dir string) bool { return dir == "." })
	return slices.Compact(slices.Sorted(slices.Values(dirs)))
}

// Exists reports whether the tree has a file.
func (p *Tree) Exists(rel string) bool {
	_, ok := slices.BinarySearch(p.Files, rel)
	return ok
}

// Lock returns the lock file for the dependencies of a directory, else the manifest.
func (p *Tree) Lock(kind project.Kind, dir string) (project.Lock, bool) {
	for _, l := range append(kind.Locks, kind.NoLock) {
		file := path.Join(dir, l.File)
		if l.File != "" && p.Exists(file) && (l.Holds == "" || strings.Contains(p.Read(file), l.Holds)) {
			return l, true
		}
	}
	return project.Lock{}, false
}

// dataDirs are the names of directories with projects that are test data.
var dataDirs = []string{"testdata", "fixtures", "__fixtures__"}

// DirsOf returns the directories with a file of that name, "." or "sub/dir", except test data.
func (p *Tree) DirsOf(name string) []string {
	var out []string
	for _, f := range p.Files {
		dir := path.Dir(f)
		isData := func(part string) bool { return slices.Contains(dataDirs, part) }
		if project.Named(path.Base(f), name) && !slices.ContainsFunc(strings.Split(dir, "/"), isData) {
			out = append(out, dir)
		}
	}
	return out
}

// Installed returns the directory of installed dependencies of a package: in the tree, else in the user's checkout.
func (p *Tree) Installed(dir, name string) string {
	at := path.Join(dir, name)
	if box := p.Box.Installed(at); box != "" {
		return box
	}
	return filepath.Join(p.Root, filepath.FromSlash(at))
}
