// Package gitx is the only place of the project that runs git.
//
// Rules that hold in every file:
//   - A directory is always named. Work on a repository names its common
//     directory and passes it as --git-dir; work in a worktree takes a
//     [Worktree], which only a passed check hands out, and runs below a
//     GIT_CEILING_DIRECTORIES, so that git never climbs to an enclosing
//     repository.
//   - The environment is scrubbed once, in [New]. Nothing that git exports to
//     hooks and aliases reaches a command, except in [Git.Discover].
//   - Commands that read and commands that change something are told apart:
//     the latter honour [Git.DryRun].
//   - Output is read with -z from plumbing, so that the user's settings for
//     colour, quoting, renames or diff programs have no say.
//
// The oldest supported git is 2.36 (git hook run, git worktree list -z).
package gitx

import (
	"context"
	"strings"
	"sync"
	"time"

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

// String returns the command as a line that can be pasted into a shell.
func (c Call) String() string {
	return text.ShellQuote(append([]string{"git", "-C", c.Dir}, c.Args...)...)
}

// Git runs git commands with one environment. It is immutable and safe for
// concurrent use.
type Git struct {
	env      environment
	program  string
	trace    func(Call)
	dry      bool
	started  time.Time
	patience time.Duration // with a lock that a live process holds
	asking   time.Duration // with a credential helper
	known    *known
	preview  *preview // nil: everything is written where git writes it
	planned  *planned // what a dry run would have made; nil for a real one
}

// known is what one process asks git only once. It is shared between a Git
// and its dry-run copy.
type known struct {
	mu       sync.Mutex
	settings map[string]*settings // by the directory they were read in
	separate map[string]string    // work tree without a .git of its own: its git directory
	version  string
}

// New returns a Git that runs with a scrubbed copy of environ ("NAME=value"
// lines, as from os.Environ). trace, if not nil, is called after every git
// command and may be called from several goroutines at once.
func New(environ []string, trace func(Call)) *Git {
	if trace == nil {
		trace = func(Call) {}
	}
	return &Git{
		env:      newEnvironment(environ),
		program:  findGit(environ),
		trace:    trace,
		started:  time.Now(),
		patience: lockPatience,
		asking:   helperPatience,
		known:    &known{settings: map[string]*settings{}, separate: map[string]string{}},
	}
}

// Version returns the version of the git in use, such as "2.39.5".
func (g *Git) Version(ctx context.Context) (string, error) {
	g.known.mu.Lock()
	v := g.known.version
	g.known.mu.Unlock()
	if v != "" {
		return v, nil
	}
	out, err := g.run(ctx, command{dir: "/", args: []string{"version"}})
	if err != nil {
		return "", err
	}
	// Vendors append to the line: "git version 2.39.5 (Apple Git-154)".
	v = strings.TrimPrefix(strings.TrimSpace(string(out.stdout)), "git version ")
	v, _, _ = strings.Cut(v, " ")
	g.known.mu.Lock()
	g.known.version = v
	g.known.mu.Unlock()
	return v, nil
}

// atLeast tells whether git is of this version or later.
func (g *Git) atLeast(ctx context.Context, major, minor int) bool {
	v, err := g.Version(ctx)
	if err != nil {
		return false
	}
	first, rest, _ := strings.Cut(v, ".")
	second, _, _ := strings.Cut(rest, ".")
	return atoi(first) > major || atoi(first) == major && atoi(second) >= minor
}
