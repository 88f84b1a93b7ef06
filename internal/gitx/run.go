// Package gitx is the only place of the project that runs git.
//
// Rules that hold in every file:
//   - A directory is always named. Work on a repository names its common directory and passes it as --git-dir; work
//     in a worktree takes a [Worktree], which only a passed check hands out, and runs below a GIT_CEILING_DIRECTORIES,
//     so that git never climbs to an enclosing repository.
//   - The environment is scrubbed once, in [New]. Nothing that git exports to hooks and aliases reaches a command,
//     except in [Git.Discover].
//   - A dry run skips commands that change something; they are marked as such.
//   - Output is read with -z from plumbing, so that the user's settings for colour, quoting, renames or diff programs
//     do not affect it.
//
// The oldest supported git is 2.36 (git hook run, git worktree list -z).
package gitx

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/sandbox"
)

// Call is one git command, as it ran or, in a dry run, as it would have run.
type Call struct {
	Dir     string        // working directory of the command
	Args    []string      // arguments after "git"
	Took    time.Duration // zero if Skipped
	Err     error         // as returned to the caller
	Mutates bool          // the command changes something
	Skipped bool          // skipped by a dry run
	Ahead   bool          // a preview in a temporary git directory
}

// Git runs git commands with one environment. It does not change after its first use, and is safe for concurrent use.
type Git struct {
	env      environment
	program  string
	trace    func(Call)
	dry      bool
	started  time.Time
	find     func(proc.Query) (pid int, err error)
	patience time.Duration // maximum wait for a lock of a live process
	inTree   time.Duration // maximum time of one command's hooks, and of a command in a worker's tree
	known    *known
	in       *quarantine // for work in a worktree; nil before it starts
	strict   bool        // see Strict
	raw      bool        // files are staged and checked out without .gitattributes

	// Sandbox returns the sandbox for git in a worktree that a worker may have changed. It is nil, or returns nil,
	// without a sandbox.
	Sandbox func() (*sandbox.Box, error)
	// FilterTime is the time limit of a command in a worker's tree with its filters; 0 is a long default.
	FilterTime time.Duration
	// MaxFileSize is the size in bytes above which many slow files are not staged; 0 is no limit.
	MaxFileSize int64
}

// known caches answers of git for one process. Copies of a Git share it.
type known struct {
	planned  memo[place]     // worktrees that a dry run would have created, by path
	settings memo[*settings] // by the directory in which they were read
	separate memo[string]    // git directories of work trees without a .git
	version  memo[string]
	tops     memo[string] // worktrees that passed the check, with the directory of each
}

// memo is a map that is safe for concurrent use.
type memo[V any] struct{ values sync.Map }

func (m *memo[V]) get(key string) (v V, ok bool) {
	known, ok := m.values.Load(key)
	if ok {
		v = known.(V)
	}
	return v, ok
}

func (m *memo[V]) set(key string, v V) { m.values.Store(key, v) }

// New returns a Git with a scrubbed copy of environ ("NAME=value" lines, as from os.Environ). trace, if not nil, is
// called after every git command, possibly from several goroutines at once.
//
// A dry run traces mutations as Skipped and does not run them. It runs reads, so that a sequence of both takes the
// same path as a real run: StageAll returns the tree that it would make, [Git.Worktree] accepts a worktree that a
// skipped command would have created, and a read in a directory that only a skipped command would have created finds
// nothing. A skipped commit is named <commit>.
func New(environ []string, dry bool, trace func(Call)) *Git {
	if trace == nil {
		trace = func(Call) {}
	}
	return &Git{
		dry:         dry,
		env:         newEnvironment(environ),
		program:     findGit(environ),
		trace:       trace,
		started:     time.Now(),
		find:        proc.Find,
		patience:    lockPatience,
		inTree:      treePatience,
		MaxFileSize: largeFile,
		known:       &known{},
	}
}

// Version returns git's version, and whether it is at least a given version.
func (g *Git) Version(ctx context.Context, major, minor int) (v string, atLeast bool) {
	v, known := g.known.version.get("")
	if !known {
		out, err := g.Line(ctx, Command{Dir: "/", Args: []string{"version"}})
		if err != nil {
			return "", false
		}
		// Vendors append to the line: "git version 2.39.5 (Apple Git-154)".
		v = strings.TrimPrefix(out, "git version ")
		g.known.version.set("", v)
	}
	first, rest, _ := strings.Cut(v, ".")
	second, _, _ := strings.Cut(rest, ".")
	return v, atoi(first) > major || atoi(first) == major && atoi(second) >= minor
}

const (
	// outputLimit limits the kept standard output of a command, in bytes.
	outputLimit = 256 << 20
	// stderrLimit limits the kept output of hooks, in bytes.
	stderrLimit = 64 << 10
	// treePatience limits a command in a worker's tree and its hooks. Some hooks run all tests.
	treePatience = 30 * time.Minute
	// endGrace is the time in which git and its hooks must end, after a signal or after git's exit with open pipes.
	endGrace = 2 * time.Second
)

// Command is one git command. [InRepo] and [Git.InWorktree] make it; [Git.Read], [Git.Line], [Git.List] and
// [Git.Mutate] run it. A command with special rules or several callers is a method of Git; a command with one caller
// is written at the caller.
type Command struct {
	Dir     string
	Args    []string
	Vars    []string // added to its environment; later lines win
	Stdin   []byte
	Hooks   bool         // runs hooks: the output is both streams, and background processes are killed
	Objects bool         // reads the raw objects of the repository at Dir, see asTheyAre
	Keys    bool         // may contact a remote: gets the variables of credential helpers and ssh
	Environ []string     // replaces git-tilth's environment; keys are removed
	Tree    string       // the worker's tree that the command reads; default: wt
	Box     *sandbox.Box // sandbox of a command that is not in a worktree
	wt      Worktree     // worktree of a command that runs in quarantine
	input   io.Reader    // instead of Stdin
	env     []string     // nil: git-tilth's own
	Limit   int64        // stop after this many bytes of stdout; 0: all, and more than outputLimit is an error
	mutates bool
	again   []string // other arguments for a second try, see disturbed
	said    *[]byte  // gets the standard error of a successful command
}

// Read runs a command that changes nothing and returns its output, also with an error. A non-zero exit status is an
// error; [ExitCode] returns the status.
func (g *Git) Read(ctx context.Context, c Command) ([]byte, error) {
	if c.Objects {
		remove, err := asTheyAre(&c)
		if err != nil {
			return nil, err
		}
		defer remove()
	}
	if c.mutates && g.dry {
		g.trace(Call{Dir: c.Dir, Args: c.Args, Mutates: true, Skipped: true})
		return []byte(placeholders[subcommand(c.Args)]), nil
	}
	if g.dry && absent(c.Dir) {
		return nil, nil
	}
	if c.wt.Path != "" && g.in == nil {
		var out []byte
		err := g.quarantined(ctx, c.wt, c.mutates && !c.Hooks, func(in *Git) (err error) {
			out, err = in.Read(ctx, c)
			return err
		})
		return out, err
	}
	for try := 1; ; try++ {
		start := time.Now()
		out, err := g.exec(ctx, c)
		g.trace(Call{Dir: c.Dir, Args: c.Args, Took: time.Since(start), Err: err, Mutates: c.mutates})
		if err == nil || try == maxTries || !disturbed(ctx, err, try) && (g.dry || !outOfMemory(c, err)) {
			return out, err
		}
		if c.again != nil {
			c.Args = c.again
		}
	}
}

// placeholders replace the names that skipped commands of a dry run would have printed.
var placeholders = map[string]string{"commit-tree": "<commit>", "pack-objects": "<pack>"}

// maxTries limits how often a command runs again because other gits disturb it, all within a second.
const maxTries = 10

// disturbed reports whether a command failed because of another git and can be repeated, and waits a little. While
// another git adds a worktree, its empty commondir breaks most commands in other worktrees, and its HEAD without a
// commit breaks a fetch. Both fail before the command changes anything except the branch of a `git worktree add`.
// Removing the last entry also removes the directory of all entries, even while another git creates an entry.
func disturbed(ctx context.Context, err error, try int) bool {
	said := saidBy(err).Stderr
	again := strings.Contains(said, "bad object worktrees/") ||
		strings.Contains(said, "failed to read ") && strings.Contains(said, "/commondir: ") ||
		strings.Contains(said, "could not create directory of ") &&
			strings.HasSuffix(said, ": No such file or directory")
	if again {
		time.Sleep(time.Duration(try) * lockPoll)
	}
	return again && ctx.Err() == nil
}

// exec starts a command and waits for its end.
func (g *Git) exec(ctx context.Context, c Command) ([]byte, error) {
	call := proc.Cmd{
		Argv: append([]string{g.program}, c.Args...), Dir: c.Dir, Env: g.commandEnv(c), Grace: endGrace,
		OutputCap: outputLimit, HeadOnly: true, SeparateStderr: true, Box: c.Box, Stdin: c.input,
	}
	tree := cmp.Or(c.Tree, c.wt.Path)
	call.Lasting = !c.mutates && tree == ""
	if c.wt.Path != "" {
		call.Box = g.in.boxOf(c)
	}
	if c.Stdin != nil {
		call.Stdin = bytes.NewReader(c.Stdin)
	}
	if c.Limit > 0 {
		call.OutputCap = int(c.Limit)
	}
	if c.Hooks {
		call.OutputCap, call.HeadOnly, call.SeparateStderr = stderrLimit, false, false
	}
	if tree != "" {
		call.Timeout = cmp.Or(g.FilterTime, g.inTree)
	}
	if c.Hooks {
		call.Timeout = g.inTree
	}
	if tree != "" && !g.dry {
		looks := 0
		defer whileSlow(func() {
			looks++
			unblock(tree, looks >= desperate)
		})()
	}
	ended, err := proc.Run(ctx, call)
	out, said := ended.Output, ended.Stderr
	if c.Hooks {
		said = out
	}
	full := call.HeadOnly && ended.Truncated
	switch {
	case err == nil && ended.Canceled:
		return out, fmt.Errorf("git %s: %w", subcommand(c.Args), ctx.Err())
	case err == nil && ended.TimedOut && c.Hooks:
		err = errHookTime
	case err == nil && ended.TimedOut:
		err = errTreeTime
	case full && c.Limit > 0:
		return out, nil
	case full:
		err = fmt.Errorf("more than %d bytes of output", call.OutputCap)
	case err == nil && ended.ExitCode == 0:
		if c.said != nil {
			*c.said = said
		}
		return out, nil
	case ended.Signal != "":
		err = errors.New("ended by " + ended.Signal)
	}
	code := ended.ExitCode
	if err != nil {
		code = -1
	}
	return out, &commandError{Args: c.Args, ExitCode: code, Stderr: string(bytes.TrimSpace(said)), cause: err,
		tree: tree != ""}
}

// commandEnv returns the environment of one command. A reading command must not take optional locks, because git
// status would rewrite the user's index.
func (g *Git) commandEnv(c Command) []string {
	env := c.env
	switch {
	case env != nil:
	case c.Environ != nil:
		env = withoutKeys(c.Environ)
	case c.Keys:
		env = with(g.env.keys, objectVars...)
	case c.Hooks:
		env = g.env.hooks
	default:
		env = g.env.own
	}
	env = with(env, c.Vars...)
	if c.wt.Path != "" {
		env = append(env, g.in.environ(proc.Getenv(env, "GIT_CONFIG_PARAMETERS"), c.Hooks)...)
	}
	if !c.mutates {
		env = append(env, "GIT_OPTIONAL_LOCKS=0")
	}
	return env
}

// InRepo returns a command on the repository with this git directory: its common directory or a linked worktree's.
func InRepo(gitDir string, args ...string) Command {
	return Command{Dir: gitDir, Args: append([]string{"--git-dir=" + gitDir}, args...)}
}

// InEntry returns a command on a checked worktree's own git directory, for refs, settings and objects. It reads no
// file of the worktree.
func (g *Git) InEntry(wt Worktree, args ...string) Command {
	vars := []string{"GIT_DIR=" + wt.AdminDir, "GIT_COMMON_DIR=" + wt.Common}
	return Command{Dir: wt.AdminDir, Args: args, Vars: vars}
}

// InWorktree returns a command in a checked worktree. It runs in quarantine, which discards ref changes.
func (g *Git) InWorktree(wt Worktree, args ...string) Command {
	return Command{Dir: wt.Path, Args: args, Vars: []string{g.ceiling(wt.Path)}, wt: wt}
}

// Line runs a command that prints one line and returns the line. It returns "" if the command exits with 1 without
// output.
func (g *Git) Line(ctx context.Context, c Command) (string, error) {
	out, err := g.Read(ctx, c)
	if said := saidBy(err); said.ExitCode == 1 && said.Stderr == "" {
		err = nil
	}
	return strings.TrimSuffix(string(out), "\n"), err
}

// List runs a command and returns its NUL-terminated entries.
func (g *Git) List(ctx context.Context, c Command) ([]string, error) {
	out, err := g.Read(ctx, c)
	return fields(out), err
}

// with returns the command with these paths on its standard input, in the format of -z or --pathspec-file-nul.
func (c Command) with(paths []string) Command {
	c.Stdin = []byte(strings.Join(paths, "\x00") + "\x00")
	return c
}

// Mutate runs a command that changes something, unless this is a dry run, and returns its trimmed output.
func (g *Git) Mutate(ctx context.Context, c Command) (string, error) {
	c.mutates = true
	out, err := g.Read(ctx, c)
	return string(bytes.TrimSpace(out)), err
}

// fields splits the output of -z into entries.
func fields(out []byte) []string {
	s := strings.TrimSuffix(string(out), "\x00")
	if s == "" {
		return nil
	}
	return strings.Split(s, "\x00")
}
