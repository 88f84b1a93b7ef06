package proc

import (
	"cmp"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// MakeRemovable gives the owner back the right to write to the directories at path and below, and returns the topmost
// of those that lacked it, relative to path. Caches of build tools (Go's modules) are read-only, and git removes
// nothing from them.
func MakeRemovable(path string) []string {
	var topmost []string
	_ = filepath.WalkDir(path, func(p string, d fs.DirEntry, _ error) error {
		if d == nil || !d.IsDir() {
			return nil
		}
		fi, err := d.Info()
		if err != nil || fi.Mode()&0o700 == 0o700 || os.Chmod(p, fi.Mode().Perm()|0o700) != nil {
			return nil
		}
		rel, err := filepath.Rel(path, p)
		if n := len(topmost); n > 0 && (topmost[n-1] == "." || strings.HasPrefix(rel+"/", topmost[n-1]+"/")) {
			return nil
		}
		if err == nil {
			topmost = append(topmost, rel)
		}
		return nil
	})
	return topmost
}

// RealPath is a path made absolute, with its symlinks resolved as far as it is there.
func RealPath(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	if dir := filepath.Dir(path); dir != path {
		return filepath.Join(RealPath(dir), filepath.Base(path))
	}
	return path
}

// RemoveAll is os.RemoveAll for trees with directories without write permission, or deeper than this process can have
// files open.
func RemoveAll(path string) error {
	err := os.RemoveAll(path)
	if err != nil && len(MakeRemovable(path)) > 0 {
		err = os.RemoveAll(path)
	}
	if errors.Is(err, unix.EMFILE) {
		err = removeFlat(path)
	}
	return err
}

// removeFlat removes a directory by moving all that lies deeper up into it.
func removeFlat(top string) error {
	for {
		entries, err := os.ReadDir(top)
		if err != nil || len(entries) == 0 {
			return cmp.Or(err, os.Remove(top))
		}
		for _, d := range entries {
			if d.IsDir() {
				err = emptyInto(top, filepath.Join(top, d.Name()))
			}
			if err = cmp.Or(err, os.Remove(filepath.Join(top, d.Name()))); err != nil {
				return err
			}
		}
	}
}

// emptyInto removes the files in dir and moves its directories to top.
func emptyInto(top, dir string) error {
	entries, err := os.ReadDir(dir)
	for _, d := range entries {
		at := filepath.Join(dir, d.Name())
		if !d.IsDir() {
			err = cmp.Or(err, os.Remove(at))
			continue
		}
		err = cmp.Or(err, os.Chmod(at, 0o700))
		err = cmp.Or(err, os.Rename(at, filepath.Join(top, rand.Text())))
	}
	return err
}
