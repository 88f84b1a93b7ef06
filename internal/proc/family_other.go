//go:build !linux

package proc

import (
	"errors"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/git-tilth/git-tilth/internal/sandbox"
)

// Without a subreaper and /proc, the processes of a command are the leader's process group: a process that moves to
// another group escapes, but cannot hang Run.

func becomeSubreaper() {}

func startTime(int) uint64 { return 0 }

func reapOrphans() {}

// group exists only on Linux.
type group struct{}

func newGroup(string, *sandbox.Box) group { return group{} }

func (group) start(cmd *exec.Cmd, start func(*exec.Cmd) error) error { return start(cmd) }

func (group) kill() {}

func (group) remove() bool { return true }

func (f *family) signalMembers(syscall.Signal) (n int, inGroup bool) { return 0, true }

func (f *family) exceeds(int64, int64) string { return "" }

func (f *family) alive() bool {
	err := unix.Kill(-f.leader, 0)
	// Only zombies left: macOS says EPERM.
	return err == nil && !errors.Is(err, unix.EPERM)
}

// EndStale ends processes that a killed git-tilth had started in dirs. It needs Linux's /proc and does nothing here.
func EndStale(...string) int { return 0 }

// Find needs Linux's /proc; the error is ErrUnsupported here.
func Find(Query) (pid int, err error) { return 0, errors.ErrUnsupported }

// Above returns the ids of the processes above this one, which are not known here.
func Above() []int { return nil }
