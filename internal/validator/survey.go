package validator

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/project"
	"github.com/git-tilth/git-tilth/internal/sandbox"
)

// surveyCap bounds how many entries of a worktree are looked at.
const surveyCap = 300_000

// layout has the files of a worktree, read once.
type layout struct {
	root  string // absolute, symlinks resolved
	env   []string
	box   *sandbox.Box
	files []string // slash-separated, relative to root, sorted
	held  []string // all that the tree holds, also what is left out of files; nil where a walk found them

	current, done, later []string // acceptance tests, see Tasks
	seeded               bool     // they are known to be the seed's, not only named like it
}

// required are the acceptance tests that have to pass.
func (p *layout) required() []string {
	out := slices.Concat(p.current, p.done)
	slices.Sort(out)
	return out
}

// survey reads a worktree once. files are its files, nil for a walk.
func survey(in ExecEnv, files []string, t Tasks) *layout {
	p := &layout{root: proc.RealPath(in.Dir), env: environment(in.Env, nil), box: in.Box, held: files}
	if files == nil {
		p.walk()
	} else {
		p.take(files)
	}
	slices.Sort(p.files)
	p.current, p.done, p.later = t.split(p.files)
	p.seeded = t.Seed != nil
	return p
}

// walk finds the files by looking.
func (p *layout) walk() {
	seen := 0
	_ = filepath.WalkDir(p.root, func(name string, d fs.DirEntry, err error) error {
		if seen++; seen > surveyCap {
			return fs.SkipAll
		}
		if err != nil {
			return nil
		}
		if d.IsDir() {
			if name != p.root && p.skipDir(name, d.Name()) {
				return fs.SkipDir
			}
			return nil
		}
		p.files = append(p.files, filepath.ToSlash(strings.TrimPrefix(name, p.root+string(filepath.Separator))))
		return nil
	})
}

// take takes those of the given files that a walk would find.
func (p *layout) take(files []string) {
	skipped := map[string]bool{".": false}
	var skip func(dir string) bool
	skip = func(dir string) bool {
		if known, ok := skipped[dir]; ok {
			return known
		}
		skipped[dir] = skip(path.Dir(dir)) || p.skipDir(filepath.Join(p.root, filepath.FromSlash(dir)), path.Base(dir))
		return skipped[dir]
	}
	for _, f := range files {
		if !skip(path.Dir(f)) {
			p.files = append(p.files, f)
		}
	}
}

func (p *layout) skipDir(name, base string) bool {
	if base == ".git" || project.IsProduct(base) || project.IsForeign(base) {
		return true
	}
	return project.IsBuilt(name, func(file string) bool { // other directories may be called target, too
		_, err := os.Stat(file)
		return err == nil
	})
}

// readCap bounds the bytes read of a file.
const readCap = 8 << 20

// read returns the content of a file, or "" if there is none, also behind a link that leads out of the project.
func (p *layout) read(rel string) string {
	data, err := jsonl.ReadIn(p.root, filepath.FromSlash(rel), readCap)
	if err != nil {
		return ""
	}
	return string(data)
}

func (p *layout) exists(rel string) bool {
	_, ok := slices.BinarySearch(p.files, rel)
	return ok
}

// below returns those of files that lie in dir ("." for all), relative to it.
func below(files []string, dir string) []string {
	if dir == "." {
		return files
	}
	var out []string
	for _, f := range files {
		if rel, ok := strings.CutPrefix(f, dir+"/"); ok {
			out = append(out, rel)
		}
	}
	return out
}

// ending returns those of files with one of the endings.
func ending(files []string, exts ...string) []string {
	var out []string
	for _, f := range files {
		if slices.Contains(exts, path.Ext(f)) {
			out = append(out, f)
		}
	}
	return out
}

// lock returns the lock file by which the dependencies of a directory are installed, else the manifest.
func (p *layout) lock(kind project.Kind, dir string) (project.Lock, bool) {
	for _, l := range append(kind.Locks, kind.NoLock) {
		file := path.Join(dir, l.File)
		if l.File != "" && p.exists(file) && (l.Holds == "" || strings.Contains(p.read(file), l.Holds)) {
			return l, true
		}
	}
	return project.Lock{}, false
}
