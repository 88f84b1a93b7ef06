package proc

import (
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// EndStale ends what is left of commands that an earlier, killed git-tilth had started with dir as their working
// directory, and returns how many processes that were. Call it only as the one process that may work in dir: a
// command of another live git-tilth in dir would be taken for a leftover.
func EndStale(dir string) int {
	n := 0
	for _, step := range []struct {
		sig  syscall.Signal
		wait time.Duration
	}{{unix.SIGTERM, defaultGrace}, {unix.SIGKILL, time.Second}} {
		found := stale(dir)
		n = max(n, len(found))
		for _, p := range found {
			p.signal(step.sig)
		}
		for end := time.Now().Add(step.wait); len(found) > 0 && time.Now().Before(end); {
			time.Sleep(5 * time.Millisecond)
			found = stale(dir)
		}
		if len(found) == 0 {
			break
		}
	}
	return n
}

// stale lists processes with a mark of dir that are neither above nor below us.
func stale(dir string) []process {
	all := processes()
	spared := ancestors(all)
	for _, p := range descendants(os.Getpid()) {
		spared[p.pid] = true
	}
	prefix := dirMark(dir) + "-"
	var out []process
	for _, p := range all {
		if spared[p.pid] || p.zombie {
			continue
		}
		marks, _ := readMarks(p.pid)
		for _, m := range marks {
			if strings.HasPrefix(m, prefix) {
				out = append(out, p)
				break
			}
		}
	}
	return out
}
