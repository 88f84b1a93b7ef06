// Package ttytest drives a program at its own pseudo-terminal, so a test gets real signals and a real line discipline.
package ttytest

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
)

// Console is a program at a pseudo-terminal and its output so far.
type Console struct {
	t    testing.TB
	cmd  *exec.Cmd
	tty  *os.File
	seen strings.Builder
	at   int // behind what was expected last
}

// patience limits the run time of a program, because a program that waits for missing input would run for ever.
const patience = 2 * time.Minute

// Start starts a program at a pseudo-terminal, and ends it with the test.
func Start(t testing.TB, cmd *exec.Cmd) *Console {
	t.Helper()
	c := &Console{t: t, cmd: cmd}
	var err error
	if c.tty, err = Run(cmd, 0, 0); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	t.Cleanup(func() { late.Stop(); c.tty.Close(); _ = c.cmd.Process.Kill(); _ = c.cmd.Wait() })
	keepOutput(t, c.tty)
	return c
}

// Run starts a program in a new session at a new terminal of this size and returns the terminal's other end.
func Run(cmd *exec.Cmd, rows, columns uint16) (*os.File, error) {
	return pty.StartWithSize(cmd, &pty.Winsize{Rows: rows, Cols: columns})
}

// Seen returns all output read so far.
func (c *Console) Seen() string { return c.seen.String() }

// Expect reads until the texts have been shown in this order, after the texts expected before.
func (c *Console) Expect(texts ...string) {
	c.t.Helper()
	for _, text := range texts {
		for {
			if i := strings.Index(c.seen.String()[c.at:], text); i >= 0 {
				c.at += i + len(text)
				break
			}
			if n, err := c.read(); err != nil && n == 0 {
				c.t.Fatalf("%q was not shown: %v\n%s", text, err, c.Seen())
			}
		}
	}
}

// Send types keys.
func (c *Console) Send(keys string) {
	c.t.Helper()
	if _, err := c.tty.WriteString(keys); err != nil {
		c.t.Fatal(err)
	}
}

// Ends reads to the end and wants an exit code, 128 and the signal's number for a signal as a shell has it.
func (c *Console) Ends(code int) {
	c.t.Helper()
	for {
		if _, err := c.read(); err != nil { // a terminal that nobody has open any more
			break
		}
	}
	c.Wait()
	got := c.cmd.ProcessState.ExitCode()
	if status := c.cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signaled() {
		got = 128 + int(status.Signal())
	}
	if got != code {
		c.t.Fatalf("exit code %d, want %d\n%s", got, code, c.Seen())
	}
}

// Wait waits for the program's end, whatever its exit code.
func (c *Console) Wait() { _ = c.cmd.Wait() }

// HangUp takes the terminal away and waits for the program's end.
func (c *Console) HangUp() {
	c.tty.Close()
	c.Wait()
}

// Kill kills the program with SIGKILL and waits for its end.
func (c *Console) Kill() {
	c.t.Helper()
	if err := c.cmd.Process.Kill(); err != nil {
		c.t.Fatal(err)
	}
	c.Wait()
}

func (c *Console) read() (int, error) {
	buf := make([]byte, 4096)
	n, err := c.tty.Read(buf)
	c.seen.Write(buf[:n])
	return n, err
}
