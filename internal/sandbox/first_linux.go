package sandbox

import (
	"math"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// first is the first process of a pid namespace; orphans there become its children. It is a fork of the holder that
// uses system calls only, because executing this program would take as long as starting the holder. It ignores all
// signals, because pending signals count against the user's limit (RLIMIT_SIGPENDING).
type first struct {
	life, ready int // when the one is closed, it ends; it writes to the other
	said        byte
	proc, at    *byte
	// ignoring is struct sigaction. Ignored children leave no zombies.
	ignoring [8]uintptr
	none     unix.Sigset_t
}

// fork returns to the parent alone. The thread has to be the caller's own.
//
//go:norace
func (f *first) fork() (pid int, err error) {
	f.proc, f.at = unsafe.StringData("proc\x00"), unsafe.StringData("/proc\x00")
	f.ignoring[0] = 1 // SIG_IGN
	var mask unix.Sigset_t
	if !deaf(&mask) {
		return 0, unix.EINVAL
	}
	n, _, errno := syscall.RawSyscall(unix.SYS_CLONE, unix.CLONE_NEWPID|uintptr(unix.SIGCHLD), 0, 0)
	if n == 0 && errno == 0 {
		f.live()
	}
	_ = unix.PthreadSigmask(unix.SIG_SETMASK, &mask, nil)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

// live mounts the namespace's /proc when the holder knows it, and waits for its end.
//
//go:nosplit
//go:norace
func (f *first) live() {
	said, proc, at := uintptr(unsafe.Pointer(&f.said)), uintptr(unsafe.Pointer(f.proc)), uintptr(unsafe.Pointer(f.at))
	ignoring, none := uintptr(unsafe.Pointer(&f.ignoring)), uintptr(unsafe.Pointer(&f.none))
	for sig := uintptr(1); sig <= 64; sig++ {
		syscall.RawSyscall6(unix.SYS_RT_SIGACTION, sig, ignoring, 0, 8, 0, 0)
	}
	syscall.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, none, 0, 8, 0, 0)
	syscall.RawSyscall(unix.SYS_DUP3, uintptr(f.life), 0, 0)
	syscall.RawSyscall(unix.SYS_DUP3, uintptr(f.ready), 1, 0)
	syscall.RawSyscall(unix.SYS_CLOSE_RANGE, 2, math.MaxUint32, 0)
	n, _, errno := syscall.RawSyscall(unix.SYS_READ, 0, said, 1)
	if n == 1 && errno == 0 {
		_, _, errno = syscall.RawSyscall6(unix.SYS_MOUNT, proc, at, proc,
			unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, 0, 0)
		if errno == 0 {
			syscall.RawSyscall(unix.SYS_WRITE, 1, said, 1)
			syscall.RawSyscall(unix.SYS_CLOSE, 1, 0, 0)
			syscall.RawSyscall(unix.SYS_READ, 0, said, 1)
		}
	}
	for {
		syscall.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
	}
}
