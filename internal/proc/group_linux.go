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

	"github.com/git-tilth/git-tilth/internal/sandbox"
)

// group is the directory of a control group (cgroup v2) that contains everything that one command started, whatever
// parent, session, name and environment a process has. It is below this process's own group, and EndStale finds it
// after a kill by its name, the mark. It is "" if none can be made: on most systems only root, or a user with a
// delegated part of the tree, can make one.
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
	// A group with processes gives its own groups no limits, so that the one above it may be the better place.
	if own != top && limitsBelow(filepath.Dir(own)) && !limitsBelow(own) && mayHold(filepath.Dir(own)) {
		return top, filepath.Dir(own)
	}
	if own != "" && !mayHold(own) {
		own = ""
	}
	return top, own
})

// mayHold reports whether this process may make groups in a group and start processes there.
func mayHold(dir string) bool {
	return unix.Access(dir, unix.W_OK) == nil && unix.Access(filepath.Join(dir, "cgroup.procs"), unix.W_OK) == nil
}

// limitsBelow reports whether groups in a group can have limits.
func limitsBelow(dir string) bool {
	data, _ := os.ReadFile(filepath.Join(dir, "cgroup.subtree_control"))
	return slices.Contains(strings.Fields(string(data)), "pids")
}

// newGroup makes the group of a command that bears mark, with the limits of its box where the system has them.
func newGroup(mark string, box *sandbox.Box) group {
	_, own := groupTree()
	if own == "" {
		return ""
	}
	g := group(filepath.Join(own, groupPrefix+mark+ofProcess(os.Getpid())))
	if os.Mkdir(string(g), 0o755) != nil {
		return ""
	}
	processes, memory := box.Limits()
	for name, limit := range map[string]int64{"pids.max": processes, "memory.max": memory} {
		if limit > 0 {
			_ = os.WriteFile(filepath.Join(string(g), name), strconv.AppendInt(nil, limit, 10), 0)
		}
	}
	return g
}

// ofProcess ends the names of the groups that a process makes.
func ofProcess(pid int) string { return "." + strconv.Itoa(pid) }

// endGroups kills the processes in the groups that a process made, and reports whether the groups are gone.
func endGroups(pid int) (gone bool) {
	_, own := groupTree()
	if own == "" {
		return true
	}
	dirs, _ := filepath.Glob(filepath.Join(own, groupPrefix+"*"+ofProcess(pid)))
	gone = true
	for _, dir := range dirs {
		group(dir).kill()
		gone = group(dir).remove() && gone
	}
	return gone
}

// start starts cmd in the group, or outside it if the system does not support that.
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

// each calls do for the groups below the group, and then for the group.
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

// pids returns the ids of the processes in the group.
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

// remove removes the group and reports whether it is gone: a group with processes cannot be removed. EndStale removes
// leftovers.
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
			return nil // ended, or another user's
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
