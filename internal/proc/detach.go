package proc

import (
	"cmp"
	"errors"
	"os"
	"os/exec"
	"syscall"

	"github.com/git-tilth/git-tilth/internal/sandbox"
)

// Child is a process that continues after this one.
type Child struct {
	PID   int
	Ended chan int // exit code, if it ends before this process
}

// Detach starts a command in a new process session without the terminal, its signals and standard input. Its output
// replaces the content of the file log (0600). It outlives every other command.
func Detach(argv []string, dir string, env []string, log string) (Child, error) {
	cmd, err := prepare(Cmd{Argv: argv, Dir: dir, Env: env})
	if err != nil {
		return Child{}, err
	}
	cmd.Env = env
	out, err := os.OpenFile(log, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|os.O_APPEND|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return Child{}, err
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		return Child{}, startError(Cmd{Argv: argv}, err)
	}
	child := Child{PID: cmd.Process.Pid, Ended: make(chan int, 1)}
	go func() {
		_ = cmd.Wait()
		child.Ended <- cmd.ProcessState.ExitCode()
	}()
	return child, nil
}

// Attach runs a command on this process's terminal, in its process group, and waits for its end without a time limit.
// No context ends it, so that the user's text is never lost. dir is its working directory, "" for the current one, and
// box its sandbox.
func Attach(dir string, argv, env []string, box *sandbox.Box, in, out, errOut *os.File) error {
	env = box.Environ(env)
	path, err := LookPath(argv[0], "", env)
	if err != nil {
		return err
	}
	startKeeper()
	cmd := &exec.Cmd{Path: path, Args: argv, Env: env, Dir: dir, Stdin: in, Stdout: out, Stderr: errOut}
	if box == nil {
		return cmd.Run()
	}
	tree, err := box.Start(cmd)
	if err != nil {
		return err
	}
	err = tree.Wait(cmd)
	return cmp.Or(err, tree.End(cmd))
}

// HasFailed reports whether err means that a command ran and failed. It returns the exit code, or -1 and the signal
// that ended the command.
func HasFailed(err error) (code int, by syscall.Signal, is bool) {
	exit, is := errors.AsType[*exec.ExitError](err)
	if !is {
		return 0, 0, false
	}
	if ws, ok := exit.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		by = ws.Signal()
	}
	return exit.ExitCode(), by, true
}
