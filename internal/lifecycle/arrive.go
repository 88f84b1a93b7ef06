package lifecycle

import (
	"context"
	"errors"
	"os"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/snapshot"
	"github.com/git-tilth/git-tilth/internal/teardown"
)

// Import makes a session from another one: a fork of a local session, or a session from another machine. Until it is
// complete it counts as a session with an unfinished teardown: no command uses it, and `reset` and the next import
// remove it.
//
// The state on disk after each step:
//  1. .fork-<id>/ with the mark              no session; the next import removes it
//  2. <id>/ with the mark
//  3. its files; for a fork, session_start
//  4. checkpoint.json
//  5. branch and worktree, its uncommitted work, and the work of failed tasks in kept.git
//  6. setup done by tilth.setup and tilth.copy
//  7. for a fork, session_prepared, seed_committed; the checkpoint prepared
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
	Fill func(*held.Handle) error
	// Furnished ends the session's making, once its worktree is as it will be left.
	Furnished func(*held.Handle) error
}

// Arrive makes the session.
func (a Import) Arrive(ctx context.Context, d held.Deps) (*session.Session, error) {
	teardown.ClearForks(ctx, d, a.Store, a.Location.CommonDir)
	branch := (&session.Session{ID: a.ID}).Branch()
	_, there, err := d.Git.BranchTip(ctx, a.Location.CommonDir, branch)
	if _, absent := a.Store.Find(a.ID); absent == nil && d.Git.IsDryRun() {
		there = false // it would be gone by now, with the session that is here
	}
	if err != nil || there {
		if s, missing := a.Store.Find(a.ID); err == nil && missing == nil {
			return nil, held.InUse(s) // somebody else was quicker to make it
		}
		return nil, errors.Join(err, &held.RefusedError{Why: "branch " + branch + " exists already",
			Hint: "git branch -m " + branch + " another-name"})
	}
	n := New{Store: a.Store, making: a.Location.CommonDir}
	s, unlock, err := n.directory(d, a.ID)
	if err != nil {
		return nil, err
	}
	h := &held.Handle{Deps: d, S: s, Common: a.Location.CommonDir, Unlock: unlock}
	defer h.Close()
	if err := a.install(ctx, h); err != nil {
		undoCreate(ctx, h)
		return nil, &held.StepError{Step: a.Step, Err: err, Hint: a.Again}
	}
	return s, nil
}

func (a Import) install(ctx context.Context, h *held.Handle) error {
	if err := a.Fill(h); err != nil {
		return err
	}
	c := h.Checkpoint
	c.Source, c.Workspace, c.Branch = a.Location.Source, h.S.Workspace(), h.S.Branch()
	c.GitCommonDir = a.Location.CommonDir
	if err := h.Save(); err != nil {
		return err
	}
	if err := h.Git.AddWorktree(ctx, h.Common, h.Path(), h.S.Branch(), a.Tip, true); err != nil {
		return err
	}
	if a.Files != a.Tip {
		wt, err := h.Worktree(ctx)
		if err == nil {
			err = snapshot.Restore(ctx, h, wt, snapshot.Snapshot{Tip: a.Tip, Files: a.Files}, 0)
		}
		if err != nil {
			return err
		}
	}
	if err := snapshot.AdoptBundles(ctx, h); err != nil {
		return err
	}
	if err := h.RunSetup(ctx, h.Path()); err != nil {
		return err
	}
	if err := a.Furnished(h); err != nil {
		return err
	}
	return h.Change(func() error { return os.Remove(h.S.Path(session.ResetMarkFile)) })
}
