package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// The descriptors that the process that enters a wall has, and the words of its command line before the command.
const (
	rulesetFD = 3 + iota
	statusFD
)

const (
	argFlags   = 1 + iota // "n": no network; "c": carried, and errors go to standard error
	argSockets            // to cover, with colons between
	argPath               // of the program
	argArgv
)

// Wrap makes a command that is not started yet run inside the box. The function that it returns is to be called once it
// was started, or could not be: it says why the command is not running.
func (b *Box) Wrap(cmd *exec.Cmd) (started func() error, err error) {
	if b == nil {
		return func() error { return nil }, nil
	}
	rules, err := b.ruleset()
	if err != nil {
		return nil, fmt.Errorf("the sandbox cannot be made: %w", err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		rules.Close()
		return nil, err
	}
	cmd.Args = append([]string{Name, b.flags(), b.sockets(), cmd.Path}, cmd.Args...)
	cmd.Path = "/proc/self/exe"
	cmd.ExtraFiles = []*os.File{rules, w}
	return func() error {
		rules.Close()
		w.Close()
		defer r.Close()
		said := make([]byte, 512)
		if n, _ := r.Read(said); n > 0 {
			return errors.New(string(said[:n]))
		}
		return nil
	}, nil
}

// Carry gives a command that is not started yet, and stays outside, what the programs that it starts need to enter the
// box. The function that it returns is to be called once it was started.
func (b *Box) Carry(cmd *exec.Cmd) (started func() error, err error) {
	rules, err := b.ruleset()
	if err != nil {
		return nil, fmt.Errorf("the sandbox cannot be made: %w", err)
	}
	cmd.ExtraFiles = []*os.File{rules}
	return func() error { rules.Close(); return nil }, nil
}

// Enter is the command line that runs a program inside the box, where it was carried to.
func (b *Box) Enter(program string, args ...string) []string {
	self, _ := os.Executable() // else the command line cannot be run, and says so
	return append([]string{self, Name, b.flags() + "c", b.sockets(), program, program}, args...)
}

func (b *Box) sockets() string { return strings.Join(b.Sockets, string(os.PathListSeparator)) }

func (b *Box) flags() string {
	if b.NoNetwork {
		return "n"
	}
	return "-"
}

// init is here for a process that enters a wall: nothing else of the program is set up for it.
func init() {
	args := os.Args
	if len(args) > 1 && args[1] == Name {
		args = args[1:]
	}
	if len(args) <= argArgv || args[0] != Name {
		return
	}
	runtime.LockOSThread()
	status := statusFD
	if strings.Contains(args[argFlags], "c") {
		status = 2
	}
	coverSockets(filepath.SplitList(args[argSockets]))
	err := enter(strings.Contains(args[argFlags], "n"))
	if err == nil {
		unix.Close(rulesetFD)
		if status == statusFD {
			unix.CloseOnExec(statusFD)
		}
		err = syscall.Exec(args[argPath], args[argArgv:], os.Environ())
	}
	_, _ = unix.Write(status, []byte(err.Error()))
	os.Exit(126)
}

// enter puts this thread behind the wall.
func enter(noNetwork bool) error {
	if err := dropCapabilities(); err != nil {
		return fmt.Errorf("the sandbox cannot drop capabilities: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("the sandbox cannot be entered: no_new_privs: %w", err)
	}
	if _, _, errno := unix.RawSyscall(unix.SYS_LANDLOCK_RESTRICT_SELF, rulesetFD, 0, 0); errno != 0 {
		return fmt.Errorf("the sandbox cannot be entered: %w", errno)
	}
	if noNetwork {
		if err := cutNetwork(); err != nil {
			return fmt.Errorf("the sandbox cannot cut off the network: %w", err)
		}
	}
	return nil
}

// coverSockets puts something empty over sockets and directories of them, in a mount namespace of this thread's own.
// Where that may not be made, they stay: Landlock knows them from ABI 9 on.
func coverSockets(paths []string) {
	modes := map[string]uint32{}
	for _, path := range paths {
		var st unix.Stat_t
		if unix.Stat(path, &st) == nil {
			modes[path] = st.Mode & unix.S_IFMT
		}
	}
	if len(modes) == 0 || unix.Geteuid() != 0 || unix.Unshare(unix.CLONE_NEWNS) != nil ||
		unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "") != nil {
		return
	}
	for path, mode := range modes {
		if mode == unix.S_IFDIR {
			_ = unix.Mount("none", path, "tmpfs", unix.MS_RDONLY, "size=4k")
		} else {
			_ = unix.Mount("/dev/null", path, "", unix.MS_BIND, "")
		}
	}
}

// dropCapabilities gives up those of root, for what is executed too.
func dropCapabilities() error {
	if os.Geteuid() != 0 {
		return nil
	}
	for c := uintptr(0); c < 64; c++ {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); errors.Is(err, unix.EINVAL) {
			break // the kernel knows no more
		}
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	return unix.Capset(&header, &none[0])
}
