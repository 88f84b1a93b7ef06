package gitx

import (
	"errors"
	"fmt"
	"strings"
)

// Errors that callers tell apart with errors.Is.
var (
	// ErrNotRepo: the directory is in no git repository.
	ErrNotRepo = errors.New("not a git repository")
	// ErrVanished: no repository is left at the path.
	ErrVanished = errors.New("no repository is there any more")
	// ErrNoCommit: the revision names no commit of the repository.
	ErrNoCommit = errors.New("no such commit")
	// ErrWorktreeMissing: nothing, or an empty directory, is where the worktree was.
	ErrWorktreeMissing = errors.New("worktree is missing")
	// ErrUnregistered: a directory is there, but it is not the worktree that the repository knows at this path.
	ErrUnregistered = errors.New("not a registered worktree")
	// ErrNoCredential: no credential helper knows the URL.
	ErrNoCredential = errors.New("no stored credential")
	// ErrLocked: a live git process holds the lock of the index or of a ref.
	ErrLocked = errors.New("locked by another git process")
)

// commandError is a git command that failed.
type commandError struct {
	Args     []string // arguments after "git"
	Dir      string   // working directory of the command
	ExitCode int      // -1 if git did not run or was ended by a signal
	Stderr   string   // what git said, capped

	cause error // why it did not run, or how it ended
}

// errorLines is how much of git's complaint goes into a one-line error.
const errorLines = 3

// Error returns "git <subcommand>: <what git said>".
func (e *commandError) Error() string {
	said := firstLines(e.Stderr, errorLines)
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

// firstLines joins the first n lines of s that say something.
func firstLines(s string, n int) string {
	var kept []string
	for line := range strings.Lines(s) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "hint: ") {
			continue
		}
		kept = append(kept, line)
		if len(kept) == n {
			break
		}
	}
	return strings.Join(kept, "; ")
}

// exitCode returns the exit code of the git command behind err, or -1.
func exitCode(err error) int {
	var e *commandError
	if errors.As(err, &e) {
		return e.ExitCode
	}
	return -1
}

// WrongBranchError says that a worktree's HEAD is not on its branch.
type WrongBranchError struct {
	Path string // the worktree
	Want string // the branch it should be on
	On   string // the branch it is on; "" when HEAD is detached
}

func (e *WrongBranchError) Error() string {
	if e.On == "" {
		return fmt.Sprintf("worktree %s has a detached HEAD, not branch %s", e.Path, e.Want)
	}
	return fmt.Sprintf("worktree %s is on branch %s, not %s", e.Path, e.On, e.Want)
}

// HookRefusedError says that one of the repository's hooks refused a commit. Nothing was committed.
type HookRefusedError struct {
	Output string // what the hook printed, capped
}

func (e *HookRefusedError) Error() string {
	if said := firstLines(e.Output, errorLines); said != "" {
		return "a commit hook refused: " + said
	}
	return "a commit hook refused without a word"
}
