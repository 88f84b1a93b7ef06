package sandbox

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The descriptors of the process that enters a sandbox, before it becomes the command.
const (
	rulesetFD = 3 + iota
	reportFD  // gets the kernel's refusals
)

// The words of the command line that enters a sandbox, before the command.
const (
	argFlags = 1 + iota // "o": no sandbox, "n": no network
	argPath             // path of the program
	argArgv
)

// Start starts a process that enters the sandbox and executes the command. It behaves as if cmd itself had been
// started, with its attributes, streams, environment and errors. Its extra files are for the process that adopts
// orphans, if there is one. Call End of the tree after cmd.Wait. Without a box the command has a tree and no sandbox.
func (b *Box) Start(cmd *exec.Cmd) (*Tree, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	inside := *cmd
	tree, err := b.start(&inside, w)
	w.Close()
	if err != nil {
		return nil, err
	}
	said, err := io.ReadAll(r) // the pipe closes when the command starts or fails to
	if err == nil && len(said) > 0 {
		err = reported(said)
	}
	if err != nil {
		_ = inside.Process.Kill()
		_ = tree.Wait(&inside)
		_ = tree.End(&inside)
		return nil, err
	}
	*cmd = inside
	return tree, nil
}

// start starts a command in namespaces, or without them as a child of a process that adopts its orphans.
func (b *Box) start(cmd *exec.Cmd, report *os.File) (*Tree, error) {
	if b == nil {
		return startReaper(cmd, "o", nil, report, (*exec.Cmd).Start)
	}
	if _, err := networkFilter(); err != nil && b.NoNetwork {
		return nil, fmt.Errorf("the sandbox cannot cut off the network: %w", err)
	}
	now := b.placed(true).resolving()
	rules, err := now.ruleset()
	if err != nil {
		return nil, err
	}
	defer rules.Close()
	plain := *cmd
	tree, err := now.inSpace(cmd, rules, report)
	if !errors.Is(err, errSpace) {
		return tree, err
	}
	if b.place != nil {
		if rules, err = b.placed(false).resolving().ruleset(); err != nil {
			return nil, err
		}
		defer rules.Close()
	}
	if b.over != "" {
		if err := bypass(b.over); err != nil {
			return nil, err
		}
	}
	*cmd = plain
	return startReaper(cmd, b.flags(), rules, report, (*exec.Cmd).Start)
}

// inSpace starts the command in separate namespaces and in its control group, because joining a group later waits for
// the whole system. Without a pid namespace it starts below a process that adopts orphans.
func (b *Box) inSpace(inside *exec.Cmd, rules, report *os.File) (tree *Tree, err error) {
	ops, flags := b.mounts(), b.flags()
	if attr := inside.SysProcAttr; attr != nil && attr.Setsid {
		flags = "s" + flags
	}
	if dir := b.Inside(inside.Dir); dir != inside.Dir {
		inside.Env = append(slices.DeleteFunc(inside.Environ(), func(v string) bool {
			return strings.HasPrefix(v, "PWD=")
		}), "PWD="+dir)
		inside.Dir = dir
	}
	if ownTemp(ops) {
		flags = "t" + flags
	}
	var layers []string
	for i := 0; i < len(ops); i += 3 {
		if ops[i] == opLayer || ops[i] == opCopy {
			layers = append(layers, ops[i+1])
		}
	}
	start := func(cmd *exec.Cmd) (err error) {
		tree, err = spaces.start(ops, flags, strings.Join(layers, "\n"), cmd)
		return err
	}
	has, err := Spaces()
	switch {
	case err != nil:
		return nil, errSpace
	case slices.Contains(has, "pid"):
		inside.ExtraFiles = []*os.File{rules, report}
		err = start(inside)
		return tree, err
	}
	flags = "r" + flags
	return startReaper(inside, b.flags(), rules, report, start)
}

// ownTemp reports whether all of /tmp may be changed, without read-only files of the outer /tmp in it.
func ownTemp(ops []string) bool {
	for i := 0; i < len(ops); i += 3 {
		if (ops[i] == opShow || ops[i] == opTouch) && below(ops[i+1], "/tmp") {
			return false
		}
	}
	return true
}

// selfExe is this program, also after its file was replaced.
const selfExe = "/proc/self/exe"

// init handles such a command line, before the rest of the program is initialised.
func init() {
	if len(os.Args) < 3 || os.Args[0] != Name || os.Args[1] != Name {
		return
	}
	if os.Args[2] == holds {
		hold()
		unix.Exit(0)
	}
	if len(os.Args) <= 1+argArgv {
		return
	}
	runtime.LockOSThread()
	args := os.Args[1:]
	e := entry{rules: rulesetFD, report: reportFD, open: strings.Contains(args[argFlags], "o")}
	if !e.open {
		preferOOM()
	}
	if e.prepare(args[argFlags], args[argPath], args[argArgv:], os.Environ()) == nil {
		e.reap()
	}
	unix.Exit(126)
}

// entry has everything that a process needs to enter the sandbox and execute a command. It uses only system calls,
// because it may run in a fork of a process with threads, which must not allocate memory or grow a stack.
type entry struct {
	files         []int // files of a fork, its streams first
	group         int   // the control group in which a fork is made; 0 for none
	session       bool  // a fork calls setsid
	own           bool  // a fork is a child of this process, not of its parent
	dir           *byte // working directory of a fork; nil keeps it
	rules, report int
	open          bool // runs without a sandbox
	mask          unix.Sigset_t
	limits, cut   *unix.SockFprog
	processes     unix.Rlimit // their largest number; 0 is no limit
	path          *byte
	argv, env     []*byte

	clone  cloneArgs
	header unix.CapUserHeader
	none   [2]unix.CapUserData
	said   [2]uint32
}

// cloneArgs is struct clone_args of clone3(2) up to the control group.
type cloneArgs struct {
	flags, pidFD, childTID, parentTID, exitSignal, stack, stackSize, tls, setTID, setTIDSize, cgroup uint64
}

// Kinds of failures: the command could not be executed, or the sandbox not be entered.
const (
	failsOutside = iota
	failsToEnter
)

// reported is the error of an entry.
func reported(said []byte) error {
	if len(said) != 8 {
		return errors.New("the sandbox cannot be entered")
	}
	errno := syscall.Errno(binary.NativeEndian.Uint32(said[4:]))
	if binary.NativeEndian.Uint32(said) == failsOutside {
		return errno
	}
	return fmt.Errorf("the sandbox cannot be entered: %w", errno)
}

// prepare stores the command to execute.
func (e *entry) prepare(flags, path string, argv, env []string) (err error) {
	e.header.Version, e.limits = unix.LINUX_CAPABILITY_VERSION_3, limitsFilter()
	e.readLimits(flags)
	if strings.Contains(flags, "n") {
		if e.cut, err = networkFilter(); err != nil {
			return err
		}
	}
	e.path, err = syscall.BytePtrFromString(path)
	if err == nil {
		e.argv, err = syscall.SlicePtrFromStrings(argv)
	}
	if err == nil {
		e.env, err = syscall.SlicePtrFromStrings(env)
	}
	return err
}

// fork starts a child of this process's parent that enters the sandbox. Executing a program for that would cost more
// than most commands. All signals are blocked meanwhile, so that the child runs none of this program's handlers.
func (e *entry) fork() (pid uintptr, errno syscall.Errno) {
	if !deaf(&e.mask) {
		return 0, unix.EINVAL
	}
	pid, errno = e.split()
	_ = unix.PthreadSigmask(unix.SIG_SETMASK, &e.mask, nil)
	return pid, errno
}

// deaf blocks all signals of this thread, and returns those that were blocked before.
func deaf(before *unix.Sigset_t) bool {
	var all unix.Sigset_t
	for i := range all.Val {
		all.Val[i] = ^all.Val[i]
	}
	return unix.PthreadSigmask(unix.SIG_SETMASK, &all, before) == nil
}

// split is the fork itself.
//
//go:noinline
//go:norace
func (e *entry) split() (pid uintptr, errno syscall.Errno) {
	if e.own {
		pid, _, errno = syscall.RawSyscall(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0)
	} else if e.group == 0 {
		pid, _, errno = syscall.RawSyscall(unix.SYS_CLONE, unix.CLONE_PARENT|uintptr(unix.SIGCHLD), 0, 0)
	} else {
		e.clone = cloneArgs{flags: unix.CLONE_PARENT | unix.CLONE_INTO_CGROUP, cgroup: uint64(e.group)}
		at, size := uintptr(unsafe.Pointer(&e.clone)), unsafe.Sizeof(e.clone)
		pid, _, errno = syscall.RawSyscall(unix.SYS_CLONE3, at, size, 0)
	}
	if pid == 0 && errno == 0 {
		e.begin()
	}
	return pid, errno
}

// begin runs in a fork and does not return.
//
//go:nosplit
//go:norace
func (e *entry) begin() {
	var errno syscall.Errno
	if e.session {
		_, _, errno = syscall.RawSyscall(unix.SYS_SETSID, 0, 0, 0)
	}
	for to := 0; to < len(e.files) && errno == 0; to++ {
		_, _, errno = syscall.RawSyscall(unix.SYS_DUP3, uintptr(e.files[to]), uintptr(to), 0)
	}
	if errno == 0 && e.dir != nil {
		_, _, errno = syscall.RawSyscall(unix.SYS_CHDIR, uintptr(unsafe.Pointer(e.dir)), 0, 0)
	}
	if errno == 0 && e.enter() {
		syscall.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(&e.mask)), 0, 8, 0, 0)
		_, _, errno = syscall.RawSyscall(unix.SYS_EXECVE, uintptr(unsafe.Pointer(e.path)),
			uintptr(unsafe.Pointer(&e.argv[0])), uintptr(unsafe.Pointer(&e.env[0])))
	}
	if errno != 0 {
		e.fail(failsOutside, errno)
	}
	for {
		syscall.RawSyscall(unix.SYS_EXIT_GROUP, 126, 0, 0)
	}
}

// fail reports why a command could not be executed, and returns false.
//
//go:nosplit
//go:norace
func (e *entry) fail(what uint32, errno syscall.Errno) bool {
	e.said[0], e.said[1] = what, uint32(errno)
	syscall.RawSyscall(unix.SYS_WRITE, uintptr(e.report), uintptr(unsafe.Pointer(&e.said)), unsafe.Sizeof(e.said))
	return false
}

// enter puts this thread and the program that it executes into the sandbox.
//
//go:nosplit
//go:norace
func (e *entry) enter() bool {
	// This process may have inherited open files, and Landlock does not check open files.
	syscall.RawSyscall(unix.SYS_CLOSE_RANGE, uintptr(max(rulesetFD, len(e.files))), math.MaxUint32,
		unix.CLOSE_RANGE_CLOEXEC)
	if e.open {
		return true
	}
	if e.processes.Max != 0 {
		syscall.RawSyscall(unix.SYS_SETRLIMIT, unix.RLIMIT_NPROC, uintptr(unsafe.Pointer(&e.processes)), 0)
	}
	var errno syscall.Errno
	for c := uintptr(0); c < 64 && errno != unix.EINVAL; c++ {
		_, _, errno = syscall.RawSyscall6(unix.SYS_PRCTL, unix.PR_CAPBSET_DROP, c, 0, 0, 0, 0)
	}
	_, _, errno = syscall.RawSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&e.header)),
		uintptr(unsafe.Pointer(&e.none)), 0)
	if errno == 0 {
		_, _, errno = syscall.RawSyscall6(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0)
	}
	if errno == 0 {
		_, _, errno = syscall.RawSyscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(e.rules), 0, 0)
	}
	if errno == 0 && e.limits != nil { // a kernel without seccomp has no such filter
		syscall.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_SPEC_ALLOW,
			uintptr(unsafe.Pointer(e.limits)))
	}
	if errno == 0 && e.cut != nil {
		_, _, errno = syscall.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0,
			uintptr(unsafe.Pointer(e.cut)))
	}
	return errno == 0 || e.fail(failsToEnter, errno)
}

// allowOwn allows the namespaces' own directories, which are known only inside. A right also applies to everything
// mounted below.
func allowOwn(rules int, temp bool, layers []string) error {
	own := map[string]uint64{"/proc": readTree, "/dev/shm": readTree | editTree, "/dev/pts": readTree | editTree,
		"/dev/ptmx": readTree | editTree}
	if temp {
		layers = append(layers, "/tmp")
	}
	for _, dir := range layers {
		own[dir] = readTree | editTree
	}
	delete(own, "")
	abi, err := version()
	for path, right := range own {
		if err == nil {
			err = allow(rules, path, right&rights(abi))
		}
	}
	return err
}
