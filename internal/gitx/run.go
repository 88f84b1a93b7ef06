package gitx

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/git-tilth/git-tilth/internal/proc"
)

const (
	// outputLimit bounds what is kept of a command's standard output.
	outputLimit = 256 << 20
	// stderrLimit bounds what is kept of what hooks say.
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
	out, err := g.exec(ctx, c)
	g.trace(Call{Dir: c.dir, Args: c.args, Took: time.Since(start), Err: err, Mutates: c.mutates})
	return out, err
}

// exec starts a command and waits for its end.
func (g *Git) exec(ctx context.Context, c command) (output, error) {
	call := proc.Cmd{
		Argv: append([]string{g.program}, c.args...), Dir: c.dir, Env: g.commandEnv(c), Grace: endGrace,
		OutputCap: outputLimit, HeadOnly: true, SeparateStderr: true, Lasting: !c.mutates,
	}
	if c.stdin != nil {
		call.Stdin = bytes.NewReader(c.stdin)
	}
	if c.limit > 0 {
		call.OutputCap = int(c.limit)
	}
	if c.hooks {
		call.OutputCap, call.HeadOnly, call.SeparateStderr = stderrLimit, false, false
	}
	ended, err := proc.Run(ctx, call)
	out := output{stdout: ended.Output, stderr: string(ended.Stderr), truncated: ended.Truncated}
	if c.hooks {
		out = output{stderr: string(ended.Output)}
	}
	full := call.HeadOnly && ended.Truncated
	switch {
	case err == nil && ended.Canceled:
		return out, fmt.Errorf("git %s: %w", subcommand(c.args), ctx.Err())
	case full && c.limit > 0:
		return out, nil
	case full:
		err = fmt.Errorf("more than %d bytes of output", call.OutputCap)
	case err == nil && ended.ExitCode == 0:
		return out, nil
	case ended.Signal != "":
		err = errors.New("ended by " + ended.Signal)
	}
	code := ended.ExitCode
	if err != nil {
		code = -1
	}
	return out, &Error{Args: c.args, Dir: c.dir, ExitCode: code, Stderr: strings.TrimSpace(out.stderr), cause: err}
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
