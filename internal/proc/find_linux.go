package proc

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Find returns a living process that matches the query and is neither this one nor above it, or 0. The error is
// ErrUnsupported if other processes cannot be inspected.
func Find(q Query) (pid int, err error) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		return 0, fmt.Errorf("without /proc: %w", errors.ErrUnsupported)
	}
	all := processes()
	above := upward()
	for _, p := range all {
		if p.zombie || above[p.pid] || !q.Name(p.name) {
			continue
		}
		if q.matches("/proc/" + strconv.Itoa(p.pid)) {
			return p.pid, nil
		}
	}
	return 0, nil
}

func (q Query) matches(dir string) bool {
	cwd, err := os.Readlink(dir + "/cwd")
	if errors.Is(err, fs.ErrPermission) {
		fi, err := os.Stat(dir)
		if err != nil {
			return false
		}
		owner, ok := fi.Sys().(*syscall.Stat_t)
		return ok && owner.Uid == q.Owner
	}
	return err == nil && (len(q.Places) == 0 || slices.ContainsFunc(q.Places, func(place string) bool {
		return cwd == place || strings.HasPrefix(cwd, strings.TrimSuffix(place, "/")+"/") || q.told(dir, place)
	}))
}

// told reports whether a process was told to work at a place that is not its working directory.
func (q Query) told(dir, place string) bool {
	for file, before := range map[string]string{"/cmdline": q.Argument, "/environ": q.Variable} {
		data, err := os.ReadFile(dir + file)
		if err == nil && before != "" && strings.Contains("\x00"+string(data), "\x00"+before+place+"/") {
			return true
		}
	}
	return false
}

// upward are the ids of this process and of those above it.
func upward() map[int]bool {
	above := map[int]bool{os.Getpid(): true}
	for _, pid := range Above() {
		above[pid] = true
	}
	return above
}

// Above returns the ids of the processes above this one, its parent first. Processes of a run's command stay below that
// run while it lives: orphans become the run's children.
func Above() []int {
	var pids []int
	for pid := os.Getpid(); len(pids) < maxDepth; {
		p, ok := readStat(pid)
		if !ok || p.parent <= 0 {
			break
		}
		pid = p.parent
		pids = append(pids, pid)
	}
	return pids
}

// maxDepth bounds the search: a parent's id can be reused while the chain is read.
const maxDepth = 1000

// EndStale ends the processes of commands that a killed git-tilth had started with one of dirs as their place, and
// returns their number. Call it only from the one process that may work there, because it also ends commands of another
// live git-tilth.
func EndStale(dirs ...string) int {
	var marks []string // as they begin
	for _, dir := range dirs {
		marks = append(marks, dirMark(dir)+"-")
	}
	n, groups := 0, staleGroups(marks)
	for _, step := range []struct {
		sig  syscall.Signal
		wait time.Duration
	}{{unix.SIGTERM, defaultGrace}, {unix.SIGKILL, time.Second}} {
		found := stale(marks, groups)
		n = max(n, len(found))
		for _, p := range found {
			p.signal(step.sig)
		}
		for end := time.Now().Add(step.wait); len(found) > 0 && time.Now().Before(end); {
			time.Sleep(5 * time.Millisecond)
			found = stale(marks, groups)
		}
		if len(found) == 0 {
			break
		}
	}
	for _, g := range groups {
		g.remove()
	}
	return n
}

// stale lists processes with one of the marks or in one of the groups that are neither above nor below us.
func stale(marks []string, groups []group) []process {
	all, in := processes(), map[int]bool{}
	for _, g := range groups {
		maps.Copy(in, g.pids())
	}
	spared := upward()
	for _, p := range descendants(os.Getpid()) {
		spared[p.pid] = true
	}
	var out []process
	for _, p := range all {
		if spared[p.pid] || p.zombie {
			continue
		}
		its, _ := readMarks(p.pid)
		if in[p.pid] || slices.ContainsFunc(its, func(m string) bool { return beginsWith(m, marks) }) {
			out = append(out, p)
		}
	}
	return out
}

func beginsWith(name string, beginnings []string) bool {
	return slices.ContainsFunc(beginnings, func(b string) bool { return strings.HasPrefix(name, b) })
}
