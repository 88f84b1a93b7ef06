package proc

import (
	"fmt"
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

// group is the directory of a control group (cgroup v2) that contains everything that one command started. It is below
// this process's own group. It is "" if none can be made: on most systems only root, or a user with a delegated part of
// the tree, can make one.
type group string

// groupName is the start of a group's name, with the pid namespace and the id of the process that made it.
const groupName = "tilth-%d.%d."

// ownGroup returns the control group in which this process creates others, or "". A line of /proc/self/mountinfo has:
// id parent device root place options - type source more.
var ownGroup = sync.OnceValue(func() (own string) {
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	member, _ := os.ReadFile("/proc/self/cgroup")
	for line := range strings.Lines(string(mounts)) {
		place, kind, _ := strings.Cut(line, " - ")
		f := strings.Fields(place)
		if !strings.HasPrefix(kind, "cgroup2 ") || len(f) < 5 || strings.Contains(f[4], `\`) {
			continue
		}
		top := f[4]
		for line := range strings.Lines(string(member)) {
			path, unified := strings.CutPrefix(strings.TrimSpace(line), "0::")
			rel, below := strings.CutPrefix(path, strings.TrimSuffix(f[3], "/"))
			if unified && below && !strings.Contains(path, "/..") {
				own = filepath.Join(top, rel)
			}
		}
		// A group with processes cannot limit its subgroups, so the parent group may be the better place.
		if above := filepath.Dir(own); own != top && limitsBelow(above) && !limitsBelow(own) && mayHold(above) {
			return above
		}
		break
	}
	if own != "" && !mayHold(own) {
		own = ""
	}
	return own
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

// newGroup creates a command's group with the limits of its box, if the system has them.
func newGroup(box *sandbox.Box) group {
	own := ownGroup()
	if own == "" {
		return ""
	}
	dir, err := os.MkdirTemp(own, fmt.Sprintf(groupName, pidNamespace(), os.Getpid()))
	if err != nil {
		return ""
	}
	processes, memory := box.Limits()
	for name, limit := range map[string]int64{"pids.max": processes, "memory.max": memory} {
		if limit > 0 {
			_ = os.WriteFile(filepath.Join(dir, name), strconv.AppendInt(nil, limit, 10), 0)
		}
	}
	return group(dir)
}

var pidNamespace = sync.OnceValue(func() (id uint64) {
	var st unix.Stat_t
	_ = unix.Stat("/proc/self/ns/pid", &st)
	return st.Ino
})

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

// groupPatience is the longest time that a killed group takes to become empty.
const groupPatience = 100 * time.Millisecond

// end kills all processes in the group in one step, which no process outruns by forking, and removes the group. It
// reports whether that succeeded. Kernels before 5.14 cannot kill a group.
func (g group) end() (gone bool) {
	if g == "" {
		return true
	}
	for end := time.Now().Add(groupPatience); ; time.Sleep(time.Millisecond) {
		if gone = g.remove(); gone || time.Now().After(end) {
			return gone
		}
		_ = os.WriteFile(filepath.Join(string(g), "cgroup.kill"), []byte("1"), 0)
	}
}

// remove removes the group and its subgroups, and reports whether it is gone. A group with processes cannot be
// removed.
func (g group) remove() (gone bool) {
	if err := unix.Rmdir(string(g)); err == nil || err == unix.ENOENT {
		return true
	}
	var dirs []string
	_ = filepath.WalkDir(string(g), func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			dirs = append(dirs, path)
		}
		return nil
	})
	for _, dir := range slices.Backward(dirs) {
		gone = unix.Rmdir(dir) == nil
	}
	return gone
}

// endGroups ends the groups of dead processes, and reports whether they are gone.
func endGroups(dead func(pid int) bool) (gone bool) {
	gone = true
	own := ownGroup()
	entries, _ := os.ReadDir(own)
	for _, e := range entries {
		var space uint64
		var pid int
		_, err := fmt.Sscanf(e.Name(), groupName, &space, &pid)
		if err == nil && own != "" && space == pidNamespace() && dead(pid) {
			gone = group(filepath.Join(own, e.Name())).end() && gone
		}
	}
	return gone
}
