package gitx

import (
	"bytes"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// EndStrays ends the git commands, hooks included, that an earlier, killed
// process of this program had begun to change the worktree at path with, and
// returns how many processes that were. Call it only as the one process that
// may change the worktree: what it ends would otherwise move the branch or
// rewrite the index in the middle of something else. Git puts its own affairs
// in order on SIGTERM; what stays is what a crash leaves.
func (g *Git) EndStrays(path string) int {
	n := 0
	for _, step := range []struct {
		signal syscall.Signal
		wait   time.Duration
	}{{syscall.SIGTERM, endGrace}, {syscall.SIGKILL, time.Second}} {
		found := g.strays(path)
		n = max(n, len(found))
		for _, pid := range found {
			_ = syscall.Kill(pid, step.signal)
		}
		for end := time.Now().Add(step.wait); len(found) > 0 && time.Now().Before(end); {
			time.Sleep(lockPoll)
			found = g.strays(path)
		}
		if len(found) == 0 {
			break
		}
	}
	return n
}

// strays lists the processes that have in their environment what this package
// gives to commands that change the worktree at path, and to no others.
func (g *Git) strays(path string) []int {
	procs, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	mark, reads := []byte(g.ceiling(path)), []byte("GIT_OPTIONAL_LOCKS=0")
	above := ancestors()
	var found []int
	for _, p := range procs {
		pid, dir := atoi(p.Name()), filepath.Join("/proc", p.Name())
		if pid == 0 || above[pid] {
			continue
		}
		environ, err := os.ReadFile(filepath.Join(dir, "environ"))
		if err != nil || !holdsLine(environ, mark) || holdsLine(environ, reads) || statField(dir, 0) == "Z" {
			continue
		}
		found = append(found, pid)
	}
	return found
}

// holdsLine tells whether a list of NUL-terminated strings holds one.
func holdsLine(list, one []byte) bool {
	return bytes.Contains(append([]byte{0}, list...), append(append([]byte{0}, one...), 0))
}
