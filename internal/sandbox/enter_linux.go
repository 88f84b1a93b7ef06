package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// The descriptors that the process that enters a wall has, and the words of its command line before the command.
const (
	rulesetFD = 3 + iota
	statusFD
)

const (
	argFlags = 1 + iota // "n": no network
	argPath             // of the program
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
	flags := "-"
	if b.NoNetwork {
		flags = "n"
	}
	cmd.Args = append([]string{Name, flags, cmd.Path}, cmd.Args...)
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

// init is here for a process that enters a wall: nothing else of the program is set up for it.
func init() {
	if len(os.Args) <= argArgv || os.Args[0] != Name {
		return
	}
	runtime.LockOSThread()
	err := enter(os.Args[argFlags] == "n")
	if err == nil {
		unix.CloseOnExec(statusFD)
		unix.Close(rulesetFD)
		err = syscall.Exec(os.Args[argPath], os.Args[argArgv:], os.Environ())
	}
	_, _ = unix.Write(statusFD, []byte(err.Error()))
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
