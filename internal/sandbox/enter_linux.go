package sandbox

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// rulesetFD is the descriptor that a program outside carries for those that it starts, see Carry.
const rulesetFD = 3

// The words of the command line that enters a wall, before the command.
const (
	argFlags   = 1 + iota // "n": no network
	argSockets            // to cover, with colons between
	argPath               // of the program
	argArgv
)

// Carry gives a command that is not started yet, and stays outside, what the programs that it starts need to enter the
// box. The function that it returns is to be called once it was started.
func (b *Box) Carry(cmd *exec.Cmd) (started func(), err error) {
	rules, err := b.ruleset()
	if err != nil {
		return nil, fmt.Errorf("the sandbox cannot be made: %w", err)
	}
	cmd.ExtraFiles = []*os.File{rules}
	return func() { rules.Close() }, nil
}

// Enter is the command line that runs a program inside the box, where it was carried to.
func (b *Box) Enter(program string, args ...string) []string {
	self, _ := os.Executable() // else the command line cannot be run, and says so
	flags := "-"
	if b.NoNetwork {
		flags = "n"
	}
	sockets := strings.Join(b.Sockets, string(os.PathListSeparator))
	return append([]string{self, Name, flags, sockets, program, program}, args...)
}

// init is here for the process of such a command line: nothing else of the program is set up for it.
func init() {
	if len(os.Args) < 2 || os.Args[1] != Name || len(os.Args) <= 1+argArgv {
		return
	}
	args := os.Args[1:]
	runtime.LockOSThread()
	w, err := newWall(rulesetFD, strings.Contains(args[argFlags], "n"), filepath.SplitList(args[argSockets]))
	if err == nil {
		_ = unix.CloseRange(rulesetFD, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC)
		step, errno := w.enter()
		if errno == 0 {
			err = syscall.Exec(args[argPath], args[argArgv:], os.Environ())
		} else {
			err = failure{byte(step), byte(errno)}.err()
		}
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(126)
}

// step is one on the way to a command inside.
type step byte

const (
	stepStart step = iota
	stepSpace
	stepCapabilities
	stepPrivileges
	stepRules
	stepNetwork
	stepExec
)

// failure is a step and why the kernel refused it.
type failure [2]byte

func (f failure) err() error {
	errno := syscall.Errno(f[1])
	switch step(f[0]) {
	case stepSpace:
		return errSpace
	case stepCapabilities:
		return fmt.Errorf("the sandbox cannot drop capabilities: %w", errno)
	case stepPrivileges:
		return fmt.Errorf("the sandbox cannot be entered: no_new_privs: %w", errno)
	case stepRules:
		return fmt.Errorf("the sandbox cannot be entered: %w", errno)
	case stepNetwork:
		return fmt.Errorf("the sandbox cannot cut off the network: %w", errno)
	}
	return errno
}

// wall is what a thread needs to enter one.
type wall struct {
	rules    uintptr
	root     bool
	header   unix.CapUserHeader
	none     [2]unix.CapUserData
	limits   *unix.SockFprog
	network  *unix.SockFprog // nil where the network stays
	covers   []cover
	space    uintptr // a mount namespace in which they are covered, 0 for one that is to be made
	top, is  unix.Statx_t
	slash    *byte
	nullFile *byte
	tmpfs    *byte
	small    *byte
}

// cover is a helper's socket, or a directory of them, over which something empty is put.
type cover struct {
	path *byte
	dir  bool
}

func newWall(rules uintptr, noNetwork bool, sockets []string) (w wall, err error) {
	w = wall{rules: rules, limits: limitsFilter(), root: os.Geteuid() == 0, slash: cString("/"),
		nullFile: cString(os.DevNull), tmpfs: cString("tmpfs"), small: cString("size=4k")}
	w.header.Version = unix.LINUX_CAPABILITY_VERSION_3
	if noNetwork {
		if w.network, err = networkFilter(); err != nil {
			return w, fmt.Errorf("the sandbox cannot cut off the network: %w", err)
		}
	}
	for _, path := range sockets {
		if fi, err := os.Stat(path); err == nil && w.root {
			w.covers = append(w.covers, cover{cString(path), fi.IsDir()})
		}
	}
	return w, nil
}

// cString is for paths, in which there is no zero byte.
func cString(s string) *byte { return &append([]byte(s), 0)[0] }

// enter puts this thread behind the wall. It runs in a forked child too, see child.
//
//go:nosplit
//go:norace
func (w *wall) enter() (step, syscall.Errno) {
	if errno := w.cover(); errno != 0 {
		return stepSpace, errno
	}
	if w.root {
		for c := uintptr(0); c < 64; c++ {
			if _, _, errno := syscall.RawSyscall(unix.SYS_PRCTL, unix.PR_CAPBSET_DROP, c, 0); errno == unix.EINVAL {
				break // the kernel knows no more
			}
		}
		if _, _, errno := syscall.RawSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&w.header)),
			uintptr(unsafe.Pointer(&w.none)), 0); errno != 0 {
			return stepCapabilities, errno
		}
	}
	if _, _, errno := syscall.RawSyscall6(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0); errno != 0 {
		return stepPrivileges, errno
	}
	if _, _, errno := syscall.RawSyscall(unix.SYS_LANDLOCK_RESTRICT_SELF, w.rules, 0, 0); errno != 0 {
		return stepRules, errno
	}
	if w.limits != nil { // best effort: a kernel without seccomp has no such filter
		syscall.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_SPEC_ALLOW,
			uintptr(unsafe.Pointer(w.limits)))
	}
	if w.network == nil {
		return stepNetwork, 0
	}
	_, _, errno := syscall.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0,
		uintptr(unsafe.Pointer(w.network)))
	return stepNetwork, errno
}

// cover covers the sockets in a mount namespace, that of an earlier command or one of this thread's own. Where none may
// be made, they stay: Landlock knows them from ABI 9 on.
//
//go:nosplit
//go:norace
func (w *wall) cover() syscall.Errno {
	if len(w.covers) == 0 {
		return 0
	}
	if w.space != 0 {
		_, _, errno := syscall.RawSyscall(unix.SYS_SETNS, w.space, unix.CLONE_NEWNS, 0)
		if errno == 0 {
			_, _, errno = syscall.RawSyscall6(unix.SYS_STATX, 0, uintptr(unsafe.Pointer(w.slash)), 0,
				unix.STATX_INO, uintptr(unsafe.Pointer(&w.is)), 0)
		}
		if errno == 0 && (w.is.Ino != w.top.Ino || w.is.Dev_major != w.top.Dev_major ||
			w.is.Dev_minor != w.top.Dev_minor) {
			errno = unix.EXDEV // this process has another root than its namespace
		}
		return errno
	}
	if _, _, errno := syscall.RawSyscall(unix.SYS_UNSHARE, unix.CLONE_NEWNS, 0, 0); errno != 0 {
		return 0
	}
	if errno := mount(nil, w.slash, nil, unix.MS_REC|unix.MS_PRIVATE, nil); errno != 0 {
		return 0
	}
	for _, c := range w.covers {
		if c.dir {
			mount(w.tmpfs, c.path, w.tmpfs, unix.MS_RDONLY, w.small)
		} else {
			mount(w.nullFile, c.path, nil, unix.MS_BIND, nil)
		}
	}
	return 0
}

//go:nosplit
//go:norace
func mount(source, target, kind *byte, flags uintptr, data *byte) syscall.Errno {
	_, _, errno := syscall.RawSyscall6(unix.SYS_MOUNT, uintptr(unsafe.Pointer(source)),
		uintptr(unsafe.Pointer(target)), uintptr(unsafe.Pointer(kind)), flags, uintptr(unsafe.Pointer(data)), 0)
	return errno
}
