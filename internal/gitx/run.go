package gitx

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/git-tilth/git-tilth/internal/urgency"
)

const (
	// outputLimit bounds what is kept of a command's standard output.
	outputLimit = 256 << 20
	// stderrLimit bounds what is kept of its standard error.
	stderrLimit = 64 << 10
	// endGrace is how long git and its hooks have to end by themselves, once
	// they were told to or once git is gone and something holds its pipes.
	endGrace = 2 * time.Second
)

// command is one git command to run.
type command struct {
	dir     string
	args    []string
	env     []string // nil: the harness's own
	more    []string // added to env; later lines win
	stdin   []byte
	limit   int64 // bytes of stdout that are enough; 0: all, an error beyond outputLimit
	mutates bool
	hooks   bool // runs hooks: stderr is kept in order with stdout, what they leave behind is ended
}

// output is what a command said.
type output struct {
	stdout    []byte
	stderr    string
	truncated bool
	skipped   bool // a dry run
}

// run runs one git command and waits for it. A command that exits with
// another status than 0 is an *Error, beside which the output is returned.
func (g *Git) run(ctx context.Context, c command) (output, error) {
	if c.mutates && g.dry {
		g.trace(Call{Dir: c.dir, Args: c.args, Mutates: true, Skipped: true})
		return output{skipped: true}, nil
	}
	if g.dry && missing(c.dir) {
		return output{skipped: true}, nil
	}
	start := time.Now()
	out, err := g.start(ctx, c)
	g.trace(Call{Dir: c.dir, Args: c.args, Took: time.Since(start), Err: err, Mutates: c.mutates})
	return out, err
}

func (g *Git) start(ctx context.Context, c command) (output, error) {
	if err := ctx.Err(); err != nil {
		return output{}, fmt.Errorf("git %s: %w", subcommand(c.args), err)
	}
	cmd := exec.CommandContext(ctx, g.program, c.args...)
	cmd.Dir = c.dir
	cmd.Env = g.commandEnv(c)
	if c.stdin != nil {
		cmd.Stdin = bytes.NewReader(c.stdin)
	}
	limit := c.limit
	if limit <= 0 {
		limit = outputLimit
	}
	stdout := &headBuffer{limit: limit}
	stderr := &endsBuffer{limit: stderrLimit}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	if c.hooks {
		cmd.Stdout = stderr
	}
	// A session of its own: a group that can be ended as one, and no
	// controlling terminal on which ssh, gpg or a hook could wait for an answer.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	// SIGTERM lets git remove its lock files; what is left after the grace
	// period is killed.
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = endGrace

	defer urgency.Child()()
	err := cmd.Run()
	if cmd.Process != nil && (c.hooks || ctx.Err() != nil || errors.Is(err, exec.ErrWaitDelay)) {
		// The leader is gone; ESRCH says that nothing else was left.
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil
	}
	out := output{stdout: stdout.buf, stderr: stderr.String(), truncated: stdout.full}
	switch {
	case ctx.Err() != nil && err != nil:
		return out, fmt.Errorf("git %s: %w", subcommand(c.args), ctx.Err())
	case stdout.full && c.limit > 0:
		return out, nil
	case stdout.full:
		err = fmt.Errorf("more than %d bytes of output", limit)
	case err == nil:
		return out, nil
	}
	return out, &Error{Args: c.args, Dir: c.dir, ExitCode: exitStatus(cmd, err), Stderr: strings.TrimSpace(out.stderr), cause: err}
}

// commandEnv is the environment of one command. A command that only reads must
// not take optional locks: git status would rewrite the user's index.
func (g *Git) commandEnv(c command) []string {
	env := c.env
	if env == nil {
		env = g.env.own
		if c.hooks {
			env = g.env.hooks
		}
	}
	env = append(with(env, c.more...), g.preview.environ()...)
	if !c.mutates {
		env = append(env, "GIT_OPTIONAL_LOCKS=0")
	}
	return env
}

// exitStatus returns the exit code, or -1 for a signal or a command that did
// not start.
func exitStatus(cmd *exec.Cmd, err error) int {
	var exit *exec.ExitError
	if errors.As(err, &exit) && cmd.ProcessState != nil {
		return cmd.ProcessState.ExitCode()
	}
	return -1
}

// errFull ends the copying of a command's output: git gets a SIGPIPE and stops
// computing what nobody reads.
var errFull = errors.New("output limit reached")

// headBuffer keeps the first limit bytes.
type headBuffer struct {
	buf   []byte
	limit int64
	full  bool
}

func (b *headBuffer) Write(p []byte) (int, error) {
	if room := b.limit - int64(len(b.buf)); int64(len(p)) > room {
		b.buf = append(b.buf, p[:room]...)
		b.full = true
		return 0, errFull
	}
	b.buf = append(b.buf, p...)
	return len(p), nil
}

// endsBuffer keeps the beginning and the end of what is written: what went
// wrong stands in one of the two.
type endsBuffer struct {
	head, tail []byte
	limit      int
	dropped    int64
}

func (b *endsBuffer) Write(p []byte) (int, error) {
	n := len(p)
	if room := b.limit/2 - len(b.head); room > 0 {
		k := min(room, len(p))
		b.head = append(b.head, p[:k]...)
		p = p[k:]
	}
	b.tail = append(b.tail, p...)
	if over := len(b.tail) - b.limit/2; over > 0 {
		b.dropped += int64(over)
		b.tail = append(b.tail[:0], b.tail[over:]...)
	}
	return n, nil
}

func (b *endsBuffer) String() string {
	if b.dropped == 0 {
		return string(b.head) + string(b.tail)
	}
	return fmt.Sprintf("%s\n[%d bytes left out]\n%s", b.head, b.dropped, b.tail)
}

// inRepo returns a command on the repository with this git directory (its
// common directory or the one of a linked worktree).
func inRepo(gitDir string, args ...string) command {
	return command{dir: gitDir, args: append([]string{"--git-dir=" + gitDir}, args...)}
}

// inWorktree returns a command in a checked worktree.
func (g *Git) inWorktree(wt Worktree, args ...string) command {
	return command{dir: wt.Path, args: args, more: []string{g.ceiling(wt.Path)}}
}

// read runs a command that changes nothing.
func (g *Git) read(ctx context.Context, c command) ([]byte, error) {
	out, err := g.run(ctx, c)
	return out.stdout, err
}

// line runs a command that changes nothing and answers with one line.
func (g *Git) line(ctx context.Context, c command) (string, error) {
	out, err := g.read(ctx, c)
	return strings.TrimSuffix(string(out), "\n"), err
}

// mutate runs a command that changes something.
func (g *Git) mutate(ctx context.Context, c command) (output, error) {
	c.mutates = true
	return g.run(ctx, c)
}

// fields splits the output of -z into its entries.
func fields(out []byte) []string {
	s := strings.TrimSuffix(string(out), "\x00")
	if s == "" {
		return nil
	}
	return strings.Split(s, "\x00")
}
