package lifecycle

import (
	"context"
	"errors"
	"os"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/session"
)

// Import is a session that begins as what another one is: a fork of one that is here, or one that comes from another
// machine. Until it is whole it counts as one whose teardown was begun: no command takes it up, `reset` removes it, and
// so does the next that is made so.
//
// On disk after each step:
//  1. .fork-<id>/ with the mark              no session; the next that is made removes it
//  2. <id>/ with the mark
//  3. its files; of a fork, session_start
//  4. checkpoint.json
//  5. branch and worktree, the uncommitted work in it
//  6. what tilth.setup and tilth.copy bring
//  7. of a fork, session_prepared, seed_committed; the checkpoint prepared
//  8. no mark                                a session like any other
type Import struct {
	Store    session.Store
	ID       string
	Location gitx.Location
	Tip      string // of the branch, which the repository has
	Files    string // a commit of the uncommitted work on Tip, or Tip
	Step     string // what is done, for when it fails
	Again    string // the command that does it
	// Fill writes the session's files, all but the checkpoint, which it sets.
	Fill func(*Handle) error
	// Furnished ends the session's making, once its worktree is as it will be left.
	Furnished func(*Handle) error
}

const forkMark = "fork" // the third line of a mark

// Arrive makes the session.
func (a Import) Arrive(ctx context.Context, d Deps) (*session.Session, error) {
	clearForks(ctx, d, a.Store, a.Location.CommonDir)
	branch := (&session.Session{ID: a.ID}).Branch()
	_, there, err := d.Git.BranchTip(ctx, a.Location.CommonDir, branch)
	if _, absent := a.Store.Find(a.ID); absent == nil && d.Git.IsDryRun() {
		there = false // it would be gone by now, with the session that is here
	}
	if err != nil || there {
		if s, missing := a.Store.Find(a.ID); err == nil && missing == nil {
			return nil, InUse(s) // somebody else was quicker to make it
		}
		return nil, errors.Join(err, &RefusedError{Why: "there is a branch " + branch + " here already",
			Hint: "git branch -m " + branch + " another-name"})
	}
	n := New{Store: a.Store, making: a.Location.CommonDir}
	s, unlock, err := n.directory(d, a.ID)
	if err != nil {
		return nil, err
	}
	h := &Handle{Deps: d, S: s, Common: a.Location.CommonDir, unlock: unlock}
	defer h.Close()
	if err := a.install(ctx, h); err != nil {
		h.undoCreate(ctx)
		return nil, &StepError{Step: a.Step, Err: err, Hint: a.Again}
	}
	return s, nil
}

func (a Import) install(ctx context.Context, h *Handle) error {
	if err := a.Fill(h); err != nil {
		return err
	}
	c := h.Checkpoint
	c.Source, c.Workspace, c.Branch = a.Location.Source, h.S.Workspace(), h.S.Branch()
	if c.GitCommonDir != "" {
		c.GitCommonDir = a.Location.CommonDir
	}
	if err := h.Save(); err != nil {
		return err
	}
	if err := h.Git.AddWorktree(ctx, h.Common, h.Path(), h.S.Branch(), a.Tip, true); err != nil {
		return err
	}
	if a.Files != a.Tip {
		wt, err := h.Worktree(ctx)
		if err == nil {
			err = restoreFiles(ctx, h.Git, wt, snapshot{Tip: a.Tip, Files: a.Files})
		}
		if err != nil {
			return err
		}
	}
	if err := h.RunSetup(ctx, h.Path()); err != nil {
		return err
	}
	if err := a.Furnished(h); err != nil {
		return err
	}
	return h.change(func() error { return os.Remove(h.S.Path(session.ResetMarkFile)) })
}
