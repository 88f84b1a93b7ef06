package proc

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// Find returns a living process that the query describes and that is neither this one nor above it; 0 if there is
// none. The error is ErrUnsupported where other processes cannot be looked at.
func Find(q Query) (pid int, err error) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		return 0, fmt.Errorf("without /proc: %w", errors.ErrUnsupported)
	}
	all := processes()
	above := ancestors(all)
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

// ancestors returns the process ids from this process up.
func ancestors(all []process) map[int]bool {
	parents := map[int]int{}
	for _, p := range all {
		parents[p.pid] = p.parent
	}
	above := map[int]bool{}
	for pid := os.Getpid(); pid > 0 && !above[pid]; pid = parents[pid] {
		above[pid] = true
	}
	return above
}
