// Package held is a locked session: its lock, checkpoint, record, repository, worktree and lanes, the work that it
// stashes in kept.git, the messages of its commits, and the marks of unfinished operations.
package held

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
)

// Deps is the process's environment, gathered at its start.
type Deps struct {
	Git     *gitx.Git
	Environ []string
	Now     func() time.Time
	Redact  *record.Redactor
	// Sink gets every event after it is on disk; may be nil.
	Sink func(record.Line)
	// Tell gets a line for the user about why a first signal does not end the process yet; may be nil.
	Tell func(line string)
	Sign bool // sign harness commits
	// CommitSubject is the form of the subject of a task's commit (tilth.commitSubject), "" for the default.
	CommitSubject string
	BranchForm    string // form of a new session's branch (tilth.branch), or ""
	SignOff       bool   // commits of tasks have the user's Signed-off-by
	KeepEmptySeed bool   // make an empty commit for a seed without acceptance tests
	// UndoKeep is the number of undos that a session keeps.
	UndoKeep int
	Setup    Setup // setup of a new worktree
}

// Handle is a session that this process alone writes, from Open to Close.
type Handle struct {
	Deps
	S          *session.Session
	Checkpoint *session.Checkpoint
	Record     *record.Record
	Common     string // the source's common git directory; "" with the reason in SourceErr
	Base       string // commit at which the branch of a new session begins
	Unlock     func()
	// putAway are the paths of worktrees where a repository had replaced the .git file.
	putAway sync.Map
	// Kept serialises the lanes' access to kept.git. Open reports that this process has prepared it.
	Kept struct {
		sync.Mutex
		Open bool
	}
	EntriesLock sync.Mutex // orders the lanes' changes to git's list of worktrees

	SourceErr error

	placeOnce               sync.Once // fills checkouts and dependencies
	checkouts, dependencies []string  // the user's checkouts, and directories of dependencies in them
}

// OpenRecord repairs the record after a crash and opens it for appending.
func (h *Handle) OpenRecord() error {
	if h.Record != nil || h.Git.IsDryRun() {
		return nil
	}
	var err error
	h.Record, err = h.S.OpenRecord(record.Options{Redact: h.Redact, Clock: h.Now, Sink: h.Sink})
	return err
}

// Close releases the session.
func (h *Handle) Close() {
	if h.Record != nil {
		h.Record.Close()
		h.Record = nil
	}
	h.Unlock()
}

// Save writes checkpoint.json. It and earlier saves survive a power cut.
func (h *Handle) Save() error { return cmp.Or(h.saveSoon(), h.Sync()) }

// saveSoon writes checkpoint.json. Before Sync a power cut may bring the old one back.
func (h *Handle) saveSoon() error {
	return h.Change(func() error { return h.S.SaveCheckpoint(h.Checkpoint) })
}

// Sync makes earlier saves survive a power cut.
func (h *Handle) Sync() error { return h.Change(h.S.Sync) }

// Change makes a change to the session's files. A dry run skips it.
func (h *Handle) Change(do func() error) error {
	if h.Git.IsDryRun() {
		return nil
	}
	return do()
}

// Append writes an event to the record.
func (h *Handle) Append(e record.Event) error {
	if err := h.OpenRecord(); err != nil {
		return err
	}
	return h.Change(func() error { return h.Record.Append(e) })
}

// RecordMark returns the record's length and hash for a commit's trailer, which verify compares with the record. It is
// "" in a dry run.
func (h *Handle) RecordMark() (string, error) {
	if h.Git.IsDryRun() {
		return "", nil
	}
	if err := h.OpenRecord(); err != nil {
		return "", err
	}
	size, sum, err := h.Record.Mark()
	return fmt.Sprintf("%d %s", size, sum), err
}

// Path returns the session's worktree as recorded.
func (h *Handle) Path() string { return WorkspaceOf(h.S, h.Checkpoint) }

// Worktree returns the session's worktree, checked: registered with the source, at its path, on its branch.
func (h *Handle) Worktree(ctx context.Context) (gitx.Worktree, error) {
	if err := h.PutBackDotGit(ctx, h.Path()); err != nil {
		return gitx.Worktree{}, err
	}
	return h.Git.Worktree(ctx, h.Common, h.Path(), h.S.Branch())
}

// Elsewhere reports whether the worktree's HEAD is not on the session's branch, and returns its branch, "" for none.
func (h *Handle) Elsewhere(ctx context.Context) (on string, elsewhere bool) {
	wt, err := h.Git.Worktree(ctx, h.Common, h.Path(), "")
	return wt.Head, err == nil && wt.Head != h.S.Branch()
}

// WorkspaceOf returns the path of a session's worktree: the recorded path, if it is in this session's directory, else
// the default. c is nil for an unreadable checkpoint. The recorded path is elsewhere if the sessions root was moved, or
// if the directory is a copy: then it is the worktree of the original.
func WorkspaceOf(s *session.Session, c *session.Checkpoint) string {
	if c == nil || !filepath.IsAbs(c.Workspace) {
		return s.Workspace()
	}
	dir, name := filepath.Split(filepath.Clean(c.Workspace))
	if !gitx.SamePath(filepath.Clean(dir), s.Dir) || name != session.WorkspaceDir && Exists(s.Workspace()) {
		return s.Workspace()
	}
	return filepath.Join(s.Dir, name) // the sandbox closes a link to it
}

// Say passes a line to Tell, if it is set.
func (h *Handle) Say(line string) {
	if h.Tell != nil {
		h.Tell(line)
	}
}

// RefusedError is a command that cannot run. Nothing was changed.
type RefusedError struct{ Why, Hint string }

func (e *RefusedError) Error() string { return e.Why }

// Refuse is a RefusedError.
func Refuse(hint, format string, args ...any) error {
	return &RefusedError{Why: fmt.Sprintf(format, args...), Hint: hint}
}

// StepError is a failed step of a teardown or a resume. The session directory still exists, and the same command
// continues from there.
type StepError struct {
	Step string
	Err  error
	Hint string
}

func (e *StepError) Error() string { return e.Step + ": " + e.Err.Error() }

func (e *StepError) Unwrap() error { return e.Err }
