package proc

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/git-tilth/git-tilth/internal/sandbox"
)

// How the processes of a command are found on Linux. This process is a child subreaper: a process with a dead parent
// becomes its child instead of init's, so everything that a command started stays below it, in any group or session. A
// process belongs to a command by, in this order: the control group that the command started in, if one could be made;
// the leader's session; the mark in its environment; its parent; and, without any of these, if it was re-parented to us
// in another session while only this command ran.
//
// Other parts of this process start only git, which has no mark and may lead a session too. So a process without a mark
// is no runaway if its name begins with git, and neither is a child before its exec, which still has our own name.

var becomeSubreaper = sync.OnceFunc(func() {
	// It cannot fail on a kernel since 3.4; without it the group is still ended.
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
})

// members returns the living processes of the family, parents first.
func (f *family) members() []process {
	registry.Lock()
	gone := f.gone
	registry.Unlock()
	if f.tree != nil {
		return f.within(gone)
	}
	if gone && childless() {
		return nil
	}
	below := descendants(os.Getpid())
	alone, in := f.alone(), f.group.pids()
	belongs := map[int]bool{}
	var out []process
	for _, p := range below {
		if p.zombie {
			continue
		}
		if in[p.pid] {
			noteStray(p)
		}
		if in[p.pid] || f.owns(p, alone, belongs) {
			belongs[p.pid] = true
			out = append(out, p)
		}
	}
	return out
}

// within returns the living processes of a family with a pid namespace: the leader, if it is not gone, and all that
// descends from it and from the first process there.
func (f *family) within(gone bool) []process {
	out := descendants(f.tree.Root)
	if leader, ok := readStat(f.leader); ok && !gone && f.leader != f.tree.Root {
		out = append(append(out, leader), descendants(f.leader)...)
	}
	return slices.DeleteFunc(out, func(p process) bool { return p.zombie })
}

// exceeds returns the setting whose limit the family exceeds, or "". It checks the machine as a whole first.
func (f *family) exceeds(processes, memory int64) (setting string) {
	many, large := sandbox.Tasks() > processes, sandbox.Used() > memory
	if !many && !large {
		return ""
	}
	members := f.members()
	if many && int64(len(members)) > processes {
		return "tilth.maxProcesses"
	}
	var used int64
	for _, p := range members {
		used += p.memory()
	}
	if large && used > memory {
		return "tilth.maxMemory"
	}
	return ""
}

// noteStray registers a re-parented child for reapOrphans that only its group distinguishes from own children.
func noteStray(p process) {
	registry.Lock()
	defer registry.Unlock()
	if p.parent == os.Getpid() && registry.leaders[p.pid] == nil {
		registry.strays[p.pid] = p.started
	}
}

func (f *family) owns(p process, alone bool, belongs map[int]bool) bool {
	if p.session == f.leader {
		return true
	}
	switch marks, ok := readMarks(p.pid); {
	case ok && slices.Contains(marks, f.mark):
		return true
	case ok && carriesOurMark(marks):
		return false
	case belongs[p.parent]:
		return true
	}
	registry.Lock()
	defer registry.Unlock()
	return alone && p.started >= f.since && adopted(p)
}

// adopted reports whether a child was re-parented to this process and not started by it. The registry is locked.
func adopted(p process) bool {
	if registry.strays[p.pid] == p.started && p.parent == os.Getpid() {
		return true
	}
	f := registry.leaders[p.pid]
	return p.parent == os.Getpid() && p.session != ourSession() && (f == nil || f.gone) && !registry.detached[p.pid] &&
		!strings.HasPrefix(p.name, "git") && p.name != ourName()
}

var ourSession = sync.OnceValue(func() int {
	sid, _ := unix.Getsid(0)
	return sid
})

var ourName = sync.OnceValue(func() string {
	p, _ := readStat(os.Getpid())
	return p.name
})

// carriesOurMark reports whether a mark is that of another running command.
func carriesOurMark(marks []string) bool {
	registry.Lock()
	defer registry.Unlock()
	for _, f := range registry.leaders {
		if slices.Contains(marks, f.mark) {
			return true
		}
	}
	return false
}

// alive reports whether a process is left after the leader has exited. A process that forks all the time may be in no
// list of all processes, but its group cannot be removed.
func (f *family) alive() bool {
	if f.tree != nil {
		return !adoptedOnly(f.tree.Root)
	}
	return !f.group.remove() || len(f.members()) > 0
}

func (f *family) signalMembers(sig syscall.Signal) (n int, inGroup bool) {
	for _, p := range f.members() {
		if p.signal(sig) {
			n++
			inGroup = inGroup || p.session == f.leader
		}
	}
	return n, inGroup
}

// reapOrphans reaps ended processes that were re-parented to this process. It does not reap children that this process
// started, because their callers wait for them.
func reapOrphans() {
	if childless() {
		return
	}
	registry.Lock()
	defer registry.Unlock()
	for _, p := range processes() {
		if !p.zombie || !adopted(p) {
			continue
		}
		var ws unix.WaitStatus
		_, _ = unix.Wait4(p.pid, &ws, unix.WNOHANG, nil)
		delete(registry.strays, p.pid)
	}
}

// childless reports whether this process has no children but the keeper, the sandbox's holder and the first processes
// of namespaces. It is the common case after a command and spares reading all of /proc. An orphan becomes a child of
// the first thread.
func childless() bool {
	if errors.Is(unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil), unix.ECHILD) {
		return true
	}
	registry.Lock()
	children := []int{registry.keeper, sandbox.Holder()}
	for _, f := range registry.leaders {
		if f.tree != nil {
			children = append(children, f.tree.Root)
		}
	}
	registry.Unlock()
	return adoptedOnly(os.Getpid(), children...)
}

// adoptedOnly reports whether the first thread of a process has no children but these. A kernel that does not list them
// knows nothing.
func adoptedOnly(pid int, children ...int) bool {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	for _, name := range strings.Fields(string(data)) {
		if child, _ := strconv.Atoi(name); !slices.Contains(children, child) {
			return false
		}
	}
	return err == nil
}
