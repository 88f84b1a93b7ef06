package sandbox

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The descriptors that the process has which enters a wall.
const (
	rulesetFD = 3 + iota
	reportFD  // where it says what the kernel refused
	groupFD   // cgroup.procs of the control group that it is to join
)

// The words of the command line that enters a wall, before the command.
const (
	argFlags  = 1 + iota // "n": no network; "s": in namespaces; "t": with a /tmp of its own; "g": there is a groupFD
	argLayers            // paths with a layer, joined by NL
	argPath              // of the program
	argArgv
)

// Start starts a command inside the box: this program, which enters the wall and executes the command. Where that
// cannot be, the error is the one that the command would have outside. It is as if cmd itself had been started: its
// attributes, streams and environment hold.
func (b *Box) Start(cmd *exec.Cmd) error {
	if b == nil {
		return cmd.Start()
	}
	b = b.resolving()
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
	inside := *cmd
	err = b.inSpace(&inside, rules, w)
	if errors.Is(err, errSpace) {
		inside = *cmd
		inside.Path, inside.ExtraFiles = selfExe, []*os.File{rules, w}
		inside.Args = b.enter("", nil, cmd.Path, cmd.Args)
		err = inside.Start()
	}
	w.Close()
	if err != nil {
		return err
	}
	said, err := io.ReadAll(r) // until the command was executed, or given up
	if err == nil && len(said) > 0 {
		err = reported(said)
	}
	if err != nil {
		_ = inside.Process.Kill()
		_ = inside.Wait()
		return err
	}
	*cmd = inside
	return nil
}

// inSpace starts it in namespaces of its own. A control group is joined from within: a sibling cannot be made in one.
func (b *Box) inSpace(inside *exec.Cmd, rules, report *os.File) error {
	files, flags := []*os.File{rules, report}, "s"
	if attr := inside.SysProcAttr; attr != nil && attr.UseCgroupFD {
		fd, err := unix.Openat(attr.CgroupFD, "cgroup.procs", unix.O_WRONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		group := os.NewFile(uintptr(fd), "cgroup.procs")
		defer group.Close()
		files, flags = append(files, group), "sg"
	}
	ops := b.mounts()
	if ownTemp(ops) {
		flags += "t"
	}
	var layers []string
	for i := 0; i < len(ops); i += 3 {
		if ops[i] == opLayer || ops[i] == opCopy {
			layers = append(layers, ops[i+1])
		}
	}
	inside.Args = b.enter(flags, layers, inside.Path, inside.Args)
	return spaces.start(ops, inside, files...)
}

// ownTemp reports whether all of /tmp may be changed, and nothing in it is what lies there outside, only to be read.
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

func (b *Box) enter(flags string, layers []string, path string, argv []string) []string {
	if b.NoNetwork {
		flags += "n"
	}
	return append([]string{Name, Name, "-" + flags, strings.Join(layers, "\n"), path}, argv...)
}

// init is here for the process of such a command line: nothing else of the program is set up for it.
func init() {
	if len(os.Args) < 3 || os.Args[0] != Name || os.Args[1] != Name {
		return
	}
	switch os.Args[2] {
	case holds:
		hold()
		os.Exit(0)
	case begins:
		beFirst()
		os.Exit(1)
	}
	if len(os.Args) <= 1+argArgv {
		return
	}
	runtime.LockOSThread()
	args := os.Args[1:]
	has := func(flag string) bool { return strings.Contains(args[argFlags], flag) }
	// Whoever started this process may have left files open for it, and Landlock looks at none that is open.
	_ = unix.CloseRange(rulesetFD, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC)
	var err error
	if has("g") {
		_, err = unix.Write(groupFD, []byte("0"))
	}
	if err == nil {
		err = enter(has("s"), has("t"), has("n"), strings.Split(args[argLayers], "\n"))
	}
	if err == nil {
		err = syscall.Exec(args[argPath], args[argArgv:], os.Environ())
	}
	report(err)
	os.Exit(126)
}

// report sends why a command could not be executed. The number of the kernel's error goes in front of the words, so
// that it stays the error that it is.
func report(err error) {
	var errno syscall.Errno
	words := ""
	if !errors.As(err, &errno) || err != error(errno) {
		words = err.Error()
	}
	_, _ = fmt.Fprintf(os.NewFile(reportFD, "report"), "%d %s", errno, words)
}

func reported(said []byte) error {
	var errno syscall.Errno
	number, words, _ := strings.Cut(string(said), " ")
	_, _ = fmt.Sscan(number, &errno)
	if words == "" {
		return errno
	}
	return errors.New(words)
}

// enter puts this thread behind the wall, and what it executes. There is no way back.
func enter(inSpace, ownTemp, noNetwork bool, layers []string) error {
	if inSpace {
		if err := allowOwn(ownTemp, layers); err != nil {
			return err
		}
	}
	if inSpace || os.Geteuid() == 0 {
		for c := uintptr(0); c < 64 && unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0) != unix.EINVAL; c++ {
		}
		var none [2]unix.CapUserData
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		if err := unix.Capset(&header, &none[0]); err != nil {
			return fmt.Errorf("the sandbox cannot drop capabilities: %w", err)
		}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("the sandbox cannot be entered: no_new_privs: %w", err)
	}
	if _, _, errno := unix.RawSyscall(unix.SYS_LANDLOCK_RESTRICT_SELF, rulesetFD, 0, 0); errno != 0 {
		return fmt.Errorf("the sandbox cannot be entered: %w", errno)
	}
	if limits := limitsFilter(); limits != nil { // best effort: a kernel without seccomp has no such filter
		_ = filter(limits, unix.SECCOMP_FILTER_FLAG_SPEC_ALLOW)
	}
	if !noNetwork {
		return nil
	}
	network, err := networkFilter()
	if err == nil {
		err = filter(network, 0)
	}
	if err != nil {
		return fmt.Errorf("the sandbox cannot cut off the network: %w", err)
	}
	return nil
}

func filter(program *unix.SockFprog, flags uintptr) error {
	_, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags,
		uintptr(unsafe.Pointer(program)))
	if errno != 0 {
		return errno
	}
	return nil
}

// allowOwn allows what the namespaces have of their own. That is known only in them. A right holds for all that is
// mounted below, too.
func allowOwn(temp bool, layers []string) error {
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
	rules := os.NewFile(rulesetFD, "landlock")
	for path, right := range own {
		if err == nil {
			err = allow(rules, path, right&rights(abi))
		}
	}
	runtime.KeepAlive(rules)
	return err
}
