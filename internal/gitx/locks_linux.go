package gitx

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// lockOwner names a live git process that may own the lock, or is "". A git
// that waits for an editor or a hook has closed the file and still owns it, so
// it does not matter who has it open: a git process that works in one of the
// places counts (any, without places), and so does one that hides where it
// works. The git processes that started this one do not: `git tilth` itself,
// or the command whose hook runs it.
func (g *Git) lockOwner(lock fs.FileInfo, places []string) string {
	procs, err := os.ReadDir("/proc")
	if err != nil {
		return "without /proc its owner cannot be found out"
	}
	above := ancestors()
	for _, p := range procs {
		dir := filepath.Join("/proc", p.Name())
		if pid := atoi(p.Name()); pid == 0 || above[pid] || !isGit(dir) {
			continue
		}
		cwd, err := os.Readlink(filepath.Join(dir, "cwd"))
		switch {
		case err == nil && (len(places) == 0 || slices.ContainsFunc(places, func(place string) bool { return within(cwd, place) || names(dir, place) })),
			os.IsPermission(err) && sameOwner(dir, lock):
			return "git, process " + p.Name()
		}
	}
	return ""
}

// names tells whether a process was told to work on a repository in a place that
// is not its working directory.
func names(dir, place string) bool {
	for file, option := range map[string]string{"cmdline": "--git-dir=", "environ": "GIT_DIR="} {
		data, err := os.ReadFile(filepath.Join(dir, file))
		if err == nil && strings.Contains("\x00"+string(data), "\x00"+option+place+"/") {
			return true
		}
	}
	return false
}

// isGit tells whether the process of a /proc directory is git or one of its
// helpers, and not one that has ended.
func isGit(dir string) bool {
	comm, err := os.ReadFile(filepath.Join(dir, "comm"))
	name := trimLine(comm)
	if err != nil || name != "git" && !strings.HasPrefix(name, "git-") || strings.HasPrefix(name, "git-tilth") {
		return false
	}
	return statField(dir, 0) != "Z"
}

// statField returns the n-th field after the command name in /proc/<pid>/stat:
// 0 is the state, 1 the parent.
func statField(dir string, n int) string {
	b, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return ""
	}
	// The name is in parentheses and may hold any byte.
	f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	if n >= len(f) {
		return ""
	}
	return f[n]
}

// ancestors returns the process ids from this process up.
func ancestors() map[int]bool {
	above := map[int]bool{}
	for pid := os.Getpid(); pid > 0 && !above[pid]; {
		above[pid] = true
		pid = atoi(statField(filepath.Join("/proc", strconv.Itoa(pid)), 1))
	}
	return above
}

// sameOwner tells whether a process runs as the user who made the file.
func sameOwner(dir string, file fs.FileInfo) bool {
	fi, err := os.Stat(dir)
	if err != nil {
		return false
	}
	process, ok := fi.Sys().(*syscall.Stat_t)
	lock, ok2 := file.Sys().(*syscall.Stat_t)
	return ok && ok2 && process.Uid == lock.Uid
}
