package gitx

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// lockOwner names a live git process that may own the lock, or is "". A git
// that waits for an editor or a hook has closed the file and still owns it, so
// an open file is not asked for: any git whose working directory is in the
// repository or the worktree counts, and so does one that cannot be looked at.
func (g *Git) lockOwner(lock string, _ fs.FileInfo, places []string) string {
	procs, err := os.ReadDir("/proc")
	if err != nil {
		return "its owner cannot be found out without /proc"
	}
	for _, p := range procs {
		if atoi(p.Name()) == 0 {
			continue
		}
		dir := filepath.Join("/proc", p.Name())
		comm, err := os.ReadFile(filepath.Join(dir, "comm"))
		if err != nil || !strings.HasPrefix(string(comm), "git") || strings.HasPrefix(string(comm), "git-tilth") {
			continue
		}
		cwd, err := os.Readlink(filepath.Join(dir, "cwd"))
		if err != nil && !os.IsPermission(err) {
			continue // it ended meanwhile, or is a zombie
		}
		if err != nil || concerns(cwd, lock, places) {
			return "git, process " + p.Name()
		}
	}
	return ""
}

// concerns tells whether a process in cwd may be at work on one of the places.
func concerns(cwd, lock string, places []string) bool {
	for _, place := range append([]string{filepath.Dir(lock)}, places...) {
		// The main worktree lies around its common directory.
		for _, root := range []string{place, strings.TrimSuffix(place, "/.git")} {
			if cwd == root || strings.HasPrefix(cwd, root+"/") {
				return true
			}
		}
	}
	return false
}
