package proc

import (
	"os"
	"os/exec"
	"syscall"
)

// Child is a process that goes on when this one ends.
type Child struct {
	PID   int
	Ended chan int // its exit code, if it ends before this process does
}

// Detach starts a command in a session of its own, away from the terminal and its signals, with nothing on its standard
// input. Its output replaces what is in the file log (0600).
func Detach(argv []string, dir string, env []string, log string) (Child, error) {
	out, err := os.OpenFile(log, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|os.O_APPEND, 0o600)
	if err != nil {
		return Child{}, err
	}
	defer out.Close()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, env, out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return Child{}, err
	}
	child := Child{PID: cmd.Process.Pid, Ended: make(chan int, 1)}
	go func() {
		_ = cmd.Wait()
		child.Ended <- cmd.ProcessState.ExitCode()
	}()
	return child, nil
}
