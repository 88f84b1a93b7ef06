package sandbox

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Start starts a command inside the box. Its streams are files or nil, and of its attributes only Setsid counts.
func (b *Box) Start(cmd *exec.Cmd) error {
	if b == nil {
		return cmd.Start()
	}
	rules, err := b.ruleset()
	if err != nil {
		return fmt.Errorf("the sandbox cannot be made: %w", err)
	}
	defer rules.Close()
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	defer w.Close()
	c, closeFiles, err := newChild(cmd)
	defer closeFiles()
	if err != nil {
		return err
	}
	c.say = w.Fd()
	if c.wall, err = newWall(rules.Fd(), b.NoNetwork, b.Sockets); err != nil {
		return err
	}
	covered := b.covered(cmd.Dir)
	space := spaces.take(covered)
	defer space.Close()
	if space != nil {
		c.space = space.Fd()
		_ = unix.Statx(0, "/", 0, unix.STATX_INO, &c.top) // where that fails, no root is the same
	}
	syscall.ForkLock.Lock()
	runtime.LockOSThread()
	pid, errno := c.fork()
	runtime.UnlockOSThread()
	syscall.ForkLock.Unlock()
	runtime.KeepAlive(c)
	runtime.KeepAlive(w)
	if errno != 0 {
		return os.NewSyscallError("fork", errno)
	}
	w.Close()
	said, err := io.ReadAll(r) // until the child has executed its command, or given up
	process, found := os.FindProcess(int(pid))
	if err = errors.Join(err, found); err == nil && len(said) == len(failure{}) {
		err = failure(said).err()
	}
	if err != nil && found == nil {
		_ = process.Kill()
		_, _ = process.Wait()
		if errors.Is(err, errSpace) {
			spaces.refuse()
			return b.Start(cmd)
		}
		return err
	}
	if space == nil && len(c.covers) > 0 {
		spaces.keep(covered, process.Pid)
	}
	cmd.Process = process
	return err
}

// child is a process between its fork and its command. There is no Go runtime in it: it cannot allocate, take a lock or
// grow its stack. All that it needs is made before the fork.
type child struct {
	wall
	files     [3]uintptr
	dir, path *byte
	argv, env []*byte
	session   bool
	group     *cloneArgs // of the control group that it begins in; nil for this process's own
	limit     syscall.Rlimit
	say       uintptr // where the failure is written to
	said      failure
	all, mask uint64     // the signals that are blocked, during the fork and else
	old, none [4]uintptr // what a signal does, and its default
}

// cloneArgs is the kernel's struct clone_args.
type cloneArgs struct {
	flags, pidFD, childTID, parentTID, exitSignal, stack, stackSize, tls, setTID, setTIDSize, cgroup uint64
}

func newChild(cmd *exec.Cmd) (c *child, closeFiles func(), err error) {
	var opened []int
	closeFiles = func() {
		for _, fd := range opened {
			unix.Close(fd)
		}
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, closeFiles, err
	}
	defer null.Close()
	c = &child{limit: openFiles(), all: ^uint64(0)}
	if attr := cmd.SysProcAttr; attr != nil {
		c.session = attr.Setsid
		if attr.UseCgroupFD {
			c.group = &cloneArgs{flags: unix.CLONE_INTO_CGROUP, exitSignal: uint64(unix.SIGCHLD)}
			c.group.cgroup = uint64(attr.CgroupFD)
		}
	}
	for i, stream := range []any{cmd.Stdin, cmd.Stdout, cmd.Stderr} {
		f, ok := stream.(*os.File)
		if stream == nil {
			f, ok = null, true
		}
		if !ok {
			return nil, closeFiles, fmt.Errorf("%T is no file", stream)
		}
		fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, len(c.files))
		if err != nil {
			return nil, closeFiles, err
		}
		opened, c.files[i] = append(opened, fd), uintptr(fd)
	}
	var errs [4]error // of names that hold a zero byte
	if cmd.Dir != "" {
		c.dir, errs[0] = unix.BytePtrFromString(cmd.Dir)
	}
	c.path, errs[1] = unix.BytePtrFromString(cmd.Path)
	c.argv, errs[2] = syscall.SlicePtrFromStrings(cmd.Args)
	c.env, errs[3] = syscall.SlicePtrFromStrings(cmd.Environ())
	return c, closeFiles, errors.Join(errs[:]...)
}

// openFiles is the limit that a command outside has on open files. The Go runtime raised that of this process, and
// tells nobody what it was.
var openFiles = sync.OnceValue(func() (limit syscall.Rlimit) {
	_ = syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit)
	out, _ := exec.Command("/bin/sh", "-c", "ulimit -Sn").Output()
	if soft, err := strconv.ParseUint(strings.TrimSpace(string(out)), 10, 64); err == nil {
		limit.Cur = soft
	}
	return limit
})

// fork makes the child, and returns in this process only.
//
//go:nosplit
//go:norace
func (c *child) fork() (pid uintptr, errno syscall.Errno) {
	// A handler of Go's must not run in the child.
	syscall.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(&c.all)),
		uintptr(unsafe.Pointer(&c.mask)), unsafe.Sizeof(c.mask), 0, 0)
	if c.group != nil {
		pid, _, errno = syscall.RawSyscall(unix.SYS_CLONE3, uintptr(unsafe.Pointer(c.group)),
			unsafe.Sizeof(*c.group), 0)
	} else {
		pid, _, errno = syscall.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	}
	if errno == 0 && pid == 0 {
		c.run()
	}
	syscall.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(&c.mask)), 0,
		unsafe.Sizeof(c.mask), 0, 0)
	return pid, errno
}

// run is all that the child does.
//
//go:nosplit
//go:norace
func (c *child) run() {
	step, errno := c.prepare()
	if errno == 0 {
		step, errno = c.enter()
	}
	if errno == 0 && c.space != 0 { // which was entered at its root
		_, _, errno = syscall.RawSyscall(unix.SYS_CHDIR, uintptr(unsafe.Pointer(c.dir)), 0, 0)
	}
	if errno == 0 {
		step = stepExec
		_, _, errno = syscall.RawSyscall(unix.SYS_EXECVE, uintptr(unsafe.Pointer(c.path)),
			uintptr(unsafe.Pointer(&c.argv[0])), uintptr(unsafe.Pointer(&c.env[0])))
	}
	c.said = failure{byte(step), byte(errno)}
	syscall.RawSyscall(unix.SYS_WRITE, c.say, uintptr(unsafe.Pointer(&c.said)), unsafe.Sizeof(c.said))
	for {
		syscall.RawSyscall(unix.SYS_EXIT_GROUP, 126, 0, 0)
	}
}

// prepare does what package os/exec does for a command outside.
//
//go:nosplit
//go:norace
func (c *child) prepare() (step, syscall.Errno) {
	for sig := uintptr(1); sig <= 64; sig++ {
		const handled = 2 // what is below are the default and to ignore, which the command inherits
		_, _, errno := syscall.RawSyscall6(unix.SYS_RT_SIGACTION, sig, 0, uintptr(unsafe.Pointer(&c.old)), 8, 0, 0)
		if errno == 0 && c.old[0] >= handled {
			syscall.RawSyscall6(unix.SYS_RT_SIGACTION, sig, uintptr(unsafe.Pointer(&c.none)), 0, 8, 0, 0)
		}
	}
	if c.session {
		if _, _, errno := syscall.RawSyscall(unix.SYS_SETSID, 0, 0, 0); errno != 0 {
			return stepStart, errno
		}
	}
	if c.dir != nil {
		_, _, errno := syscall.RawSyscall(unix.SYS_CHDIR, uintptr(unsafe.Pointer(c.dir)), 0, 0)
		if errno != 0 {
			return stepStart, errno
		}
	}
	for i, fd := range c.files {
		if _, _, errno := syscall.RawSyscall(unix.SYS_DUP3, fd, uintptr(i), 0); errno != 0 {
			return stepStart, errno
		}
	}
	// Whoever started this process may have left files open for it, and Landlock looks at none that is open.
	syscall.RawSyscall(unix.SYS_CLOSE_RANGE, uintptr(len(c.files)), math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC)
	syscall.RawSyscall6(unix.SYS_PRLIMIT64, 0, unix.RLIMIT_NOFILE, uintptr(unsafe.Pointer(&c.limit)), 0, 0, 0)
	_, _, errno := syscall.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK,
		uintptr(unsafe.Pointer(&c.mask)), 0, unsafe.Sizeof(c.mask), 0, 0)
	return stepStart, errno
}
