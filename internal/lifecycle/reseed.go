package lifecycle

import (
	"context"
	"errors"
	"strings"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/message"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
)

// HasRun reports whether work was done on the seed, so that it must not be replaced: in a run, also one that was undone
// since and may come back, or before a fork.
func HasRun(ctx context.Context, h *held.Handle) (ran bool, err error) {
	if h.Checkpoint.Status != session.Prepared || held.Unfinished(h.S) {
		return true, nil
	}
	state, err := h.S.State()
	if err != nil || state.Resumed {
		return state != nil, err
	}
	old, _, err := h.SeedCommit(ctx)
	if err != nil {
		return false, err
	}
	tip, there, err := h.Git.BranchTip(ctx, h.Common, h.S.Branch())
	return there && tip != old, err
}

// Reseed adopts an edited plan before any work was done: the seed is committed again on the same parent.
//
// The state on disk after each step:
//  1. prd.json                  the new plan over the old seed commit, whose tests are the same
//  2. the branch at a new seed  recordSeed finds it
//  3. seed_committed            done
func Reseed(ctx context.Context, h *held.Handle, tasks []session.Task, tests int) error {
	ctx = held.IgnoreFirstSignal(ctx)
	wt, err := h.Worktree(ctx)
	if err != nil {
		return err
	}
	old, base, err := h.SeedCommit(ctx)
	if err != nil {
		return err
	}
	if base == "" {
		return errors.Join(h.SaveTasks(tasks), h.Save())
	}
	tree, err := h.Git.RevParse(ctx, h.Common, old+"^{tree}")
	if err != nil {
		return err
	}
	if err := h.SaveTasks(tasks); err != nil {
		return err
	}
	mark, err := h.RecordMark()
	if err != nil {
		return err
	}
	made, err := h.Git.CommitTree(ctx, wt, gitx.TreeCommit{
		Tree: tree, Parent: base, Over: old, Message: message.Seed(h.S.ID, len(tasks), tests, mark),
		Reflog: "tilth: seed",
		Sign:   h.Sign,
	})
	if err != nil {
		return err
	}
	return noteSeed(h, made)
}

// noteSeed puts the seed's commit on record: from there on the session is prepared.
func noteSeed(h *held.Handle, sha string) error {
	if err := h.Append(&record.SeedCommitted{SHA: sha, Branch: h.S.Branch()}); err != nil {
		return err
	}
	h.Checkpoint.Status, h.Checkpoint.Anew = session.Prepared, ""
	if tasks, err := h.S.StoredTasks(); err == nil {
		h.NoteStatuses(tasks)
	}
	return h.Save()
}

// recordSeed records a seed commit after a kill between the commit and the record.
func recordSeed(ctx context.Context, h *held.Handle) error {
	if h.Common == "" {
		return nil
	}
	sha, err := unrecordedSeed(ctx, h.Git, h.S, h.Checkpoint, h.Common)
	if err != nil || sha == "" {
		return err
	}
	return noteSeed(h, sha)
}

// unrecordedSeed is a seed commit that is at the tip of the branch and not on record, "" for none: one with this
// session's trailer that names no task, before anything was run. It changes nothing: a dry run decides with it too.
func unrecordedSeed(ctx context.Context, g *gitx.Git, s *session.Session, check *session.Checkpoint,
	common string) (string, error) {
	state, err := s.State()
	if err != nil {
		return "", err
	}
	recorded := ""
	if state.Seed != nil {
		recorded = state.Seed.SHA
	}
	if recorded != "" && check.Status != session.Prepared || held.Unfinished(s) {
		return "", nil
	}
	tip, ok, err := g.BranchTip(ctx, common, s.Branch())
	if err != nil || !ok || recorded != "" && (!text.IsSHA(recorded) || strings.HasPrefix(tip, recorded)) {
		return "", err
	}
	commits, err := g.Log(ctx, common, tip, "", 1)
	if err != nil || len(commits) == 0 {
		return "", err
	}
	c := commits[0]
	if of := message.SignatureOf(c); of.Session != s.ID || of.Task != "" || !strings.HasPrefix(c.Subject, "seed: ") {
		return "", nil
	}
	if _, err := s.Tasks(); err != nil {
		return "", nil // without its tasks it is no seed
	}
	return tip, nil
}
