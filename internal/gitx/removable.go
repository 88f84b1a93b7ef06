package gitx

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// openedDir is a directory to which its owner was given the right to write.
type openedDir struct {
	path string // relative to the worktree
	mode fs.FileMode
}

// makeRemovable gives the owner back the right to write to the directories at
// path and below, and returns those that lacked it, the upper before the lower.
// Caches of build tools (Go's modules) are read-only, and git removes nothing
// from them.
func makeRemovable(path string) []openedDir {
	var opened []openedDir
	_ = filepath.WalkDir(path, func(p string, d fs.DirEntry, _ error) error {
		if d == nil || !d.IsDir() {
			return nil
		}
		fi, err := d.Info()
		if err != nil || fi.Mode()&0o700 == 0o700 || os.Chmod(p, fi.Mode().Perm()|0o700) != nil {
			return nil
		}
		if rel, err := filepath.Rel(path, p); err == nil {
			opened = append(opened, openedDir{path: rel, mode: fi.Mode().Perm()})
		}
		return nil
	})
	return opened
}

// topmost leaves out the directories that lie in others of the list.
func topmost(opened []openedDir) []string {
	var paths []string
	for _, d := range opened {
		if n := len(paths); n == 0 || !within(d.path, paths[n-1]) {
			paths = append(paths, d.path)
		}
	}
	return paths
}

// within tells whether path is dir or lies below it.
func within(path, dir string) bool {
	return path == dir || dir == "." || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// closeAgain gives the directories that are still there after a rewind the mode
// that they are to have: one with tracked files is as git makes it, the top as
// AddWorktree does, any other, which was ignored, as it was. What cannot be set stays open.
func (g *Git) closeAgain(ctx context.Context, wt Worktree, opened []openedDir) {
	if len(opened) == 0 || g.dry {
		return
	}
	out, err := g.read(ctx, g.inWorktree(wt, "ls-files", "-z", "--full-name"))
	if err != nil {
		return
	}
	tracked := map[string]bool{".": true}
	for _, f := range fields(out) {
		for dir := filepath.Dir(f); !tracked[dir]; dir = filepath.Dir(dir) {
			tracked[dir] = true
		}
	}
	for _, d := range opened {
		path, mode := filepath.Join(wt.Path, d.path), d.mode
		switch {
		case d.path == ".":
			mode = topMode
		case tracked[d.path]:
			mode = 0o777 &^ umask
		}
		if fi, err := os.Lstat(path); err == nil && fi.IsDir() {
			_ = os.Chmod(path, mode)
		}
	}
}

// umask is what git, too, makes directories with. It can only be read by setting it, which is safe before anything else runs.
var umask = func() fs.FileMode {
	old := syscall.Umask(0o077)
	syscall.Umask(old)
	return fs.FileMode(old)
}()
