package proc

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// MakeRemovable makes the directories at path and below writable for the owner, and returns the topmost of the changed
// ones, relative to path. Caches of build tools (Go's modules) are read-only, and git removes nothing from them.
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

// RealPath returns an absolute path with the symlinks of its existing part resolved.
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

// RemoveAll is os.RemoveAll for trees that may have directories without write permission.
func RemoveAll(path string) error {
	err := os.RemoveAll(path)
	if err != nil && len(MakeRemovable(path)) > 0 {
		err = os.RemoveAll(path)
	}
	return err
}
