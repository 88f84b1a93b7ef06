package loop

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/git-tilth/git-tilth/internal/config"
	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/lifecycle"
	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
	"github.com/git-tilth/git-tilth/internal/validator"
)

// hookRounds limits how often a change is judged again because a commit hook changed it.
const hookRounds = 3

// judge takes a hand-in through validators and reviewer to a commit. With an empty feedback and a nil error the task
// is committed. Otherwise feedback is the message to the worker.
func (a *attempt) judge(ctx context.Context, c *Case) (feedback string, err error) {
	defer func() { a.otherLanes.prior = nil }() // from here on the worker may change the tree
	defer a.at.releaseTurn()
	defer a.at.shutPlace(&err)
	defer func() { err = cmp.Or(err, a.at.endJudgement(err == nil && feedback == "")) }()
	for round := 0; round < hookRounds; {
		if feedback, err := a.integrate(ctx); err != nil || feedback != "" {
			return feedback, err
		}
		j, err := a.validated(ctx)
		if err != nil {
			return "", err
		}
		before := a.summary
		a.summary = held.Completed(before, c.Summary)
		if !j.report.Passed {
			failed := firstFailure(j.report)
			if err := a.countObjection(failed, "validators "+j.tree, failed, a.retryHint); err != nil {
				return "", err
			}
			return a.failedValidators(ctx, j)
		}
		if a.carried && j.empty && a.worker == nil {
			return "", a.keep()
		}
		if a.refusal.tree == j.tree { // the tree was accepted; a new message may pass
			refused := *a.refusal.c
			refused.Summary, a.summary = c.Summary, c.Summary
			c = &refused
		}
		v, err := a.review(ctx, c, j)
		if err != nil {
			return "", err
		}
		if !v.Accepted() {
			about := "review " + j.tree
			if j.unasked {
				about, a.summary = "empty", before
			}
			stuck := a.countObjection(v.objection(), about, v.objection(), a.retryHint)
			if err := cmp.Or(a.evaluatorLeft(), stuck); err != nil {
				return "", err
			}
			return sentBack(v, j), nil
		}
		if moved, err := a.moved(ctx, v, j); err != nil {
			return "", err
		} else if moved {
			continue
		}
		err = a.accept(ctx, c, j, round == 0)
		round++
		var refused *gitx.HookRefusedError
		switch {
		case errors.Is(err, lifecycle.ErrBranchMoved):
			a.accepted = false
			a.carryVerdict(v, j)
			continue
		case errors.Is(err, lifecycle.ErrTreeChanged):
			a.accepted, a.otherLanes.prior = false, nil
			continue
		case errors.As(err, &refused):
			a.accepted = false
			return a.refusedByHook(ctx, refusal{j.tree, refused.Output, c})
		case errors.Is(err, gitx.ErrUnsigned):
			a.accepted = false
			err = a.at.commitRefused(ctx, a.task, a.summary, err.Error())
		}
		return "", err
	}
	return a.refusedByHook(ctx, refusal{c: c, words: "A commit hook changed the files again after each review."})
}

// sentBack returns the message to the worker about a rejection.
func sentBack(v *Verdict, j *judged) string {
	if j.unasked {
		return "The change was sent back without a review.\n\n" + v.Text()
	}
	back := "The reviewer sent the change back. Deal with every point and submit again.\n\n" +
		fenced("review", v.Text())
	if len(j.ignored) == 0 {
		return back
	}
	return back + "\n\nThese files of yours are ignored by git and in no commit:\n\n" +
		fenced("ignored", strings.Join(j.ignored, "\n"))
}

// evaluatorLeft returns the end of the task if no evaluator calls are left, else nil.
func (a *attempt) evaluatorLeft() error {
	if limit := int(a.run.o.Caps[config.MaxEvaluatorCalls]); limit > 0 && a.verdict >= limit {
		return Stop{Reason: record.EvaluatorCap, Detail: fmt.Sprint(limit), Objection: a.objection}
	}
	return nil
}

// refusal is a commit hook's refusal of an accepted change.
type refusal struct {
	tree, words string
	c           *Case
}

// refusedByHook returns a commit hook's refusal to the worker, like a failed validator. If the hook repeats its
// message for the same change and no other summary can pass, no worker can fix the cause.
func (a *attempt) refusedByHook(ctx context.Context, f refusal) (string, error) {
	again := f.tree != "" && f.tree == a.refusal.tree && text.SaySame(f.words, a.refusal.words)
	subjectHint := sync.OnceValue(func() string {
		subject, _ := a.at.hookHints(ctx, a.task, a.summary)
		return subject
	})
	stuck := a.countObjection("commit hook: "+text.FailingLine(f.words), "hook", f.words, func() string {
		return cmp.Or(subjectHint(), a.retryHint())
	})
	switch {
	case again && (stuck != nil || f.c.Summary == a.refusal.c.Summary || subjectHint() != ""):
		return "", a.at.commitRefused(ctx, a.task, a.summary, f.words)
	case stuck != nil:
		return "", stuck
	}
	a.refusal = f
	err := a.emit(lifecycle.RefusedBy(a.run.forRecord(f.words, promptCap)))
	return "The repository's commit hook refused the change. Fix what it reports and submit again.\n\n" +
		fenced("commit_hook", f.words), err
}

// commitRefused ends the run, or the task with --keep-going, because a commit hook refused the commit or it cannot be
// signed.
func (g *workspace) commitRefused(ctx context.Context, t session.Task, summary, words string) error {
	stop := Stop{Reason: record.CommitRefused, Detail: g.run.forRecord(words, promptCap)}
	if gitx.SaysUnsigned(words) {
		stop.Hint = "unlock or correct the key, or " + Unsigned
	} else {
		stop.Hint = cmp.Or(g.hookHints(ctx, t, summary))
	}
	return stop
}

// review gets a verdict on a change and writes it to the record, then to the ledger.
func (a *attempt) review(ctx context.Context, c *Case, j *judged) (*Verdict, error) {
	var v *Verdict
	by, from := "", ""
	holds, err := a.holdsFor(ctx, j)
	if err != nil {
		return nil, err
	}
	switch {
	case holds:
		by, v, from = a.otherLanes.prior.by, a.otherLanes.prior.verdict, a.otherLanes.prior.tree
	case a.byPerson:
		by, v = record.ByPerson, &Verdict{Verdict: Accept}
	case a.refusal.tree == j.tree: // an accepted tree that a commit hook refused
		by, v = record.ByHarness, &Verdict{Verdict: Accept}
	case j.empty && !a.doneBefore(j):
		j.unasked = true
		by, v = record.ByHarness, emptyDiff(slices.Sorted(maps.Keys(a.at.notified)), j.ignored)
	default:
		// A commit hook that refuses or changes the accepted tree causes another review without a rejection.
		if err := a.evaluatorLeft(); err != nil {
			return nil, err
		}
		if err := a.emit(&record.CaseSubmitted{Tree: j.tree, Base: a.base, Case: record.JSON(c)}); err != nil {
			return nil, err
		}
		if v, err = a.evaluate(ctx, c, j); err != nil {
			return nil, err
		}
		a.verdict++
	}
	j.by = by
	// The event has the content of the ledger's line, so that a kill between the two writes does not lose the verdict.
	if a.byPerson {
		if err := a.emit(&record.TaskMarked{Mark: lifecycle.MarkDone, Note: c.Summary}); err != nil {
			return nil, err
		}
	}
	e := &record.EvaluatorVerdict{
		Verdict: v.Verdict, RejectionCategory: v.Category, Concern: v.Concern, Evidence: v.Evidence,
		NextStep: v.NextStep, Tree: j.tree, Base: a.base, Summary: a.summary,
		DiffSummary: diffSummary(j.files), Case: record.JSON(c), By: by, CarriedFrom: from,
		TestsChanged: slices.Concat(j.testsChanged, j.oldTests), PassesOnlyWith: j.onlyWith,
		Unseen:        slices.Concat(j.unseen, j.hidden),
		DiffTruncated: j.unseen != nil,
	}
	if err := a.emit(e); err != nil {
		return nil, err
	}
	if _, err := a.run.WriteLedger(a.task.ID); err != nil {
		return nil, err
	}
	return v, a.emit(held.LedgerAppended(e))
}

// doneBefore reports whether an empty change can complete the task: the task has acceptance tests, some test ran, and
// all passed.
func (a *attempt) doneBefore(j *judged) bool {
	return j.report.Passed && j.report.Ran() && len(a.context.Tests) > 0
}

// emptyDiff returns git-tilth's own verdict on an empty change. It asks no model.
func emptyDiff(leftOut, ignored []string) *Verdict {
	category := "acceptance_gap"
	concern := "The change is empty: no file differs from the start of the task."
	next := "Make the change, check with git status that it is in the working tree, and submit again."
	if len(ignored) > 0 {
		concern = "Git ignores all files that you made, so there is nothing to commit: " + strings.Join(ignored, ", ") +
			"."
		next = "Put the files where no rule ignores them, or add an exception to .gitignore, and submit again."
	}
	if len(leftOut) > 0 {
		concern += " Left out as build products, nested repositories or unreadable files: " +
			strings.Join(leftOut, ", ") + "."
	}
	return &Verdict{Verdict: Reject, Category: &category, Concern: &concern, NextStep: &next}
}

func diffSummary(files []gitx.FileChange) string {
	added, deleted := 0, 0
	var names []string
	for _, f := range files {
		added, deleted = added+f.Added, deleted+f.Deleted
		names = append(names, f.Path)
	}
	more := ""
	if len(names) > 20 {
		more = fmt.Sprintf(" and %d more", len(names)-20)
		names = names[:20]
	}
	return fmt.Sprintf("%d files, +%d -%d: %s%s", len(files), added, deleted, strings.Join(names, ", "), more)
}

// accept commits an accepted tree.
//
// The verdict and the ledger are on disk before the call. The state on disk after each step, and the effect of a
// resume:
//
//  1. task_done                commits the accepted tree (lifecycle.MakePlan); the same without task_done
//  2. the commit               its trailers make the task done
//  3. commit event             the same
//  4. prd.json, progress.txt   finished; the next reader updates summary.json
//
// Between 2 and 3 the user may revert the commit (see whole in lifecycle.CommitTask).
func (a *attempt) accept(ctx context.Context, c *Case, j *judged, whole bool) error {
	// Processes may have moved HEAD since the staging.
	wt, err := a.commitPlace(ctx, j.tree)
	if err != nil {
		return err
	}
	a.accepted = true
	v := record.EvaluatorVerdict{Summary: a.summary, Tree: j.tree, Base: a.base}
	if a.byPerson {
		v.By = record.ByPerson
	}
	sha, err := lifecycle.CommitTask(ctx, a.run.Handle, wt, a.task, &v, whole, func() error {
		return a.emit(&record.TaskDone{Summary: a.summary})
	})
	if err != nil {
		changed := errors.Is(err, lifecycle.ErrTreeChanged)
		return errors.Join(err, a.uncommitted(proc.IgnoreFirstSignal(ctx), wt, j, changed))
	}
	if err := a.emit(&record.Commit{SHA: sha}); err != nil {
		return err
	}
	a.noteCommitted(j)
	if err := a.settle(session.TaskDone); err != nil {
		return err
	}
	if slices.ContainsFunc(a.run.taskList(), func(t session.Task) bool { return !hasEnded(t) }) {
		var changed []string
		for _, f := range j.files {
			changed = append(changed, f.Path, f.OldPath)
		}
		a.at.setUpAgain(ctx, wt.Path, changed)
	}
	a.at.releaseTurn()
	if ctx.Err() == nil { // the first signal ends the hook; the commit is recorded
		a.at.runHook(ctx, a.emit, postTask, "", nil, a.task.ID, sha)
	}
	if !a.byPerson && !a.carried {
		a.learn(ctx, c, j.files)
	}
	return nil
}

// noteCommitted stores facts about a commit for later attempts.
func (a *attempt) noteCommitted(j *judged) {
	r := a.run
	r.mu.Lock()
	defer r.mu.Unlock()
	r.branch.judgedTo = ""
	if validator.Known(r.Checkpoint.KnownFailures).Settle(j.report) { // saved at the task's end
		r.Say("known failures pass now, and must pass from now on")
	}
	r.recheck(j.files)
}
