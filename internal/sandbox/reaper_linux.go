package sandbox

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The descriptors of a reaper, after those of an entry.
const (
	lifeFD = reportFD + 1 + iota
	statusFD
)

// startReaper starts a command without a pid namespace: below a process of this program that adopts all orphans and
// ends them. Extra files of the command stay open in that process.
func startReaper(cmd *exec.Cmd, flags string, rules, report *os.File, start func(*exec.Cmd) error) (*Tree, error) {
	cmd.Args = append([]string{Name, Name, "-" + flags, cmd.Path}, cmd.Args...)
	cmd.Path = selfExe
	var ours, its [2]*os.File
	var err error
	if its[0], ours[0], err = os.Pipe(); err != nil {
		return nil, err
	}
	defer its[0].Close()
	if ours[1], its[1], err = os.Pipe(); err == nil {
		defer its[1].Close()
		cmd.ExtraFiles = append([]*os.File{rules, report, its[0], its[1]}, cmd.ExtraFiles...)
		err = start(cmd)
	}
	if err != nil {
		ours[0].Close()
		return nil, err
	}
	return &Tree{Root: cmd.Process.Pid, life: ours[0], status: ours[1]}, nil
}

// reap runs a reaper. It starts the command, reaps all orphans, and exits with the command's status once no child is
// left. When life is closed, it kills its children repeatedly, because the children of a killed process become its own.
func (e *entry) reap() {
	stayDeaf()
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	_ = syscall.Exec("", nil, nil) // restores the limit of open files
	e.own = true
	self, _ := unix.Getsid(0)
	e.session = self == os.Getpid()
	pid, errno := e.fork()
	if errno != 0 {
		e.fail(failsToEnter, errno)
		unix.Exit(126)
	}
	if null, err := unix.Open(os.DevNull, unix.O_RDWR, 0); err == nil {
		for fd := range 3 {
			_ = unix.Dup3(null, fd, 0)
		}
	}
	unix.Close(reportFD)
	unix.Close(rulesetFD)
	go func() {
		_, _ = unix.Read(lifeFD, make([]byte, 1))
		children := "/proc/self/task/" + strconv.Itoa(os.Getpid()) + "/children"
		for round := 0; ; round++ {
			if round > 1000 {
				time.Sleep(time.Millisecond)
			}
			data, _ := os.ReadFile(children)
			for _, name := range strings.Fields(string(data)) {
				if child, _ := strconv.Atoi(name); child > 0 {
					_ = unix.Kill(child, unix.SIGKILL)
				}
			}
		}
	}()
	var ended unix.WaitStatus
	for {
		var status unix.WaitStatus
		child, err := unix.Wait4(-1, &status, 0, nil)
		switch {
		case err == unix.EINTR:
		case err != nil:
			exitAs(ended)
		case child == int(pid):
			ended = status
			unix.Close(statusFD)
		}
	}
}

// exitAs ends this process with another one's status. os.Exit would sleep for a second in a program built with -race.
func exitAs(status unix.WaitStatus) {
	if status.Signaled() {
		_ = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{})
		var none [8]uintptr // struct sigaction: the default, which the runtime replaces for most signals
		syscall.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(status.Signal()), uintptr(unsafe.Pointer(&none)), 0, 8, 0, 0)
		_ = unix.Kill(os.Getpid(), status.Signal())
		unix.Exit(128 + int(status.Signal()))
	}
	unix.Exit(status.ExitStatus())
}
