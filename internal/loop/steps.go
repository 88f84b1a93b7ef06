package loop

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
)

// After a move to another base (lifecycle/onto.go), a run repeats the commits in the record, in their order.
//
// The state on disk after each step of a task's change, and the effect of a resume:
//
//  1. context_reset, lane_merged      merges again, or uses the recorded merge if it conflicted
//  2. the merge in index and files    the same; keeps files that were changed since then
//  3. the steps of any attempt        continues at the worker's prompt, the hand-in or the commit
//
// For a commit of the user:
//
//  1. the commit                      finds no change left to commit, and appends commit_repeated
//  2. commit_repeated                 continues with the next commit

// nextStep returns the index of the task of the next commit to repeat, or -1. It repeats the user's commits before it.
func (r *run) nextStep(ctx context.Context) (int, error) {
	for ; len(r.steps) > 0; r.steps = r.steps[1:] {
		step := r.steps[0]
		i := session.IndexOf(r.tasks, step.Task)
		switch {
		case step.Commit != "":
			if err := r.repeat(proc.IgnoreFirstSignal(ctx), step.Commit); err != nil {
				return -1, err
			}
		case i >= 0 && !hasEnded(r.tasks[i]):
			return i, nil
		}
	}
	return -1, nil
}

// repeat makes a commit of the user again on the branch's tip. A commit that follows the tip stays as it is.
func (r *run) repeat(ctx context.Context, sha string) error {
	wt, err := r.Worktree(ctx)
	if err != nil {
		return err
	}
	tip, err := r.tip(ctx)
	if err != nil {
		return err
	}
	c, err := r.Git.Log(ctx, r.Common, sha, "", 1)
	if err != nil || len(c) == 0 || len(c[0].Parents) == 0 {
		return cmp.Or(err, fmt.Errorf("the commit %s is gone", sha))
	}
	as := sha
	if c[0].Parents[0] != tip {
		as, err = r.again(ctx, c[0], tip)
	}
	if err == nil && as != tip {
		err = r.Git.Reset(ctx, wt, as, true)
	}
	if err != nil {
		return err
	}
	return r.Append(&record.CommitRepeated{From: sha, SHA: as})
}

// again makes a commit again on a tip, and returns the tip if it already has the change.
func (r *run) again(ctx context.Context, c gitx.Commit, tip string) (string, error) {
	as, m, err := r.Git.Repeat(ctx, r.Common, c, tip, c.Subject+"\n\n"+c.Body, r.Sign)
	if err != nil {
		return "", err
	}
	if len(m.Conflicts) > 0 {
		return "", Stop{Reason: record.Errored, Detail: fmt.Sprintf("commit %s %s conflicts with the branch in %s",
			text.Head(c.SHA, 10), text.Clip(text.OneLine(c.Subject), 60), strings.Join(m.Conflicts, ", ")),
			Hint: "git tilth undo " + r.S.ID + " && git tilth update --merge " + r.S.ID}
	}
	had, err := r.Git.RevParse(ctx, r.Common, tip+"^{tree}")
	if had == m.Tree {
		as = tip
	}
	return as, err
}

// bring merges the task's change from before a move onto the attempt's base, in index and files. The old verdict
// applies if the merge has the same patch.
func (a *attempt) bring(ctx context.Context, wt gitx.Worktree, v *record.EvaluatorVerdict) error {
	h := a.run.Handle
	a.iter = 1
	on, err := a.run.Git.RevParse(ctx, a.run.Common, a.base+"^{tree}")
	if err != nil {
		return err
	}
	e := a.otherLanes.merged
	if e == nil || e.Base != a.base || e.From != v.Base || e.Was != v.Tree {
		other, err := held.KeepSide(ctx, h, v.Base, on)
		if err != nil {
			return err
		}
		m, err := held.MergeOnto(ctx, h, v.Base, v.Tree, other)
		if err != nil {
			return err
		}
		e = &record.LaneMerged{Base: a.base, From: v.Base, Was: v.Tree, Tree: m.Tree, Conflicts: m.Conflicts}
		if len(m.Conflicts) > 0 {
			e.Marker, e.Other, e.Said = m.Marker, other, text.HeadBytes(strings.TrimSpace(m.Said), testsCap)
		}
		if err := a.emit(e); err != nil {
			return err
		}
	}
	now, _, err := a.run.Git.StageAll(ctx, wt, a.base)
	if err == nil {
		err = held.Bring(ctx, h, wt, on, e.Tree, now)
	}
	if err == nil { // files that the change ignores were staged as new
		err = a.run.Git.ReadTree(ctx, wt, e.Tree, false)
	}
	if err != nil {
		return err
	}
	a.restored, a.carried, a.otherLanes.merged = true, true, e
	if len(e.Conflicts) > 0 {
		return nil
	}
	a.otherLanes.merged, a.summary = nil, v.Summary
	a.left.review = &record.CaseSubmitted{Scope: record.Scope{TaskID: a.task.ID}, Tree: e.Tree, Base: a.base,
		Case: v.Case}
	same, err := a.run.Git.SamePatch(ctx, a.run.Common, [2]string{v.Base, v.Tree}, [2]string{a.base, e.Tree})
	if err != nil || !same || !v.Accepted() {
		return err
	}
	verdict, err := parseVerdict(string(record.JSON(v)))
	if err == nil {
		a.otherLanes.prior = &priorVerdict{verdict: verdict, by: v.By, tree: v.Tree, base: a.base, becomes: e.Tree}
	}
	return nil // the old verdict is on another version
}

// keep ends a repeated change that its base already has, once the validators have passed.
func (a *attempt) keep() error {
	if err := a.emit(&record.TaskMarked{Mark: "kept", Status: record.Done,
		Note: "the base has its change"}); err != nil {
		return err
	}
	return a.settle(session.TaskDone)
}

// stepsLeft reports whether commits are left to repeat.
func (r *run) stepsLeft() bool {
	return slices.ContainsFunc(r.steps, func(s record.Step) bool {
		i := session.IndexOf(r.tasks, s.Task)
		return s.Commit != "" || i >= 0 && !hasEnded(r.tasks[i])
	})
}
