// Package lifecycle is where the session on disk and git meet: a session is made, woken, rewound and torn
// down here. Every operation is a sequence whose state on disk after each step is written down beside it, so
// that the next command knows what a process that died there has left.
package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/urgency"
)

// Deps is the outside world, as it was gathered at the start of the process.
type Deps struct {
	Git     *gitx.Git
	Environ []string
	Now     func() time.Time
	Redact  *record.Redactor
	// Sink hears of every event after it is on disk; nil for none.
	Sink func(record.Line)
	// Tell hears why a first signal does not end the process yet, in a line for a person; nil for nobody.
	Tell func(line string)
	Sign bool // sign harness commits
	// CommitSubject is the form of the subject of a task's commit (tilth.commitSubject), "" for the default.
	CommitSubject string
	KeepEmptySeed bool // make an empty commit for a seed without acceptance tests
	// UndoKeep is how many undos a session keeps.
	UndoKeep int
	Setup    Setup // of a new worktree
}

// Handle is a session that this process alone writes, from Open to Close.
type Handle struct {
	Deps
	S          *session.Session
	Checkpoint *session.Checkpoint
	Record     *record.Record
	Common     string // the source's common git directory, "" where sourceErr says why it has none
	base       string // of a session that is being made: the commit at which its branch begins
	unlock     func()
	// putAway are the worktrees, by path, in which a repository of its own stood in the place of the .git file.
	putAway sync.Map
	// lanes orders what lanes do to kept.git, entries what to git's list of worktrees.
	lanes, entries sync.Mutex
	keptOpen       bool // kept.git stands as this process needs it

	sourceErr error
}

// RefusedError is a command that cannot be carried out; nothing was changed.
type RefusedError struct{ Why, Hint string }

func (e *RefusedError) Error() string { return e.Why }

func refuse(hint, format string, args ...any) error {
	return &RefusedError{Why: fmt.Sprintf(format, args...), Hint: hint}
}

// Open takes a session for this process, ends what a killed one has left running in its worktree, puts the worktree's
// .git file back, and completes a seed whose preparation died behind its commit. The error is a *session.BusyError when
// another process has the session.
func Open(ctx context.Context, d Deps, s *session.Session) (*Handle, error) {
	lock, err := os.Lstat(s.Path(session.LockFile))
	killed := err == nil && lock.Size() > 0 // its holder did not come to its end, whatever the session's status is
	unlock, err := Lock(d, s)
	if err != nil {
		return nil, err
	}
	h := &Handle{Deps: d, S: s, unlock: unlock}
	if err := h.open(ctx, killed); err != nil {
		h.Close()
		return nil, err
	}
	return h, nil
}

// Lock takes the session's lock. In a dry run the session is refused when it is in use, but not taken, so that nothing
// is written, not even the lock.
func Lock(d Deps, s *session.Session) (unlock func(), err error) {
	if !d.Git.IsDryRun() {
		return s.Lock(d.Now())
	}
	if holder, busy := s.Holder(); busy {
		return nil, holder
	}
	return func() {}, nil
}

func (h *Handle) open(ctx context.Context, killed bool) (err error) {
	reset := "git tilth reset " + h.S.ID
	if h.Checkpoint, err = h.S.Checkpoint(); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = errors.New("checkpoint.json is missing")
		}
		return refuse(reset, "session %s is damaged: %s", h.S.ID, err)
	}
	if half := earlierHalf(h.S, h.Checkpoint); half != "" {
		return refuse("git tilth resume "+h.S.ID+" with that build, or "+reset, "session %s: %s", h.S.ID, half)
	}
	h.Common, h.sourceErr = CommonOf(h.S, h.Checkpoint)
	h.adoptSource()
	if h.Git.IsDryRun() {
		return nil
	}
	if killed || h.Checkpoint.Status == session.Running || Unfinished(h.S, h.Checkpoint) {
		endLeftovers(placesOf(h.S, h.Path())...)
	}
	err = h.putBackDotGit(ctx, h.Path())
	if err == nil {
		err = h.adoptBundles(ctx)
	}
	if err != nil {
		return err
	}
	if err := h.recordSeed(ctx); ctx.Err() != nil {
		return err
	} else if err != nil {
		return &StepError{Step: "the seed of session " + h.S.ID, Err: err, Hint: reset}
	}
	return nil
}

// openRecord opens the record for appending, after what a crash left of it was repaired.
func (h *Handle) openRecord() error {
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
	h.unlock()
}

// Save writes checkpoint.json.
func (h *Handle) Save() error {
	return h.change(func() error { return h.S.SaveCheckpoint(h.Checkpoint) })
}

// change makes a change to the session's files, which a dry run leaves out.
func (h *Handle) change(do func() error) error {
	if h.Git.IsDryRun() {
		return nil
	}
	return do()
}

// append writes an event to the record.
func (h *Handle) append(e record.Event) error {
	if err := h.openRecord(); err != nil {
		return err
	}
	return h.change(func() error { return h.Record.Append(e) })
}

// Path is the session's worktree as recorded.
func (h *Handle) Path() string { return WorkspaceOf(h.S, h.Checkpoint) }

// Worktree is the session's worktree, checked: registered with the source, at its path, on its branch.
func (h *Handle) Worktree(ctx context.Context) (gitx.Worktree, error) {
	if err := h.putBackDotGit(ctx, h.Path()); err != nil {
		return gitx.Worktree{}, err
	}
	return h.Git.Worktree(ctx, h.Common, h.Path(), h.S.Branch())
}

// Elsewhere reports whether the worktree's HEAD is not on the session's branch, and what it is on, "" for no branch.
func (h *Handle) Elsewhere(ctx context.Context) (on string, elsewhere bool) {
	wt, err := h.Git.Worktree(ctx, h.Common, h.Path(), "")
	return wt.Head, err == nil && wt.Head != h.S.Branch()
}

// WorkspaceOf is where a session's worktree is, or would be: where it is recorded, if that is in this session's
// directory, else where the layout says. c is nil for a checkpoint that cannot be read. What is recorded lies
// elsewhere when the sessions root was moved, and when the directory is a copy: then it is the worktree of the
// session that it was copied from.
func WorkspaceOf(s *session.Session, c *session.Checkpoint) string {
	if c == nil || !filepath.IsAbs(c.Workspace) || !gitx.SamePath(filepath.Dir(c.Workspace), s.Dir) {
		return s.Workspace()
	}
	if exists(s.Workspace()) && filepath.Base(c.Workspace) != session.WorkspaceDir {
		return s.Workspace()
	}
	return c.Workspace
}

// Stopped writes the end of a run: the stop, fsynced, then the checkpoint.
func (h *Handle) Stopped(status string, stop record.Stop) error {
	h.dropLanesDir() // first: nothing looks at a session again whose stop says that all is done
	if err := h.Record.Append(&stop); err != nil {
		return err
	}
	h.Checkpoint.Status = status
	if err := errors.Join(h.Save(), h.dropAside()); err != nil {
		return err
	}
	return h.S.WriteSummary()
}

// ignoreFirstSignal is the context of a sequence that a first signal does not cut short: it takes a moment, and
// half of it would be work for the next resume.
func ignoreFirstSignal(ctx context.Context) context.Context { return urgency.IgnoreFirstSignal(ctx) }

// Say tells a person, if one listens.
func (h *Handle) Say(line string) {
	if h.Tell != nil {
		h.Tell(line)
	}
}
