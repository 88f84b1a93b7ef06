package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// spaces keeps the mount namespace that the last command made, in which helpers' sockets are covered. To make one for
// each command, and to take it down at its end, costs more than all the rest of a sandbox.
var spaces spaceKeeper

type spaceKeeper struct {
	sync.Mutex
	of      string // what was mounted and covered in it
	space   *os.File
	refused bool
}

// errSpace says that the namespace at hand is none for this process.
var errSpace = errors.New("the sandbox cannot enter its mount namespace")

// covered says what is covered for a command in dir, and what is mounted. It is empty for a command that cannot share
// a namespace.
func (b *Box) covered(dir string) string {
	mounts, err := os.ReadFile("/proc/thread-self/mountinfo")
	if err != nil || !filepath.IsAbs(dir) {
		return ""
	}
	var all strings.Builder
	for _, path := range b.Sockets {
		fmt.Fprintf(&all, "%q %s\n", path, look(path))
	}
	return all.String() + string(mounts)
}

// take returns a descriptor of the namespace in which this is covered, nil if there is none.
func (s *spaceKeeper) take(covered string) *os.File {
	s.Lock()
	defer s.Unlock()
	if s.space == nil || covered == "" || covered != s.of || s.refused {
		return nil
	}
	fd, err := unix.FcntlInt(s.space.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	return os.NewFile(uintptr(fd), "space")
}

// keep keeps the namespace of a command that has made one. A command that has ended meanwhile has none any more.
func (s *spaceKeeper) keep(covered string, pid int) {
	s.Lock()
	defer s.Unlock()
	own, err := os.Stat("/proc/thread-self/ns/mnt")
	f, opened := os.Open(fmt.Sprintf("/proc/%d/ns/mnt", pid))
	if err != nil || opened != nil {
		return
	}
	if its, err := f.Stat(); err != nil || os.SameFile(own, its) || covered == "" {
		f.Close()
		return
	}
	s.space.Close() // nil at first, which is no harm
	s.of, s.space = covered, f
}

// refuse remembers that a namespace cannot be shared.
func (s *spaceKeeper) refuse() {
	s.Lock()
	defer s.Unlock()
	s.refused = true
}
