// Package proc runs a child process and everything it starts as one unit: with a time limit, with bounded output, and
// with nothing left behind.
//
// The rules that hold here:
//
//   - A command leads a session (setsid) and so a process group of its own. It
//     has no controlling terminal, so nothing below it can ask a question there.
//   - When the command has ended, by itself or not, its remaining children are
//     ended: first by SIGTERM, then by SIGKILL.
//   - No child can hang Run. A process that keeps the output pipe open after all
//     that is cut off.
//   - Only processes that belong to this very command are ever signalled.
package proc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/git-tilth/git-tilth/internal/sandbox"
)

const (
	defaultGrace     = 3 * time.Second
	defaultOutputCap = 1 << 20
	// settle is how long processes that outlive the command may take to end by themselves: `cmd > >(tee log)` leaves
	// a tee that is about to finish.
	settle = 100 * time.Millisecond
	// drainWait limits the wait for more output after all known processes have ended. After drainRounds of it even a
	// steady stream is cut off.
	drainWait   = time.Second
	drainRounds = 10
	// countEvery is how often the processes and the memory of a command are counted, because control groups with limits
	// are rare and the kernel does not count root's processes.
	countEvery = 250 * time.Millisecond
)

// Cmd describes one command.
type Cmd struct {
	// Argv is the program and its arguments. A program without a slash is looked up in the PATH of Env; relative PATH
	// entries are not searched, so that a file in the working directory is never taken for a program.
	Argv []string
	// Dir is the working directory; it has to exist.
	Dir string
	// Env is the whole environment; nil means this process's own.
	Env []string
	// Stdin is fed to the command; nil means an empty one.
	Stdin io.Reader
	// Timeout ends the command after that time; 0 means no limit.
	Timeout time.Duration
	// Grace is the time between the request to end and the kill; 0 means 3 s.
	Grace time.Duration
	// OutputCap is how many bytes of output are kept, half of them from its beginning and half from its end; 0 means
	// 1 MiB.
	OutputCap int
	// Clean redacts secrets in output that is cut; may be nil.
	Clean func(string) string
	// HeadOnly keeps the first OutputCap bytes of standard output and then closes it: the command gets a SIGPIPE.
	HeadOnly bool
	// Lasting lets background children of the command continue unless they hold its output: a credential helper starts
	// its cache this way. A command in a Box never does.
	Lasting bool
	// OnLine gets each line of standard output without its newline, in order, from one goroutine. A line longer than
	// MaxLine is cut. The slice is only valid during the call.
	OnLine func(line []byte)
	// MaxLine is the longest line that OnLine gets, in bytes; 0 means 32 MiB.
	MaxLine int
	// OnErrLine does the same for standard error, which is then separate. Another goroutine calls it than OnLine.
	OnErrLine func(line []byte)
	// Box is the sandbox of the command and its children; nil is none.
	Box *sandbox.Box
	// SeparateStderr keeps standard error in Outcome.Stderr instead of mixing it into the output as a terminal would.
	SeparateStderr bool
}

// Outcome is the end of a command.
type Outcome struct {
	// ExitCode is the command's exit code, or 128 plus the signal's number.
	ExitCode int
	// Signal is the name of the signal that ended the command ("SIGKILL"), if one did.
	Signal string
	// Output is standard output, and standard error too unless SeparateStderr is set. A note in the middle stands for
	// output beyond the cap.
	Output []byte
	// Stderr is standard error if SeparateStderr is set, with the same cap.
	Stderr []byte
	// Truncated reports that output exceeded its cap; with HeadOnly, only standard output counts.
	Truncated bool
	// TimedOut reports that the time limit ended the command.
	TimedOut bool
	// Exceeded is the setting of the limit (processes, memory, disk) that killed the command, or "".
	Exceeded string
	// Canceled reports that the context ended the command.
	Canceled bool
	// Ended says that the command had left processes behind that had to be ended.
	Ended bool
	// Took is the time from start to exit.
	Took time.Duration
}

// Query describes a process for Find.
type Query struct {
	// Name accepts the name of a program, which is cut at 15 bytes.
	Name func(string) bool
	// Places are directories. The process works in one of them or below it, by its working directory or its arguments.
	// An empty list matches any directory.
	Places []string
	// Argument and Variable precede a place in an argument or in the environment of a process that works there:
	// "--git-dir=".
	Argument, Variable string
	// Owner is the user of processes that hide where they work and may be it.
	Owner uint32
}

// ErrDir is wrapped by Run's error if the working directory does not exist.
var ErrDir = errors.New("working directory is gone")

// Run runs a command to its end. A second signal (see package urgency) skips the grace period. The error is the reason
// why the command could not start or, very rarely, why waiting for it failed. The outcome reports an exit code, a time
// limit or a canceled context.
func Run(ctx context.Context, c Cmd) (Outcome, error) {
	if ctx.Err() != nil {
		return Outcome{Canceled: true, ExitCode: -1}, nil
	}
	c.Lasting = c.Lasting && c.Box == nil
	cmd, err := prepare(c)
	if err != nil {
		return Outcome{}, err
	}
	pipes, err := connect(cmd, c)
	if err != nil {
		return Outcome{}, err
	}
	begun := time.Now()
	defer CountChild()()
	fam, err := startFamily(cmd, c)
	pipes.closeChildEnds()
	if err != nil {
		pipes.abandon()
		return Outcome{}, startError(c, err)
	}
	pipes.begin(c)

	var out Outcome
	exited := make(chan error, 1)
	go func() { exited <- fam.tree.Wait(cmd) }()
	startKeeper()
	waitErr := supervise(ctx, c, fam, exited, &out)
	out.Took = time.Since(begun)
	if !c.Lasting || out.Canceled || out.TimedOut || !pipes.drain() {
		out.Ended = fam.endRest(cmp.Or(c.Grace, defaultGrace), SecondSignal(ctx))
		waitErr = cmp.Or(waitErr, fam.waitErr)
		pipes.drain()
	}
	pipes.finish(&out)
	setExit(&out, cmd.ProcessState)
	switch out.Exceeded {
	case "":
	case minFree:
		out.Output = fmt.Appendf(out.Output, "\n[killed: less than %s is left on the disk]\n", minFree)
	default:
		out.Output = fmt.Appendf(out.Output, "\n[killed: it exceeded %s]\n", out.Exceeded)
	}

	var exitErr *exec.ExitError
	if waitErr != nil && !errors.As(waitErr, &exitErr) {
		return out, fmt.Errorf("waiting for %s: %w", c.Argv[0], waitErr)
	}
	return out, nil
}

// supervise waits until the command has exited, ending it if its time is over.
func supervise(ctx context.Context, c Cmd, fam *family, exited <-chan error, out *Outcome) error {
	var limit <-chan time.Time
	if c.Timeout > 0 {
		t := time.NewTimer(c.Timeout)
		defer t.Stop()
		limit = t.C
	}
	var count <-chan time.Time
	full := c.diskFull() // not because of this command
	processes, memory := c.Box.Limits()
	if processes > 0 {
		t := time.NewTicker(countEvery)
		defer t.Stop()
		count = t.C
	}
	for {
		select {
		case err := <-exited:
			fam.gone = true
			return err
		case <-count:
			if out.Exceeded = fam.exceeds(processes, memory); out.Exceeded == "" && !full && c.diskFull() {
				out.Exceeded = minFree
			}
			if out.Exceeded == "" {
				continue
			}
		case <-limit:
			out.TimedOut = true
		case <-ctx.Done():
			out.Canceled = true
		}
		return endLeader(ctx, c, fam, exited, out.Exceeded == "")
	}
}

// minFree is the setting of the least space that a command leaves on its disks.
const minFree = "tilth.minFree"

// diskFull reports whether less is left on the disk of the command's directory or of its temporary files.
func (c Cmd) diskFull() bool {
	return c.Box != nil && slices.ContainsFunc([]string{c.Dir, c.Box.Temp}, func(dir string) bool {
		free, known := DiskFree(dir)
		return known && free < c.Box.MinFree
	})
}

// DiskFree returns the number of free bytes on the disk of a directory; known is false if the system does not tell.
func DiskFree(dir string) (free int64, known bool) {
	var disk unix.Statfs_t
	err := unix.Statfs(dir, &disk)
	return int64(disk.Bavail) * int64(disk.Bsize), err == nil
}

// endLeader sends SIGTERM to the command and its descendants, if it asks, and kills the rest.
func endLeader(ctx context.Context, c Cmd, fam *family, exited <-chan error, asks bool) error {
	for _, step := range []struct {
		sig   syscall.Signal
		wait  time.Duration
		hurry <-chan struct{}
	}{{unix.SIGTERM, cmp.Or(c.Grace, defaultGrace), SecondSignal(ctx)}, {unix.SIGKILL, 10 * time.Second, nil}} {
		if step.sig == unix.SIGTERM && !asks {
			continue
		}
		fam.signal(step.sig)
		t := time.NewTimer(step.wait)
		select {
		case err := <-exited:
			t.Stop()
			fam.gone = true
			return err
		case <-step.hurry:
			t.Stop()
		case <-t.C:
		}
	}
	// A process in uninterruptible sleep outlives SIGKILL; the caller does not have to wait for the disk that it
	// hangs on.
	return errors.New("it did not end after SIGKILL")
}

// setExit translates the exit state as a shell does.
func setExit(out *Outcome, state *os.ProcessState) {
	out.ExitCode = -1
	if state == nil {
		return
	}
	out.ExitCode = state.ExitCode()
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		out.Signal = unix.SignalName(ws.Signal())
		out.ExitCode = 128 + int(ws.Signal())
	}
}
