// Package lifecycle makes, resumes and ends sessions, on disk and in git. The comment of every operation lists the
// state on disk after each step, so that the next command can continue after a kill.
package lifecycle

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/lanes"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/snapshot"
	"github.com/git-tilth/git-tilth/internal/teardown"
)

// Open locks a session for this process, ends leftover processes of a killed one in its worktree, restores the
// worktree's .git file, and completes a seed after a kill behind its commit. The error is a *session.BusyError if
// another process has the session.
func Open(ctx context.Context, d held.Deps, s *session.Session) (*held.Handle, error) {
	lock, err := os.Lstat(s.Path(session.LockFile))
	killed := err == nil && lock.Size() > 0 // its holder did not come to its end, whatever the session's status is
	unlock, err := held.Lock(d, s)
	if err != nil {
		return nil, err
	}
	h := &held.Handle{Deps: d, S: s, Unlock: unlock}
	if err := open(ctx, h, killed); err != nil {
		h.Close()
		return nil, err
	}
	return h, nil
}

func open(ctx context.Context, h *held.Handle, killed bool) (err error) {
	reset := "git tilth reset " + h.S.ID
	if h.Checkpoint, err = h.S.Checkpoint(); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = errors.New("checkpoint.json is missing")
		}
		return held.Refuse(reset, "session %s is damaged: %s", h.S.ID, err)
	}
	h.Common, h.SourceErr = held.CommonOf(h.S, h.Checkpoint)
	h.AdoptSource()
	if h.Git.IsDryRun() {
		return nil
	}
	if killed || h.Checkpoint.Status == session.Running || held.Unfinished(h.S) {
		teardown.EndLeftovers(teardown.PlacesOf(h.S, h.Path())...)
	}
	err = h.PutBackDotGit(ctx, h.Path())
	if err == nil {
		err = snapshot.DropUnreadable(ctx, h)
	}
	if err != nil {
		return err
	}
	if err := recordSeed(ctx, h); ctx.Err() != nil {
		return err
	} else if err != nil {
		return &held.StepError{Step: "the seed of session " + h.S.ID, Err: err, Hint: reset}
	}
	return nil
}

// Stopped writes the end of a run: the stop, fsynced, then the checkpoint.
func Stopped(h *held.Handle, status string, stop record.Stop) error {
	dropping := lanes.DropDir(h) // first: nothing looks at a session again whose stop says that all is done
	if err := h.Record.Append(&stop); err != nil {
		return err
	}
	h.Checkpoint.Status = status
	if err := errors.Join(h.Save(), snapshot.DropDone(h), dropping); err != nil {
		return err
	}
	return h.S.WriteSummary()
}
