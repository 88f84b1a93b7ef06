package lifecycle

import (
	"context"
	"errors"
	"os"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/session"
)

// Arrival is a session that comes from another machine. It is made as a fork is, and until it is whole it counts as one
// whose teardown was begun.
//
// On disk after each step:
//  1. .fork-<id>/, then <id>/, with the mark
//  2. its files and checkpoint
//  3. branch and worktree, the uncommitted work in it
//  4. what tilth.setup and tilth.copy bring
//  5. no mark                                a session like any other
type Arrival struct {
	Store    session.Store
	ID       string
	Location gitx.Location
	Tip      string // of the branch, which the repository has
	Files    string // a commit of the uncommitted work on Tip, or Tip
	// Fill writes the session's files, all but the checkpoint, which it returns.
	Fill func(*session.Session) (*session.Checkpoint, error)
	// Furnished hears of the session once its worktree is as it will be left.
	Furnished func(*session.Session)
}

// Arrive makes the session.
func (a Arrival) Arrive(ctx context.Context, d Deps) (*session.Session, error) {
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
			Hint: "git branch -m " + branch + " <another name>"})
	}
	n := New{Store: a.Store, fork: &parent{common: a.Location.CommonDir}}
	s, unlock, err := n.directory(d, a.ID)
	if err != nil {
		return nil, err
	}
	h := &Handle{Deps: d, S: s, Common: a.Location.CommonDir, unlock: unlock}
	defer h.Close()
	if err := a.install(ctx, h); err != nil {
		h.undoCreate(ctx)
		return nil, &StepError{Step: "making session " + a.ID + " here", Err: err, Hint: "git tilth fetch " + a.ID}
	}
	return s, nil
}

func (a Arrival) install(ctx context.Context, h *Handle) (err error) {
	if h.Checkpoint, err = a.Fill(h.S); err != nil {
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
	wt, err := h.Worktree(ctx)
	if err != nil {
		return err
	}
	if err := unkeep(ctx, h.Git, wt, kept{Tip: a.Tip, Files: a.Files}); err != nil {
		return err
	}
	if err := h.RunSetup(ctx, h.Path()); err != nil {
		return err
	}
	return h.change(func() error {
		a.Furnished(h.S)
		return errors.Join(h.S.WriteSummary(), os.Remove(h.S.Path(session.ResetMarkFile)))
	})
}
