package proc

import (
	"os/exec"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/git-tilth/git-tilth/internal/sandbox"
)

// family is a running command and all that descends from it.
type family struct {
	leader  int    // pid, and id of the group and the session
	mark    string // its own entry in the mark
	since   uint64 // start time of the leader, in the kernel's ticks; 0 if unknown, or apart
	gone    bool   // the leader has exited and was reaped
	apart   bool   // its background processes are not ended
	group   group  // its control group, if the system allows one
	cmd     *exec.Cmd
	waitErr error         // of a command that the tree waited for
	tree    *sandbox.Tree // its pid namespace, where one can be made
}

// registry knows the processes that this process started itself, as opposed to those that were re-parented to it.
// Starting and registering is one step under the lock, and so is looking for orphans and reaping them: a command that
// was just started is never mistaken for an orphan.
var registry = struct {
	sync.Mutex
	leaders  map[int]*family
	detached map[int]bool
	strays   map[int]uint64 // start times of children that a group told from those which we started
	keeper   int            // pid of the keeper, 0 for none
}{leaders: map[int]*family{}, detached: map[int]bool{}, strays: map[int]uint64{}}

// startFamily starts the command and registers it.
func startFamily(cmd *exec.Cmd, mark string, c Cmd) (*family, error) {
	if !c.Lasting {
		startKeeper()
		becomeSubreaper()
	}
	registry.Lock()
	defer registry.Unlock()
	f := &family{cmd: cmd, mark: mark, apart: c.Lasting}
	if !c.Lasting {
		f.group = newGroup(mark, c.Box)
	}
	err := f.group.start(cmd, func(cmd *exec.Cmd) (err error) {
		f.tree, err = c.Box.Start(cmd)
		return err
	})
	if err != nil {
		f.group.remove()
		return nil, err
	}
	if f.leader = cmd.Process.Pid; !c.Lasting {
		f.since = startTime(f.leader)
	}
	registry.leaders[f.leader] = f
	return f, nil
}

// leaderGone records that the leader was reaped: its pid can be reused from now on, unless its group or session still
// has members.
func (f *family) leaderGone() {
	registry.Lock()
	defer registry.Unlock()
	f.gone = true
}

// alone reports whether f is the only running command. A command with children that may stay does not count: they keep
// their session.
func (f *family) alone() bool {
	registry.Lock()
	defer registry.Unlock()
	for _, other := range registry.leaders {
		if other != f && !other.apart {
			return false
		}
	}
	return !f.apart
}

// forget stops watching a command with children that continue.
func (f *family) forget() {
	registry.Lock()
	defer registry.Unlock()
	delete(registry.leaders, f.leader)
}

// signal sends sig to every member that is alive and returns how many there were.
func (f *family) signal(sig syscall.Signal) int {
	n, inGroup := f.signalMembers(sig)
	if sig == unix.SIGKILL {
		f.tree.Kill()
		if f.tree == nil {
			f.group.kill()
		}
	}
	if !inGroup && f.gone || f.tree != nil && f.tree.Root == f.leader {
		return n
	}
	// The group gets it as a whole too: that is one step, which a process that forks meanwhile cannot outrun. While
	// the leader is not reaped, or members are left, the id cannot have been given to another group.
	if err := unix.Kill(-f.leader, sig); err == nil && n == 0 {
		n = 1
	}
	if sig == unix.SIGTERM {
		// A stopped process would not see the request.
		_ = unix.Kill(-f.leader, unix.SIGCONT)
	}
	return n
}

// endRest ends the remaining processes after the leader has exited, and returns their number. It takes little longer
// than the grace, which hurry cuts short.
func (f *family) endRest(grace time.Duration, hurry <-chan struct{}) int {
	defer reapOrphans()
	defer f.forget()
	defer func() {
		if !f.group.remove() {
			f.group.kill() // processes that did not end in time
			f.group.remove()
		}
	}()
	defer func() { f.waitErr = f.tree.End(f.cmd) }()
	if f.waitGone(settle, nil) {
		return 0
	}
	n := f.signal(unix.SIGTERM)
	if n == 0 && !f.alive() || f.waitGone(grace, hurry) {
		return n
	}
	for round := 0; round < 20 && f.tree == nil; round++ {
		// Repeatedly, because a process may keep forking.
		if f.signal(unix.SIGKILL) == 0 && !f.alive() || f.waitGone(100*time.Millisecond, nil) {
			break
		}
	}
	return max(n, 1)
}

// waitGone waits until no member is left, for at most d and until hurry is closed.
func (f *family) waitGone(d time.Duration, hurry <-chan struct{}) bool {
	end := time.Now().Add(d)
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		if !f.alive() {
			return true
		}
		left := time.Until(end)
		if left <= 0 {
			return false
		}
		select {
		case <-hurry:
			return false
		case <-time.After(min(pause, left)):
		}
	}
}
