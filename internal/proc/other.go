//go:build !linux

package proc

import (
	"errors"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/git-tilth/git-tilth/internal/sandbox"
)

// group exists only on Linux, and so does a tree.
type group struct{}

func newGroup(*sandbox.Box) group { return group{} }

func (group) start(cmd *exec.Cmd, start func(*exec.Cmd) error) error { return start(cmd) }

func (group) end() {}

func dieWithUs(*exec.Cmd) {}

func (f *family) signalMembers(syscall.Signal) {}

func (f *family) exceeds(int64, int64) string { return "" }

func (f *family) alive() bool { return unix.Kill(-f.leader, 0) == nil }

// EndStale waits for the end of a killed process's commands, which nothing ends on this system.
func EndStale(...string) {}

// Find needs Linux's /proc; the error is ErrUnsupported here.
func Find(Query) (pid int, err error) { return 0, errors.ErrUnsupported }

// Above returns the ids of the processes above this one, which are not known here.
func Above() []int { return nil }

// Keep does nothing on this system: the children of a killed process continue.
func Keep() (forget func()) { return func() {} }

func startKeeper() {}

func keeperPipe() *os.File { return nil }

// KeepFile does nothing on this system.
func KeepFile(path, content string) {}
