package judge

import (
	"bytes"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/git-tilth/git-tilth/internal/proc"
)

// syncDir makes the directory top hold exactly these links and files, by their paths in it, and touches nothing that is
// as it should be. An entry named spared is left alone.
func syncDir(top string, links map[string]string, files map[string][]byte, spared string) error {
	if fi, err := os.Lstat(top); err == nil && !fi.IsDir() {
		if err := os.Remove(top); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(top, 0o700); err != nil {
		return err
	}
	g := dirSync{top: top, links: links, files: files, spared: spared, dirs: map[string]bool{".": true}}
	for name := range links {
		addAbove(g.dirs, name)
	}
	for name := range files {
		addAbove(g.dirs, name)
	}
	if err := g.prune("."); err != nil {
		return err
	}
	for name, to := range links {
		if err := g.put(name, func(at string) error { return os.Symlink(to, at) }); err != nil {
			return err
		}
	}
	for name, data := range files {
		mode := fs.FileMode(0o600)
		if strings.HasPrefix(name, "bin/") {
			mode = 0o700
		}
		if err := g.put(name, func(at string) error { return os.WriteFile(at, data, mode) }); err != nil {
			return err
		}
	}
	return nil
}

// dirSync is what plant works on.
type dirSync struct {
	top    string
	links  map[string]string
	files  map[string][]byte
	dirs   map[string]bool // that hold them
	spared string
}

// put makes what is missing.
func (g dirSync) put(name string, create func(at string) error) error {
	at := filepath.Join(g.top, filepath.FromSlash(name))
	if exists(at) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
		return err
	}
	return create(at)
}

// prune removes from the directory sub what is not as it should be.
func (g dirSync) prune(sub string) error {
	entries, err := os.ReadDir(filepath.Join(g.top, sub))
	if err != nil {
		return err
	}
	for _, d := range entries {
		name := path.Join(sub, d.Name())
		switch {
		case d.IsDir() && g.dirs[name]:
			err = g.prune(name)
		case name != g.spared && !g.right(name, d):
			err = proc.RemoveAll(filepath.Join(g.top, name))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// right reports whether an entry is as it should be.
func (g dirSync) right(name string, d fs.DirEntry) bool {
	at := filepath.Join(g.top, name)
	if want, ok := g.links[name]; ok && d.Type()&fs.ModeSymlink != 0 {
		to, err := os.Readlink(at)
		return err == nil && to == want
	}
	if want, ok := g.files[name]; ok && d.Type().IsRegular() {
		data, err := os.ReadFile(at)
		return err == nil && bytes.Equal(data, want)
	}
	return false
}
