package proc

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// group is the directory of a control group (cgroup v2) that contains everything that one command started, whatever
// parent, session, name and environment a process has. It is below this process's own group, and EndStale finds it
// after a kill by its name, the mark. "" is none: on most systems only root, or a user with a delegated part of the
// tree, can make one.
type group string

const groupPrefix = "tilth-"

// groupTree returns the directory of all control groups and this process's own group, "" if unknown. A line of
// /proc/self/mountinfo has: id parent device root place options - type source more.
var groupTree = sync.OnceValues(func() (top, own string) {
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	member, _ := os.ReadFile("/proc/self/cgroup")
	for line := range strings.Lines(string(mounts)) {
		place, kind, _ := strings.Cut(line, " - ")
		f := strings.Fields(place)
		if !strings.HasPrefix(kind, "cgroup2 ") || len(f) < 5 || strings.Contains(f[4], `\`) {
			continue
		}
		top = f[4]
		for line := range strings.Lines(string(member)) {
			path, unified := strings.CutPrefix(strings.TrimSpace(line), "0::")
			rel, below := strings.CutPrefix(path, strings.TrimSuffix(f[3], "/"))
			if unified && below && !strings.Contains(path, "/..") {
				own = filepath.Join(top, rel)
			}
		}
		break
	}
	for _, name := range []string{"", "cgroup.procs"} {
		if own != "" && unix.Access(filepath.Join(own, name), unix.W_OK) != nil {
			own = ""
		}
	}
	return top, own
})

// newGroup makes the group of a command that bears mark.
func newGroup(mark string) group {
	_, own := groupTree()
	if own == "" {
		return ""
	}
	g := group(filepath.Join(own, groupPrefix+mark))
	if os.Mkdir(string(g), 0o755) != nil {
		return ""
	}
	return g
}

// start starts cmd in the group, and outside where the system does not have it so.
func (g group) start(cmd *exec.Cmd, start func(*exec.Cmd) error) error {
	dir, err := os.Open(string(g))
	if err != nil {
		return start(cmd)
	}
	defer dir.Close()
	plain, attr := *cmd, *cmd.SysProcAttr
	cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(dir.Fd())
	if start(cmd) == nil {
		return nil
	}
	*cmd = plain
	*cmd.SysProcAttr = attr
	return start(cmd)
}

// each calls do for the group and for those that were made in it, these first.
func (g group) each(do func(dir string)) {
	if g == "" {
		return
	}
	var dirs []string
	_ = filepath.WalkDir(string(g), func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			dirs = append(dirs, path)
		}
		return nil
	})
	for _, dir := range slices.Backward(dirs) {
		do(dir)
	}
}

// pids are those of the processes in the group.
func (g group) pids() map[int]bool {
	in := map[int]bool{}
	g.each(func(dir string) {
		data, _ := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
		for line := range strings.Lines(string(data)) {
			if pid, err := strconv.Atoi(strings.TrimSpace(line)); err == nil && pid > 0 {
				in[pid] = true
			}
		}
	})
	return in
}

// kill ends all of the group in one step, which no process outruns by forking. Kernels before 5.14 cannot.
func (g group) kill() {
	if g != "" {
		_ = os.WriteFile(filepath.Join(string(g), "cgroup.kill"), []byte("1"), 0)
	}
}

// remove removes the group and reports whether it is gone: one in which something lives cannot be removed. What stays
// is EndStale's.
func (g group) remove() (gone bool) {
	if g == "" {
		return true
	}
	if err := unix.Rmdir(string(g)); err == nil || err == unix.ENOENT {
		return true
	}
	g.each(func(dir string) { gone = unix.Rmdir(dir) == nil })
	return gone
}

// staleGroups returns the groups that another process made for commands with one of these prefixes of marks. It removes
// empty groups of other killed processes.
func staleGroups(marks []string) (groups []group) {
	top, _ := groupTree()
	if top == "" {
		return nil
	}
	registry.Lock()
	defer registry.Unlock()
	ours := map[group]bool{}
	for _, f := range registry.leaders {
		ours[f.group] = true
	}
	_ = filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // one that went, or is another user's
		}
		mark, ok := strings.CutPrefix(d.Name(), groupPrefix)
		if !ok || !d.IsDir() || ours[group(path)] {
			return nil
		}
		if beginsWith(mark, marks) {
			groups = append(groups, group(path))
			return fs.SkipDir
		}
		if fi, err := d.Info(); err == nil && time.Since(fi.ModTime()) > time.Minute { // not about to be used
			group(path).remove()
		}
		return nil
	})
	return groups
}
