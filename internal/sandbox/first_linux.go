package sandbox

import (
	"math"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// inits makes a pid namespace for each command. Every namespace ends with the holder: the holder alone has the other
// end of the pipe, at which the first processes wait.
type inits int

// newInits tries to make a pid namespace; -1 if it cannot.
func newInits() inits {
	var life [2]int
	if unix.Pipe2(life[:], unix.O_CLOEXEC) != nil {
		return -1
	}
	i := inits(life[0])
	pid, err := i.with(0, func() error { return nil })
	if pid > 0 {
		_ = unix.Kill(pid, unix.SIGKILL)
		_, _ = unix.Wait4(pid, nil, 0, nil)
	}
	if err != nil {
		return -1
	}
	return i
}

// with makes a pid namespace with its own /proc in a copy of this thread's mount namespace, and calls do in a thread
// that is in both. An ordinary user's thread cannot return to its pid namespace, so that thread ends. On an error the
// namespace may have a first process too, with its pid.
func (i inits) with(flags uintptr, do func() error) (pid int, err error) {
	var ready [2]int
	if err := unix.Pipe2(ready[:], unix.O_CLOEXEC); err != nil {
		return 0, err
	}
	defer unix.Close(ready[0])
	f := &first{life: int(i), ready: ready[1], flags: flags}
	pid, err = f.fork()
	unix.Close(ready[1])
	if err != nil {
		return 0, err
	}
	defer unix.Close(int(f.fd))
	if n, _ := unix.Read(ready[0], make([]byte, 1)); n != 1 {
		return pid, unix.EPERM
	}
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		// Threads share the root directory, which comes with a mount namespace.
		err := unix.Unshare(unix.CLONE_FS)
		if err == nil {
			err = unix.Setns(int(f.fd), unix.CLONE_NEWPID|unix.CLONE_NEWNS)
		}
		_ = unix.Setns(int(f.fd), unix.CLONE_NEWIPC) // refused if it is the one from outside
		if err == nil {
			err = do()
		}
		done <- err
	}()
	return pid, <-done
}

// first is the first process of a pid namespace; orphans there become its children. It is a fork of the holder that
// uses system calls only, because executing this program would take as long as starting the holder. It ignores all
// signals, because pending signals count against the user's limit (RLIMIT_SIGPENDING).
type first struct {
	life, ready int // the process ends when life is closed, and writes to ready
	flags       uintptr
	fd          int32 // pidfd of the process
	said        byte
	// The numbers in the namespace begin with the number of this process outside. So no number comes twice in the turns
	// of a conversation, and a lock that an earlier turn left names no living process.
	proc, at, self, last *byte
	number               [20]byte
	// ignoring is struct sigaction. Ignored children leave no zombies.
	ignoring [8]uintptr
	none     unix.Sigset_t
}

// fork returns to the parent alone. The thread has to be the caller's own.
//
//go:norace
func (f *first) fork() (pid int, err error) {
	f.proc, f.at = unsafe.StringData("proc\x00"), unsafe.StringData("/proc\x00")
	f.self, f.last = unsafe.StringData("/proc/self\x00"), unsafe.StringData("/proc/sys/kernel/ns_last_pid\x00")
	f.ignoring[0] = 1 // SIG_IGN
	var mask unix.Sigset_t
	if !deaf(&mask) {
		return 0, unix.EINVAL
	}
	n, _, errno := syscall.RawSyscall6(unix.SYS_CLONE, f.flags|unix.CLONE_NEWPID|unix.CLONE_NEWNS|unix.CLONE_PIDFD|
		uintptr(unix.SIGCHLD), 0, uintptr(unsafe.Pointer(&f.fd)), 0, 0, 0)
	if n == 0 && errno == 0 {
		f.live()
	}
	_ = unix.PthreadSigmask(unix.SIG_SETMASK, &mask, nil)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

// live mounts the namespace's /proc and waits for the namespace's end.
//
//go:nosplit
//go:norace
func (f *first) live() {
	said, proc, at := uintptr(unsafe.Pointer(&f.said)), uintptr(unsafe.Pointer(f.proc)), uintptr(unsafe.Pointer(f.at))
	number := uintptr(unsafe.Pointer(&f.number))
	ignoring, none := uintptr(unsafe.Pointer(&f.ignoring)), uintptr(unsafe.Pointer(&f.none))
	for sig := uintptr(1); sig <= 64; sig++ {
		syscall.RawSyscall6(unix.SYS_RT_SIGACTION, sig, ignoring, 0, 8, 0, 0)
	}
	syscall.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, none, 0, 8, 0, 0)
	syscall.RawSyscall(unix.SYS_DUP3, uintptr(f.life), 0, 0)
	syscall.RawSyscall(unix.SYS_DUP3, uintptr(f.ready), 1, 0)
	syscall.RawSyscall(unix.SYS_CLOSE_RANGE, 2, math.MaxUint32, 0)
	const flags = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	n, _, _ := syscall.RawSyscall6(unix.SYS_READLINKAT, unix.AT_FDCWD&math.MaxUint32, uintptr(unsafe.Pointer(f.self)),
		number, uintptr(len(f.number)), 0, 0)
	_, _, errno := syscall.RawSyscall6(unix.SYS_MOUNT, proc, at, proc, flags, 0, 0)
	if errno == 0 {
		fd, _, errno := syscall.RawSyscall6(unix.SYS_OPENAT, unix.AT_FDCWD&math.MaxUint32,
			uintptr(unsafe.Pointer(f.last)), unix.O_WRONLY, 0, 0, 0)
		if errno == 0 && n > 0 && n < uintptr(len(f.number)) {
			syscall.RawSyscall(unix.SYS_WRITE, fd, number, n)
			syscall.RawSyscall(unix.SYS_CLOSE, fd, 0, 0)
		}
		_, _, errno = syscall.RawSyscall6(unix.SYS_MOUNT, 0, at, 0, flags|unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY,
			0, 0)
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
