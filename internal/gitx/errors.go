package gitx

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/git-tilth/git-tilth/internal/text"
)

// ErrNotFound means that the repository, commit or worktree does not exist.
var ErrNotFound = errors.New("not found")

// notFound is an ErrNotFound with the name of the missing thing.
type notFound string

func (e notFound) Error() string { return string(e) }

func (notFound) Is(target error) bool { return target == ErrNotFound }

const (
	errNotRepo  notFound = "not a git repository"
	errNoCommit notFound = "no such commit"
	errMissing  notFound = "worktree is missing" // nothing or an empty directory at its path
)

// Errors for errors.Is.
var (
	// errUnregistered means that the repository has no worktree registered at this path.
	errUnregistered = errors.New("not a registered worktree")
	// errHookTime means that a hook was killed at its time limit. A hook may run a worker's program that never ends.
	errHookTime = errors.New("the hooks took too long and were killed")
	// errTreeTime means that git was killed at its time limit. A link in a worker's tree may lead to a pipe elsewhere.
	errTreeTime = errors.New("git took too long and was killed")
	// errLocked means that a live git process holds the lock of the index or of a ref.
	errLocked = errors.New("locked by another git process")
)

// commandError is a git command that failed.
type commandError struct {
	Args     []string // arguments after "git"
	ExitCode int      // -1 if git did not run or a signal ended it
	Stderr   string   // git's messages, limited

	cause error // why it did not run, or how it ended
	tree  bool  // it ran on a worker's tree
}

// errorLines is the number of git's lines in a one-line error.
const errorLines = 3

// Error returns "git <subcommand>: <git's message>".
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

// SaidOfTree returns git's message if git could not stage or check out a worker's tree: a required filter fails or
// does not end, or a file does not have the encoding in .gitattributes.
func SaidOfTree(err error) (said string, is bool) {
	e, ok := errors.AsType[*commandError](err)
	if !ok || !e.tree || e.ExitCode <= 0 && !errors.Is(e, errTreeTime) {
		return "", false
	}
	return "git " + subcommand(e.Args) + ": " + cmp.Or(e.Stderr, e.Error()), true
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
func ExitCode(err error) int { return saidBy(err).ExitCode }

// saidBy returns the failed git command in err, or an empty one.
func saidBy(err error) commandError {
	if e, ok := errors.AsType[*commandError](err); ok {
		return *e
	}
	return commandError{ExitCode: -1}
}
