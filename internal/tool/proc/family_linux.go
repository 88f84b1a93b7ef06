package proc

import (
	"errors"
	"os"
	"slices"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// How the members of a family are found on Linux. This process is a child
// subreaper: a process whose parent dies becomes its child instead of init's, so
// everything that a command started stays below it, whatever group or session it
// moved to. Which of the processes below belong to which command is then told by,
// in this order: the session that the leader made; the mark in its environment;
// a parent that belongs; and, for a process that has shed all of these, that it
// was re-parented to us in a session of its own while only this command ran.
// What other parts of this process start themselves (git, mostly) stays in this
// process's own session and carries no mark, and is never touched.

var becomeSubreaper = sync.OnceFunc(func() {
	// It cannot fail on a kernel since 3.4; without it the group is still ended.
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
})

// members returns the living processes of the family, parents first.
func (f *family) members() []process {
	if childless() {
		return nil
	}
	below := descendants(os.Getpid())
	ours, _ := unix.Getsid(0)
	alone := f.alone()
	belongs := map[int]bool{}
	var out []process
	for _, p := range below {
		if p.zombie {
			continue
		}
		if f.owns(p, ours, alone, belongs) {
			belongs[p.pid] = true
			out = append(out, p)
		}
	}
	return out
}

func (f *family) owns(p process, ours int, alone bool, belongs map[int]bool) bool {
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
	return alone && p.parent == os.Getpid() && p.session != ours && p.started >= f.since && !isLeader(p.pid)
}

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

func isLeader(pid int) bool {
	registry.Lock()
	defer registry.Unlock()
	f := registry.leaders[pid]
	return f != nil && !f.gone
}

// alive reports whether a member is left, the leader not counted once it is a zombie.
func (f *family) alive() bool { return len(f.members()) > 0 }

func (f *family) signalMembers(sig syscall.Signal) (n int, inGroup bool) {
	for _, p := range f.members() {
		if p.signal(sig) {
			n++
			inGroup = inGroup || p.session == f.leader
		}
	}
	return n, inGroup
}

// reapOrphans takes processes that were re-parented to us and have ended out of
// the process table. Children that this process started itself are left to
// whoever waits for them: those of this package are registered, those of others
// are in our own session.
func reapOrphans() {
	if childless() {
		return
	}
	registry.Lock()
	defer registry.Unlock()
	self := os.Getpid()
	ours, err := unix.Getsid(0)
	if err != nil {
		return
	}
	for _, p := range processes() {
		if !p.zombie || p.parent != self || p.session == ours {
			continue
		}
		if f := registry.leaders[p.pid]; f != nil && !f.gone {
			continue
		}
		var ws unix.WaitStatus
		_, _ = unix.Wait4(p.pid, &ws, unix.WNOHANG, nil)
	}
}

// childless reports whether this process has no children at all, which is the
// common case after a command and spares reading all of /proc.
func childless() bool {
	err := unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	return errors.Is(err, unix.ECHILD)
}
