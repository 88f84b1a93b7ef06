// Package gitx is the only place of the project that runs git.
//
// Rules that hold in every file:
//   - A directory is always named. Work on a repository names its common directory and passes it as --git-dir; work
//     in a worktree takes a [Worktree], which only a passed check hands out, and runs below a GIT_CEILING_DIRECTORIES,
//     so that git never climbs to an enclosing repository.
//   - The environment is scrubbed once, in [New]. Nothing that git exports to hooks and aliases reaches a command,
//     except in [Git.Discover].
//   - Commands that read and commands that change something are told apart: a dry run leaves the latter out.
//   - Output is read with -z from plumbing, so that the user's settings for colour, quoting, renames or diff programs
//     have no say.
//
// The oldest supported git is 2.36 (git hook run, git worktree list -z).
package gitx

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/sandbox"
	"github.com/git-tilth/git-tilth/internal/text"
)

// Call is one git command as it ran or, under dry run, would have run.
type Call struct {
	Dir     string        // working directory of the command
	Args    []string      // arguments after "git"
	Took    time.Duration // zero when Skipped
	Err     error         // as returned to the caller of the operation
	Mutates bool          // the command changes something
	Skipped bool          // a dry run: it was not run
}

// Git runs git commands with one environment. It is not changed once it is used, and safe for concurrent use.
type Git struct {
	env      environment
	program  string
	trace    func(Call)
	dry      bool
	started  time.Time
	find     func(proc.Query) (pid int, err error)
	patience time.Duration // with a lock that a live process holds
	inTree   time.Duration // with the hooks of one command, and with a command in a worker's tree
	known    *known
	in       inside
	preview  string // the directory for what git else writes into a worktree's entry and among the objects
	maxFile  int64  // see Sparing

	// Boxing makes the box in which hooks and filters that lie in a worktree run, as in that of Inside, also where
	// nobody works there: what a worker left is staged, compared and committed after its run too. It is called when
	// there is such a hook or filter; nil is for none.
	Boxing func() (*sandbox.Box, error)
}

// known is what one process asks git only once. It is shared between copies of a Git.
type known struct {
	planned  memo[place]     // what a dry run would have made, by path
	settings memo[*settings] // by the directory they were read in
	separate memo[string]    // of a work tree without a .git of its own: its git directory
	version  memo[string]
	hooks    memo[hookPin] // by worktree
	entries  memo[string]  // of worktrees that passed the check: the directory of each one's entry, "" for none
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

// New returns a Git that runs with a scrubbed copy of environ ("NAME=value" lines, as from os.Environ). trace, if not
// nil, is called after every git command and may be called from several goroutines at once.
//
// In a dry run, mutations are traced as Skipped and not run. Reads run, so that a sequence of both takes the way that
// it would take for real: StageAll names the tree that it would make, [Git.Worktree] passes a worktree that a skipped
// command would have made, and a read in a directory that only a skipped command would have made finds nothing. Ids of
// commits are then empty.
func New(environ []string, dry bool, trace func(Call)) *Git {
	if trace == nil {
		trace = func(Call) {}
	}
	return &Git{
		dry:      dry,
		env:      newEnvironment(environ),
		program:  findGit(environ),
		trace:    trace,
		started:  time.Now(),
		find:     proc.Find,
		patience: lockPatience,
		inTree:   treePatience,
		maxFile:  largeFile,
		known:    &known{},
	}
}

// Version is git's own version, and whether it is this one or a later.
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
	// outputLimit bounds what is kept of a command's standard output.
	outputLimit = 256 << 20
	// stderrLimit bounds what is kept of what hooks say.
	stderrLimit = 64 << 10
	// treePatience is how long a command in a worker's tree may take, and the hooks of one, some of which run all
	// tests.
	treePatience = 30 * time.Minute
	// endGrace is how long git and its hooks have to end by themselves, once they were told to or once git is gone
	// and something holds its pipes.
	endGrace = 2 * time.Second
)

// Command is one git command to run: [InRepo] and [Git.InWorktree] make it, [Git.Read], [Git.Line], [Git.List] and
// [Git.Mutate] run it. What has rules of its own, or several callers, is a method of Git; a question of one caller's is
// a Command there.
type Command struct {
	Dir     string
	Args    []string
	Vars    []string // added to its environment; later lines win
	Stdin   []byte
	Hooks   bool     // runs hooks, in a worktree pinned ones: its output is both streams, what they leave is ended
	Objects bool     // reads the objects of the repository at Dir as they are, whatever that says of them
	Boxed   bool     // its hooks run in the sandbox of [Git.Inside] wherever they lie
	Keys    bool     // may talk to a remote: it has what a credential helper and ssh need
	Environ []string // in place of the harness's own environment; keys are left out
	Tree    string   // of a worker's, which the command reads; that of wt, if it is a command in one
	wt      Worktree // named outright to git, if it is a command in one
	env     []string // nil: the harness's own
	limit   int64    // bytes of stdout that are enough; 0: all, an error beyond outputLimit
	mutates bool
	again   []string // its arguments in a second try, where not the same: see disturbed
}

// Read runs a command that changes nothing and returns what it printed, also beside an error. One that exits with
// another status than 0 is an error, of which [ExitCode] tells the status.
func (g *Git) Read(ctx context.Context, c Command) ([]byte, error) {
	g, remove, err := g.boxed(ctx, c)
	if err != nil {
		return nil, err
	}
	defer remove()
	if c.Hooks && c.wt.Path != "" {
		remove, err := g.pin(ctx, &c)
		if err != nil {
			return nil, err
		}
		defer remove()
	}
	if c.Objects {
		remove, err := asTheyAre(&c)
		if err != nil {
			return nil, err
		}
		defer remove()
	}
	if c.mutates && g.dry {
		g.trace(Call{Dir: c.Dir, Args: c.Args, Mutates: true, Skipped: true})
		return nil, nil
	}
	if g.dry && absent(c.Dir) {
		return nil, nil
	}
	for try := 1; ; try++ {
		start := time.Now()
		out, err := g.exec(ctx, c)
		g.trace(Call{Dir: c.Dir, Args: c.Args, Took: time.Since(start), Err: err, Mutates: c.mutates})
		if err == nil || try == maxTries || !disturbed(ctx, err) && (g.dry || !outOfMemory(c, err)) {
			return out, err
		}
		if c.again != nil {
			c.Args = c.again
		}
	}
}

const (
	// maxTries is how often a command is run that other gits disturb.
	maxTries = 10
	// entryTime is more than lies between git making a file of a worktree's entry and filling it.
	entryTime = time.Second
)

// disturbed reports whether a command died of what another git did at that moment, and will not again. Of a worktree
// that is being added git reads an empty commondir, which kills most commands in any other worktree, and a HEAD without
// a commit, which kills a fetch; both come before the command changes anything but the branch that a `git worktree add`
// makes. And the directory of all entries goes with the last one, also while the next is made.
func disturbed(ctx context.Context, err error) bool {
	var said *commandError
	if !errors.As(err, &said) {
		return false
	}
	if strings.Contains(said.Stderr, "bad object worktrees/") {
		time.Sleep(lockPoll)
		return ctx.Err() == nil
	}
	_, rest, _ := strings.Cut(said.Stderr, "failed to read ")
	admin, _, reading := strings.Cut(rest, "/commondir: ")
	if !reading {
		return strings.Contains(said.Stderr, "could not create directory of ") &&
			strings.HasSuffix(said.Stderr, ": No such file or directory")
	}
	for ctx.Err() == nil {
		fi, err := os.Stat(filepath.Join(admin, "commondir"))
		if err != nil || fi.Size() > 0 {
			return true
		}
		if time.Since(fi.ModTime()) > entryTime {
			return false // its git was killed
		}
		time.Sleep(lockPoll)
	}
	return false
}

// exec starts a command and waits for its end.
func (g *Git) exec(ctx context.Context, c Command) ([]byte, error) {
	call := proc.Cmd{
		Argv: append([]string{g.program}, c.Args...), Dir: c.Dir, Env: g.commandEnv(c), Grace: endGrace,
		OutputCap: outputLimit, HeadOnly: true, SeparateStderr: true, Lasting: !c.mutates,
	}
	if c.Boxed || len(g.in.filters) > 0 {
		call.Carry = g.in.box
	}
	if c.Stdin != nil {
		call.Stdin = bytes.NewReader(c.Stdin)
	}
	if c.limit > 0 {
		call.OutputCap = int(c.limit)
	}
	tree := cmp.Or(c.Tree, c.wt.Path)
	if c.Hooks {
		call.OutputCap, call.HeadOnly, call.SeparateStderr = stderrLimit, false, false
	}
	if c.Hooks || tree != "" {
		call.Timeout = g.inTree
	}
	if tree != "" && !g.dry {
		looks := 0
		defer whileSlow(func() {
			looks++
			removePipes(tree, c.wt.AdminDir, looks >= desperate)
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
	return out, &commandError{Args: c.Args, ExitCode: code, Stderr: string(bytes.TrimSpace(said)), cause: err}
}

// commandEnv is the environment of one command. A command that only reads must not take optional locks: git status
// would rewrite the user's index.
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
	if g.preview != "" { // what the repository has is read beside it
		env = append(env, "GIT_INDEX_FILE="+filepath.Join(g.preview, "index"),
			"GIT_OBJECT_DIRECTORY="+filepath.Join(g.preview, "objects"))
	}
	if c.wt.Path != "" && !c.Hooks {
		// What the worktree's .git file and its entry say by now is the worker's word. A hook gets what git finds
		// by itself, as it always does: it may run git elsewhere.
		env = append(env, "GIT_DIR="+c.wt.AdminDir, "GIT_COMMON_DIR="+c.wt.Common, "GIT_WORK_TREE="+c.wt.Path)
	}
	if len(g.in.filters) > 0 {
		env = append(env, configParameters(proc.Getenv(env, "GIT_CONFIG_PARAMETERS"), g.in.filters))
	}
	if !c.mutates {
		env = append(env, "GIT_OPTIONAL_LOCKS=0")
	}
	return env
}

// InRepo returns a command on the repository with this git directory (its common directory or the one of a linked
// worktree).
func InRepo(gitDir string, args ...string) Command {
	return Command{Dir: gitDir, Args: append([]string{"--git-dir=" + gitDir}, args...)}
}

// InWorktree returns a command in a checked worktree.
func (g *Git) InWorktree(wt Worktree, args ...string) Command {
	return Command{Dir: wt.Path, Args: args, Vars: []string{g.ceiling(wt.Path)}, wt: wt}
}

// Line is Read of a command that answers with one line. One that exits with 1 and says nothing has answered too: there
// is none.
func (g *Git) Line(ctx context.Context, c Command) (string, error) {
	out, err := g.Read(ctx, c)
	if said := new(commandError); errors.As(err, &said) && said.ExitCode == 1 && said.Stderr == "" {
		err = nil
	}
	return strings.TrimSuffix(string(out), "\n"), err
}

// List is Read of a command that answers with entries that NUL ends.
func (g *Git) List(ctx context.Context, c Command) ([]string, error) {
	out, err := g.Read(ctx, c)
	return fields(out), err
}

// with is the command with these paths on its standard input, as those with -z or --pathspec-file-nul read them.
func (c Command) with(paths []string) Command {
	c.Stdin = []byte(strings.Join(paths, "\x00") + "\x00")
	return c
}

// Mutate runs a command that changes something, but for a dry run, and returns what it printed without the white space
// around it.
func (g *Git) Mutate(ctx context.Context, c Command) (string, error) {
	c.mutates = true
	out, err := g.Read(ctx, c)
	return string(bytes.TrimSpace(out)), err
}

// fields splits the output of -z into its entries.
func fields(out []byte) []string {
	s := strings.TrimSuffix(string(out), "\x00")
	if s == "" {
		return nil
	}
	return strings.Split(s, "\x00")
}

// ErrNotFound: the repository, commit or worktree that was asked for is not there.
var ErrNotFound = errors.New("not found")

// notFound is an ErrNotFound that says of what.
type notFound string

func (e notFound) Error() string { return string(e) }

func (notFound) Is(target error) bool { return target == ErrNotFound }

const (
	errNotRepo  notFound = "not a git repository"
	errNoCommit notFound = "no such commit"
	errMissing  notFound = "worktree is missing" // nothing, or an empty directory, is where it was
)

// Errors that are told apart with errors.Is.
var (
	// errUnregistered: a directory is there, but it is not the worktree that the repository knows at this path.
	errUnregistered = errors.New("not a registered worktree")
	// errHookTime: a hook was ended. It may run what a worker left (make, npx), which need not end by itself.
	errHookTime = errors.New("its hooks took too long and were ended")
	// errTreeTime: git was ended. A link may lead it from a worker's tree to a pipe elsewhere.
	errTreeTime = errors.New("it took too long and was ended")
	// errLocked: a live git process holds the lock of the index or of a ref.
	errLocked = errors.New("locked by another git process")
)

// commandError is a git command that failed.
type commandError struct {
	Args     []string // arguments after "git"
	ExitCode int      // -1 if git did not run or was ended by a signal
	Stderr   string   // what git said, capped

	cause error // why it did not run, or how it ended
}

// errorLines is how much of git's complaint goes into a one-line error.
const errorLines = 3

// Error returns "git <subcommand>: <what git said>".
func (e *commandError) Error() string {
	said := text.FirstLines(e.Stderr, errorLines)
	if said == "" && e.cause != nil {
		said = e.cause.Error()
	}
	if said == "" {
		said = fmt.Sprintf("exit status %d", e.ExitCode)
	}
	return "git " + subcommand(e.Args) + ": " + said
}

// Unwrap returns why the command did not run, or how it ended.
func (e *commandError) Unwrap() error { return e.cause }

// subcommand skips git's own options, so that an error says "git commit" and not "git --git-dir=...".
func subcommand(args []string) string {
	for i := 0; i < len(args); i++ {
		switch {
		case args[i] == "-c" || args[i] == "-C":
			i++
		case strings.HasPrefix(args[i], "-"):
		default:
			return args[i]
		}
	}
	return ""
}

// ExitCode returns the exit code of the git command behind err, or -1.
func ExitCode(err error) int {
	if e, ok := errors.AsType[*commandError](err); ok {
		return e.ExitCode
	}
	return -1
}
