package lifecycle

import (
	"cmp"
	"context"
	"fmt"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/message"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/teardown"
)

// New describes a session to make.
type New struct {
	Store    session.Store
	Location gitx.Location
	Base     string              // commit at which the branch begins
	Label    string              // a few words for lists
	Anew     string              // the command that makes it once more; "" for an interview
	Start    record.SessionStart // who will work, and within what limits
	Draft    *held.Handle        // what the session is made of; nil for nothing
	making   string              // the repository of one that counts as torn down until it is whole, "" for none
}

// Create makes a session directory, its branch and its worktree, and locks the session.
//
// The state on disk after each step, and the next command's reaction:
//  1. .fork-<id>/, locked (Draft)       no session; the next import removes it
//     <id>/                             list calls it damaged; reset removes it
//  2. checkpoint.json, running          list: no seed; resume refuses and names reset
//  3. session_start
//  4. branch and worktree (one git command; a kill may leave only the branch)
//     reset removes both
//
// The status becomes prepared only after the seed's commit is on record (CommitSeed). A dry run makes nothing, and the
// session is called <id>.
func Create(ctx context.Context, d held.Deps, n New) (*held.Handle, error) {
	s, unlock, err := n.directory(d, newID(d))
	if err != nil {
		return nil, err
	}
	h := &held.Handle{Deps: d, S: s, Common: n.Location.CommonDir, Base: n.Base, Unlock: unlock}
	h.Checkpoint = n.checkpoint(h)
	if err = h.Save(); err == nil {
		err = begin(h, n)
	}
	if err == nil {
		err = h.Git.AddWorktree(ctx, h.Common, h.Path(), h.S.Branch(), n.Base, true)
	}
	if err != nil {
		undoCreate(ctx, h)
		h.Close()
		return nil, err
	}
	return h, nil
}

// newID is the id of a session that is made now.
func newID(d held.Deps) string {
	if d.Git.IsDryRun() {
		return "<id>"
	}
	return session.NewID(d.Now())
}

// begin writes the first line of the record.
func begin(h *held.Handle, n New) error {
	start := n.Start
	start.Phase, start.Base = cmp.Or(start.Phase, "prep-feature"), cmp.Or(start.Base, n.Base)
	start.Source, start.Worktree, start.Branch = h.Checkpoint.Source, h.Checkpoint.Workspace, h.Checkpoint.Branch
	return h.Append(&start)
}

// undoCreate takes back a session in which nothing can have been done yet.
func undoCreate(ctx context.Context, h *held.Handle) {
	if h.Git.IsDryRun() {
		return
	}
	ctx = held.IgnoreFirstSignal(ctx)
	// Errors are ignored. The directory is removed last: reset, and for a fork the next fork and doctor, use it to find
	// the parts that git would not remove.
	err := h.Git.RemoveWorktree(ctx, h.Common, h.Path(), "")
	if err == nil {
		_, err = h.Git.DeleteBranch(ctx, h.Common, h.S.Branch())
	}
	if err == nil {
		_ = teardown.RemoveDir(h.S)
	}
}

// CommitSeed makes the session's seed commit: a commit of the acceptance tests, or without tests the branch's base, or
// with KeepEmptySeed an empty commit. Before the call prd.json and the test files must be installed.
//
// The state on disk after each step:
//  1. session_prepared      a session with a finished interview and without a seed: reset
//  2. the commit            the same; the branch has nothing else
//  3. seed_committed        the seed is complete; resume treats it as prepared
//  4. checkpoint prepared
func CommitSeed(ctx context.Context, h *held.Handle, tasks, tests int, prepared record.SessionPrepared) error {
	ctx = held.IgnoreFirstSignal(ctx)
	wt, err := h.Worktree(ctx)
	if err != nil {
		return err
	}
	prepared.PRDEntries, prepared.TestFiles = tasks, tests
	// What a rewind brings back.
	prepared.TokensUsed, prepared.Usage = &h.Checkpoint.TokensUsed, record.JSON(h.Checkpoint.Usage)
	prepared.StartedAt = h.Checkpoint.StartedAt
	if err := h.Append(&prepared); err != nil {
		return err
	}
	parent, there, err := h.Git.BranchTip(ctx, h.Common, h.S.Branch())
	if err != nil {
		return err
	}
	if !there {
		parent = h.Base // of a dry run
	}
	mark, err := h.RecordMark()
	if err != nil {
		return err
	}
	sha := parent // without a commit of its own, the seed is what the branch begins at
	if tests > 0 || h.KeepEmptySeed {
		if sha, err = commitSeed(ctx, h, wt, parent, message.Seed(h.S.ID, tasks, tests, mark)); err != nil {
			undoSeed(ctx, h, wt, parent)
			return err
		}
	}
	if err = noteSeed(h, sha); err != nil && !held.Seeded(h.S) {
		undoSeed(ctx, h, wt, parent)
	}
	return err
}

func commitSeed(ctx context.Context, h *held.Handle, wt gitx.Worktree, parent, message string) (sha string, err error) {
	tree, _, err := h.Git.StageAll(ctx, wt, parent)
	if err != nil {
		return "", err
	}
	return h.Git.CommitTree(ctx, wt, gitx.TreeCommit{
		Tree: tree, Parent: parent, Message: message, Reflog: "tilth: seed", Sign: h.Sign,
	})
}

// undoSeed removes an unrecorded seed from the branch and the index. It ignores errors, because reset removes the rest.
func undoSeed(ctx context.Context, h *held.Handle, wt gitx.Worktree, parent string) {
	if tip, _, err := h.Git.BranchTip(ctx, h.Common, h.S.Branch()); err == nil && tip != parent {
		_ = h.Git.Reset(ctx, wt, parent, false)
	}
	if tree, err := h.Git.RevParse(ctx, h.Common, parent+"^{tree}"); err == nil {
		_ = h.Git.ReadTree(ctx, wt, tree, false)
	}
}

// Reopen takes up a preparation that came to no seed: it is running again, and the index is the branch's once more.
func Reopen(ctx context.Context, h *held.Handle) error {
	wt, err := h.Worktree(ctx)
	if err != nil {
		return err
	}
	tree, err := h.Git.RevParse(ctx, h.Common, h.S.Branch()+"^{tree}")
	if err != nil {
		return err
	}
	if err := h.Git.ReadTree(ctx, wt, tree, false); err != nil {
		return err
	}
	if err := h.OpenRecord(); err != nil {
		return err
	}
	h.Checkpoint.Status = session.Running
	return h.Save()
}

// Fail ends a preparation that did not come to a seed.
func Fail(h *held.Handle, reason string, cause error) error {
	stop := record.Stop{Reason: reason}
	if cause != nil {
		stop.Error = cause.Error()
	}
	if err := h.OpenRecord(); err != nil {
		return fmt.Errorf("the record of %s: %w", h.S.ID, err)
	}
	return Stopped(h, session.Failed, stop)
}
