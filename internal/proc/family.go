package proc

import (
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/git-tilth/git-tilth/internal/sandbox"
)

// family is a running command and all that descends from it.
//
// On Linux that is its tree (package sandbox): a pid namespace, or all below a process that adopts orphans, and its
// control group. Elsewhere, and with Cmd.Lasting, it is the command's process group: a process in another group
// escapes, but cannot hang Run.
type family struct {
	cmd     *exec.Cmd
	leader  int  // pid of the started process, and id of its process group
	gone    bool // the command has exited
	tree    *sandbox.Tree
	group   group
	waitErr error // result of a command waited for by the tree
}

func startFamily(cmd *exec.Cmd, c Cmd) (*family, error) {
	f, start := &family{cmd: cmd}, (*exec.Cmd).Start
	if c.Lasting {
		dieWithUs(cmd)
	} else {
		startKeeper()
		if pipe := keeperPipe(); pipe != nil {
			cmd.ExtraFiles = []*os.File{pipe}
		}
		f.group = newGroup(c.Box)
		start = func(cmd *exec.Cmd) (err error) {
			f.tree, err = c.Box.Start(cmd)
			return err
		}
	}
	if err := f.group.start(cmd, start); err != nil {
		f.group.end()
		return nil, err
	}
	f.leader = cmd.Process.Pid
	return f, nil
}

// signal sends sig to every living process. A kill of a tree lists no processes, because they may fork faster.
func (f *family) signal(sig syscall.Signal) {
	switch {
	case f.tree != nil && sig == unix.SIGKILL:
		f.tree.Kill()
	case f.tree != nil:
		f.signalMembers(sig)
	case unix.Kill(-f.leader, sig) == nil && sig == unix.SIGTERM: // which a stopped process would not see
		_ = unix.Kill(-f.leader, unix.SIGCONT)
	}
}

// endRest ends the remaining processes after the command has exited, and reports whether there were any. It takes
// little longer than the grace, which hurry cuts short.
func (f *family) endRest(grace time.Duration, hurry <-chan struct{}) (left bool) {
	defer f.group.end()
	defer func() { f.waitErr = f.tree.End(f.cmd) }()
	if f.waitGone(settle, nil) {
		return false
	}
	f.signal(unix.SIGTERM)
	if !f.waitGone(grace, hurry) {
		f.signal(unix.SIGKILL)
	}
	return true
}

// waitGone waits until no process is left, for at most d and until hurry is closed.
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
