package loop

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/config"
	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/lifecycle"
	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
)

// silentTurns is the number of turns in a row, without a tool call or a hand-in, that end a task.
const silentTurns = 3

// turn is the result of one worker iteration.
type turn struct {
	caseArgs string   // the submitted case as text, or ""
	rawCalls any      // tool calls as the model wrote them, for a case that cannot be parsed
	nudge    nudge    // how to ask the worker to continue; "" after a case or a tool call
	why      string   // the program's reason, for nudges that quote it
	idle     bool     // the turn did nothing; three in a row end the task
	noTools  string   // name of a model that has never called a tool
	stopped  []string // background tasks that the worker's program stopped at its exit
	failing  string   // tools and errors, if all tools failed
}

// attempt is one attempt at one task.
type attempt struct {
	run     *run
	at      *workspace
	index   int
	task    session.Task
	base    string // commit at which the attempt began
	judged  string // start of the judged range: base, or an earlier commit if authors of later commits are unknown
	trace   string // 32 hex digits
	span    string // 16 hex digits, new for each iteration
	iter    int
	verdict int // evaluator calls so far
	// accepted is true from an accepting verdict until a commit hook refuses the commit.
	accepted     bool
	worker       *worker
	lastFeedback string // not yet seen by the current worker
	full         bool   // a new conversation replaced one that was too long
	context      taskContext
	restored     bool    // stashed work was restored in the worktree
	summary      string  // of the first hand-in with a change, completed by later ones
	refusal      refusal // last refusal by a commit hook
	// objection is the last objection to the change, in one line.
	objection     string
	lastObjection streak
	failing       streak // repeated failure of tools
	carried       bool   // its change was made on another base
	byPerson      bool   // the user marked the task as done: no worker, no evaluator
	left          left   // unfinished work of the last run
	otherLanes    otherLanes
	extra         int      // iterations added for conflicts
	ignored       []string // ignored files of the worktree before the worker began
}

// left is the last run's unfinished work on a task: a case without a verdict, or an accepted tree that a commit hook
// refused.
type left struct {
	review  *record.CaseSubmitted
	refused *lifecycle.HookRefusal
}

// task takes one task to done or failed. It returns nil for done.
func (r *run) task(ctx context.Context, g *workspace, i int) (err error) {
	// Events before the first iteration have the span of the attempt.
	a := &attempt{run: r, at: g, index: i, task: r.tasks[i], trace: randomHex(16), span: randomHex(8)}
	wt, err := a.begin(ctx)
	if err != nil {
		return err
	}
	done, err := a.resumeReview(ctx, &wt)
	if err == nil && !done {
		err = a.work(ctx, wt)
	}
	var stop Stop
	switch {
	case errors.As(err, &stop) && a.run.o.failsTask(stop):
		if failing := a.fail(ctx, stop); failing != nil {
			return failing
		}
	case err != nil:
		a.foldAtStop(ctx)
	}
	return err
}

// begin records the start of the attempt and loads its context from disk.
func (a *attempt) begin(ctx context.Context) (wt gitx.Worktree, err error) {
	if wt, err = a.settledWorktree(ctx); err != nil {
		return wt, err
	}
	if a.base, err = a.beginsAt(ctx); err != nil {
		return wt, err
	}
	if a.at.lane == "" {
		a.left = left{a.run.o.From.Review, a.run.o.From.Refused}
	} else if a.otherLanes.began = a.base; slices.Contains(a.run.o.From.Lanes, a.task.ID) ||
		a.run.stashedAt(a.task.ID) != "" {
		a.left.review, a.left.refused = a.leftInLane()
	}
	a.otherLanes.seenTip = a.base
	if was := a.run.o.From.Record; was != nil {
		a.otherLanes.merged = was.Tasks[a.task.ID].Conflict
	}
	done := []string{}
	for _, t := range a.run.taskList() {
		if t.Status == session.TaskDone {
			done = append(done, t.ID)
		}
	}
	reset := record.ContextReset{Base: a.base, Done: &done, Lane: a.at.lane != ""}
	if a.otherLanes.began != a.base {
		reset.Since = a.otherLanes.began
	}
	if a.judged = a.base; a.at.lane == "" && a.run.branch.judgedTo != "" && a.run.branch.judgedTo != a.base {
		a.judged = a.run.branch.judgedTo
		reset.Judged = a.judged
	}
	if err := a.emit(&reset); err != nil {
		return wt, err
	}
	if err := held.LaneBegun(a.run.Handle, a.at.lane); err != nil {
		return wt, err
	}
	if a.byPerson { // the worktree has the user's change
		a.context.project, err = a.run.projectAt(ctx, a.judged)
		return wt, err
	}
	if v := a.run.o.From.Record.Carried(a.task.ID); v != nil && a.at.lane == "" {
		err = a.bring(ctx, wt, v)
	} else {
		a.restored, err = held.Unstash(ctx, a.run.Handle, wt, a.task.ID, a.base)
	}
	if err != nil {
		return wt, err
	}
	if a.context, err = a.loadContext(ctx, wt); err == nil {
		err = a.noteIgnored(ctx, wt)
	}
	if a.left.review == nil && !a.carried && (a.restored || a.context.Partial) {
		a.left.review = a.run.o.From.Record.AwaitsReview(a.task.ID)
	}
	return wt, cmp.Or(err, a.loadSummary())
}

// loadSummary restores the summary of earlier hand-ins from the ledger, if their work is in the worktree.
func (a *attempt) loadSummary() error {
	if !a.context.Partial {
		return nil
	}
	entries, err := a.run.S.ReadLedger(a.task.ID, 0)
	for _, e := range entries {
		c, unread := parseCase(string(e.Case))
		if unread == nil && e.DiffSummary != diffSummary(nil) {
			a.summary = held.Completed(a.summary, c.Summary)
		}
	}
	return err
}

// resumeReview continues the last run's unfinished work on this task: a case without a verdict, or an accepted tree
// that a commit hook refused. done means that the task is committed; otherwise the caller must read wt again.
func (a *attempt) resumeReview(ctx context.Context, wt *gitx.Worktree) (done bool, err error) {
	c, f := a.left.review, a.left.refused
	if a.left = (left{}); a.at.lane == "" {
		a.run.o.From.Review, a.run.o.From.Refused = nil, nil
	}
	if f != nil && f.Verdict.TaskID == a.task.ID {
		if f.Again {
			return false, a.at.commitRefused(ctx, a.task, f.Verdict.Summary, f.Output)
		}
		if accepted, err := parseCase(string(f.Verdict.Case)); err == nil && f.Verdict.Base == a.base {
			a.refusal = refusal{f.Verdict.Tree, f.Output, accepted}
		}
	}
	if c == nil || c.TaskID != a.task.ID {
		return false, nil
	}
	submitted, err := parseCase(string(c.Case))
	if err != nil {
		return false, nil // the case is from another version; the worker hands in again
	}
	if a.at.lane != "" && !a.restored {
		wt, err := a.foldedWorktree(ctx)
		if err != nil {
			return false, err
		}
		if tree, _, err := a.stage(ctx, a.run.Git, wt); err != nil || tree != c.Tree {
			a.otherLanes.prior = nil // the change is newer than the verdict
			return false, err
		}
	}
	a.iter = 1
	feedback, err := a.judge(ctx, submitted)
	if err != nil || feedback == "" {
		return err == nil, err
	}
	if *wt, err = a.settledWorktree(ctx); err == nil {
		a.context, err = a.loadContext(ctx, *wt) // the ledger now has the verdict
		if a.carried {
			a.context.Conflict = cmp.Or(a.context.Conflict, feedback)
		}
	}
	return false, err
}

// work lets the worker do the task until it is committed.
func (a *attempt) work(ctx context.Context, wt gitx.Worktree) (err error) {
	a.iter = 1 // the first prompt belongs to the first iteration
	if err := a.startWorker(ctx, wt); err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, a.worker.close()) }()
	return a.iterations(ctx)
}

// beginsAt returns the commit at which the attempt begins: the branch's tip, or the base of its lane.
func (a *attempt) beginsAt(ctx context.Context) (string, error) {
	if a.at.lane != "" {
		wt, err := a.at.worktree(ctx)
		if err != nil {
			return "", err
		}
		return a.run.Git.RevParse(ctx, wt.AdminDir, "HEAD^{commit}")
	}
	return a.run.tip(ctx)
}

// settledWorktree returns the checked worktree. It restores a HEAD that the worker moved to another branch, and aborts
// an unfinished merge or rebase. The files stay in both cases.
func (a *attempt) settledWorktree(ctx context.Context) (gitx.Worktree, error) {
	wt, err := a.at.worktree(ctx)
	if err != nil {
		on, elsewhere := a.run.Elsewhere(ctx)
		if !elsewhere || a.at.lane != "" {
			return wt, err
		}
		if err := a.run.BringBack(ctx, true, a.base); err != nil {
			return wt, err
		}
		was := "HEAD was on " + cmp.Or(on, "no branch")
		done := "brought back to " + a.run.S.Branch() + ", the worker's files kept"
		if err := a.emit(&record.LogRepaired{What: was, Done: done}); err != nil {
			return wt, err
		}
		if wt, err = a.run.Worktree(ctx); err != nil {
			return wt, err
		}
	}
	return wt, a.run.Git.ClearInProgress(ctx, wt)
}

// iterations is the inner loop. It returns nil once the task is committed.
func (a *attempt) iterations(ctx context.Context) error {
	silent := 0
	for a.iter = 1; ; a.iter++ {
		if limit := a.limit(); a.iter > limit {
			a.iter--
			return Stop{Reason: record.IterCap, Detail: fmt.Sprint(limit), Objection: a.objection}
		}
		if ending := a.run.endsFor(); ending != nil {
			return ending
		}
		if a.iter > 1 {
			a.span = randomHex(8)
		}
		if full := a.run.diskFull(); full != nil {
			return full
		}
		if err := a.run.checkLease(ctx); err != nil {
			return err
		}
		t, err := a.iterate(ctx)
		if err != nil {
			return err
		}
		switch {
		case t.nudge != "":
			if silent++; !t.idle {
				silent = 0
			}
			if silent >= silentTurns {
				return noCase(silent, t)
			}
			if err := a.nudge(t, silent); err != nil {
				return err
			}
			continue
		case t.caseArgs != "":
			done, err := a.submitted(ctx, t)
			if done || err != nil {
				return err
			}
		}
		silent = 0
		if err := a.failsAgain(t); err != nil {
			return err
		}
	}
}

// limit returns the maximum number of iterations of the attempt.
func (a *attempt) limit() int { return int(a.run.o.Caps[config.MaxIterations]) + a.extra }

// submitted judges a case. done means that the task is committed; otherwise the worker gets an answer.
func (a *attempt) submitted(ctx context.Context, t turn) (done bool, err error) {
	c, err := parseCase(t.caseArgs)
	if err != nil {
		unread := record.CaseParseError{Error: err.Error(), RawToolCalls: record.JSON(t.rawCalls), Attempt: a.iter}
		if e := a.emit(&unread); e != nil {
			return false, e
		}
		line := "the hand-in could not be read: " + err.Error()
		if err := a.countObjection(line, "case", err.Error(), a.retryHint); err != nil {
			return false, err
		}
		return false, a.answer("The case could not be read: " + err.Error() + ".")
	}
	if len(t.stopped) > 0 {
		c.Uncertainties = append(c.Uncertainties, "still in the background when the program exited, and "+
			"stopped then: "+strings.Join(t.stopped, ", "))
	}
	feedback, err := a.judge(ctx, c)
	if err != nil || feedback == "" {
		return err == nil, err
	}
	if feedback, err = a.withNews(ctx, feedback); err == nil {
		err = a.answer(feedback)
	}
	return false, err
}

// fail ends a failed task.
//
// The state on disk after each step, and the effect of a resume:
//
//  1. task_failed               runs the pending task again, with its uncommitted work
//  2. work in progress commit   unwinds it, whatever the status in prd.json
//  3. prd.json failed           makes the task pending
//  4. progress.txt
//  5. stop and checkpoint       written by finish
//
// With --keep-going, a stash replaces step 2 (held/stash.go), and the next task replaces step 5.
func (a *attempt) fail(ctx context.Context, s Stop) error {
	ctx = proc.IgnoreFirstSignal(ctx)
	if err := a.emit(&record.TaskFailed{Reason: s.Reason, Detail: s.Detail, Objection: s.Objection,
		Hint: s.Hint}); err != nil {
		return err
	}
	wt, err := a.foldedWorktree(ctx)
	if err != nil {
		return err
	}
	if a.run.o.KeepGoing || a.at.lane != "" {
		return a.failAside(ctx, wt)
	}
	tree, _, err := a.stage(ctx, a.run.Git, wt)
	if err == nil {
		tree, err = a.withoutUnfit(ctx, wt, tree)
	}
	if err != nil {
		return err
	}
	baseTree, err := a.run.Git.RevParse(ctx, a.run.Common, a.base+"^{tree}")
	if err != nil {
		return err
	}
	if tree != baseTree {
		mark, err := a.run.RecordMark()
		if err != nil {
			return err
		}
		sha, err := a.run.Git.CommitTree(ctx, wt, gitx.TreeCommit{
			Tree: tree, Parent: a.base, Message: held.PlaceholderMessage(a.run.S.ID, a.task, s.Reason, mark),
			Reflog: "tilth: placeholder", Sign: a.run.Sign,
		})
		if err != nil {
			return err
		}
		if err := a.emit(&record.Commit{SHA: sha, Placeholder: true}); err != nil {
			return err
		}
	}
	return a.settle(session.TaskFailed)
}

// failAside stashes the attempt's work and resets the worktree to the attempt's base.
func (a *attempt) failAside(ctx context.Context, wt gitx.Worktree) error {
	name, sha, err := held.Stash(ctx, a.run.Handle, wt, a.task.ID, a.base)
	if err != nil {
		return err
	}
	if name != "" {
		if err := a.emit(&record.Commit{SHA: sha, Placeholder: true, Aside: name}); err != nil {
			return err
		}
	}
	return a.settle(session.TaskFailed)
}

// settle updates the views at a task's end. It does not sync directories, because the record is synced.
func (a *attempt) settle(status string) error {
	r := a.run
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tasks[a.index].Status = status
	return r.WriteViews(r.tasks)
}

// emit appends an event of this attempt to the record.
func (a *attempt) emit(ev record.Event) error {
	in := ev.Common()
	in.TaskID, in.TraceID, in.SpanID, in.Iter = a.task.ID, a.trace, a.span, a.iter
	return a.run.Record.Append(ev)
}
