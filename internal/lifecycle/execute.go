package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"maps"
	"slices"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/rewind"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/snapshot"
	"github.com/git-tilth/git-tilth/internal/text"
)

// clearAside stashes the work in the worktree of a task that is not run now.
func (x *execution) clearAside(ctx context.Context, wt gitx.Worktree) error {
	task := x.out.SetAside
	if task == "" {
		return nil
	}
	tip, ok, err := x.Git.BranchTip(ctx, wt.Common, wt.Branch)
	if err != nil || !ok {
		return errors.Join(err, fs.ErrNotExist)
	}
	name, _, err := snapshot.SetAside(ctx, x.Handle, wt, task, tip)
	if err != nil || name == "" {
		return err
	}
	return x.Append(&record.LogRepaired{What: "the worktree had work of " + task + ", which is not pending",
		Done: "stashed in " + name})
}

// PlanOf returns the plan of a resume.
func PlanOf(ctx context.Context, h *held.Handle) (Plan, error) {
	st, err := ReadState(ctx, h.Git, h.S, h.Checkpoint)
	if err != nil {
		return Plan{}, err
	}
	return MakePlan(st), nil
}

// Execution has the inputs of Execute besides the session.
type Execution struct {
	// Start is the session_start event for a run of a prepared session.
	Start record.SessionStart
	// Settings are those that decide how work is judged. They are recorded with the changes since the last start.
	Settings map[string]record.Setting
	// First leaves session_resume out for a prepared session: `git tilth run` begins it, and nothing is resumed.
	First bool
	// Only is the one task that a person's word is on; "" for all. Other failed tasks stay as they are.
	Only string
}

// Outcome is the result of Execute.
type Outcome struct {
	// Plan is the plan as it was carried out: less the commit of an accepted tree that could not be made.
	Plan
	Aside   string       // where what stood at the worktree's path was moved, "" for nothing
	Refused *HookRefusal // what a commit hook said against the accepted tree, nil for nothing
	// SettingsChanged are the changes since the last start of settings that decide how work is judged.
	SettingsChanged []record.SettingChange
}

// HookRefusal is a commit hook's refusal of a task's accepted tree.
type HookRefusal struct {
	Output  string
	Verdict *record.EvaluatorVerdict
	Again   bool // the last run ended with the same words
}

// String is the plan as one line, as it was carried out.
func (o Outcome) String() string { return o.line(o.Aside) }

// Execute carries the plan out. A dry run uses the same code: every git command is printed and no file is written.
//
// After each step MakePlan makes the same plan without the finished steps:
//  1. a rewind or an undo is finished      then a new plan is made
//  2. the last verdict in the ledger       the same
//  3. the worktree is repaired
//  4. an accepted tree is committed        the commit's tree makes the task done
//  5. commits marked done in prd.json
//  6. the tip is unwound (one soft reset)  the failed tasks are still failed in prd.json
//     the work of a task that is not run is stashed (snapshot.SetAside)
//  7. failed tasks pending in prd.json
//     lanes as in the record (internal/lanes)
//     status running, totals written       all of it survives a power cut
//  8. session_resume, or the session_start of a prepared session
//
// If 3 to 7 fail or are interrupted, a stop replaces 8.
func (p Plan) Execute(ctx context.Context, h *held.Handle, e Execution) (Outcome, error) {
	if p.BranchTip != "" { // a person may have committed since, while a model or a remote was asked
		tip, _, err := h.Git.BranchTip(ctx, h.Common, h.S.Branch())
		if err == nil && tip != p.BranchTip {
			p, err = PlanOf(ctx, h)
		}
		if err != nil {
			return Outcome{Plan: p}, err
		}
	}
	if e.Only != "" {
		other := func(id string) bool { return id != e.Only }
		p.Retried = slices.DeleteFunc(slices.Clone(p.Retried), other)
	}
	out := Outcome{Plan: p}
	if p.Action == Refuse {
		return out, &held.RefusedError{Why: "session " + h.S.ID + ": " + p.Why, Hint: p.Hint}
	}
	if p.GoingBack != "" {
		return finishThenExecute(ctx, h, e)
	}
	if err := h.OpenRecord(); err != nil {
		return out, err
	}
	out.compareSettings(e.Settings)
	x := &execution{h, out}
	if p.Action == Nothing {
		if p.remakes() { // a rewind needs the worktree
			if err := x.repair(ctx); err != nil {
				return x.out, err
			}
		}
		return out, h.Change(func() error { return noteNothing(h, out, e) })
	}
	if err := h.Change(func() error { return settleRecord(h, p) }); err != nil {
		return out, err
	}
	h.Checkpoint.Status = session.Running
	h.Checkpoint.StartedAt = record.FormatTime(h.Now())
	if v := p.History.Refused; v != nil && p.CommitTree == nil && v.TaskID == p.Begun {
		x.out.Refused = &HookRefusal{Output: *p.History.RefusedBy.Results[0].Output, Verdict: v}
	}
	if err := x.repair(ctx); err != nil {
		return x.out, broken(ctx, h, err)
	}
	if err := h.Save(); err != nil {
		return x.out, err
	}
	if !p.Fresh || !e.First {
		if err := noteResume(h, x.out, e); err != nil || !p.Fresh {
			return x.out, err
		}
	}
	e.Start.Settings = e.Settings
	return x.out, noteStart(h, e.Start, len(p.Tasks))
}

// noteNothing finishes an empty plan. A process that died between the stop and the checkpoint left another status, and
// somebody may have changed files that are written from the record.
func noteNothing(h *held.Handle, o Outcome, e Execution) error {
	if err := settleRecord(h, o.Plan); err != nil {
		return err
	}
	h.Checkpoint.Status = session.AllDone
	if err := cmp.Or(settleTasks(h, nil, nil), h.Save()); err != nil {
		return err
	}
	return noteResume(h, o, e)
}

// settleRecord rewrites the files that are written from the record, if the last run did not finish them or somebody
// changed them.
func settleRecord(h *held.Handle, p Plan) error {
	err := h.SettleTotals()
	if err == nil && !p.Fresh {
		err = adoptEdits(h, p.MarkDone)
	}
	if err != nil {
		return err
	}
	return settleLedgers(h, p)
}

func noteResume(h *held.Handle, o Outcome, e Execution) error {
	resume := record.SessionResume{
		SessionID: h.S.ID, LastStop: record.Optional(o.History.LastStop), Retried: o.Retried, Pending: o.Pending,
		Plan: o.String(), Sandbox: e.Start.Sandbox, Settings: e.Settings,
		SettingsChanged: o.SettingsChanged,
	}
	if len(o.Unwind) > 0 {
		resume.UnwoundCommit, resume.UnwoundCommits = &o.Unwind[0].SHA, shas(o.Unwind)
	}
	return h.Append(&resume)
}

func noteStart(h *held.Handle, start record.SessionStart, tasks int) error {
	start.Phase, start.Source, start.Worktree, start.Branch = "run", h.Checkpoint.Source, h.Path(), h.S.Branch()
	start.TaskCount = tasks
	return h.Append(&start)
}

// execution is a plan that is being carried out.
type execution struct {
	*held.Handle
	out Outcome
}

// repair brings the worktree and the branch into the plan's state. Only setup commands, which may install all of a
// project's dependencies, end with the first signal; the next resume then makes the worktree again.
func (x *execution) repair(live context.Context) error {
	ctx := held.IgnoreFirstSignal(live)
	fresh, aside, err := x.RepairWorktree(ctx, x.out.Tree)
	if err != nil {
		return err
	}
	x.out.Aside = aside
	for _, t := range x.out.Tasks {
		if x.out.Record.Tasks[t.ID].Stashed {
			if err := snapshot.NoteLost(x.Handle, t.ID); err != nil {
				return err
			}
		}
	}
	if fresh {
		if err := x.fillNew(live); err != nil {
			return err
		}
	}
	wt, err := x.Worktree(ctx)
	if err != nil {
		return err
	}
	if err := x.Git.ClearInProgress(ctx, wt); err != nil {
		return err
	}
	done := maps.Clone(x.out.MarkDone)
	if a := x.out.CommitTree; a != nil {
		sha, err := x.commitAccepted(live, wt, a)
		if err != nil {
			return err
		}
		if sha != "" {
			done[a.TaskID] = sha
		}
	}
	if len(x.out.Unwind) > 0 {
		if err := x.Git.Reset(ctx, wt, x.out.BeginsAt(), false); err != nil {
			return err
		}
	}
	if err := x.clearAside(ctx, wt); err != nil {
		return err
	}
	if err := x.noteCommits(done); err != nil {
		return err
	}
	if err := x.Change(func() error { return settleTasks(x.Handle, done, x.out.Retried) }); err != nil {
		return err
	}
	return x.settleLanes(ctx)
}

// fillNew gives a new worktree the accepted work, which is still in the repository, and sets it up. While the mark of
// held.RepairWorktree exists, a resume makes the worktree again, because partly written work would look like an edit.
func (x *execution) fillNew(live context.Context) error {
	if a := x.out.CommitTree; a != nil {
		ctx := held.IgnoreFirstSignal(live)
		wt, err := x.Worktree(ctx)
		if err != nil {
			return err
		}
		there, err := x.hasTree(ctx, a.Tree)
		if err != nil {
			return err
		}
		if there {
			if err := x.Git.ReadTree(ctx, wt, a.Tree, true); err != nil {
				return err
			}
		}
	}
	if err := x.RunSetup(live, x.Path()); err != nil {
		return err
	}
	return x.WorktreeMade()
}

// commitAccepted commits a tree that was accepted before the process died. The repository's hooks run as usual. If one
// refuses or changes the tree, or if the files changed since (a hook died, the user edited them), the task is not done
// and its work is in the index, or differences from the accepted tree would go into the next task. The id is then "".
func (x *execution) commitAccepted(live context.Context, wt gitx.Worktree,
	a *record.EvaluatorVerdict) (sha string, err error) {
	ctx := held.IgnoreFirstSignal(live)
	if x.out.InLane(a.TaskID) { // what is in the session's worktree is a part of a commit, or nobody's
		if err := x.cleanWorktree(ctx); err != nil {
			return "", err
		}
		defer func() {
			if sha == "" {
				err = cmp.Or(err, x.Git.Reset(ctx, wt, a.Base, true), x.Git.FollowModules(ctx, wt))
			}
		}()
	}
	ready, err := x.stageAccepted(ctx, wt, a)
	if err != nil || !ready {
		return "", x.giveUp(a.TaskID, err)
	}
	tasks, err := x.S.Tasks()
	if err != nil {
		return "", err
	}
	i := session.IndexOf(tasks, a.TaskID)
	sha, err = CommitTask(live, x.Handle, wt, tasks[i], a, true, func() error {
		if x.out.History.Noted {
			return nil
		}
		return x.Append(&record.TaskDone{Scope: x.out.rolledForward(a.TaskID), Summary: a.Summary})
	})
	var refused *gitx.HookRefusedError
	switch {
	case errors.As(err, &refused):
		last := x.out.History
		again := last.LastStop == record.CommitRefused && text.SaySame(x.Redact.String(refused.Output), last.StopDetail)
		x.out.Refused = &HookRefusal{Output: refused.Output, Verdict: a, Again: again}
		if again {
			return "", x.giveUp(a.TaskID, nil)
		}
		run := RefusedBy(refused.Output)
		run.Scope = x.out.rolledForward(a.TaskID)
		return "", x.giveUp(a.TaskID, x.Append(run))
	case errors.Is(err, ErrTreeChanged):
		return "", x.giveUp(a.TaskID, nil)
	case errors.Is(err, gitx.ErrUnsigned):
		x.out.Refused = &HookRefusal{Output: err.Error(), Verdict: a, Again: true}
		return "", x.giveUp(a.TaskID, nil)
	case err == nil:
		x.out.JudgedTo, x.out.Unjudged = "", 0 // the verdict was on these commits too
	}
	return sha, err
}

// hasTree reports whether the repository has the tree with this id.
func (x *execution) hasTree(ctx context.Context, id string) (bool, error) {
	tree, err := x.Git.RevParse(ctx, x.Common, id+"^{tree}")
	if errors.Is(err, gitx.ErrNotFound) {
		return false, nil
	}
	return tree == id, err
}

// stageAccepted brings the accepted tree into the index; ready is false if the files hold other work.
func (x *execution) stageAccepted(ctx context.Context, wt gitx.Worktree,
	a *record.EvaluatorVerdict) (ready bool, err error) {
	there, err := x.hasTree(ctx, a.Tree)
	if err != nil || !there {
		return false, err
	}
	now, _, err := x.Git.StageAll(ctx, wt, a.Base)
	if err != nil {
		return false, err
	}
	base, err := x.Git.RevParse(ctx, x.Common, a.Base+"^{tree}")
	if err != nil {
		return false, err
	}
	switch now {
	case a.Tree, "": // "": a dry run, in a worktree that is still to be made and filled with it
		return true, nil
	case base:
		// Somebody took the work away; it is in the repository still.
		return true, cmp.Or(x.Git.ReadTree(ctx, wt, a.Tree, true), x.Git.FollowModules(ctx, wt))
	}
	return false, nil
}

// giveUp puts a task with an accepted, uncommitted tree before the pending tasks. Its work is in its lane, else in the
// worktree.
func (x *execution) giveUp(task string, err error) error {
	x.out.CommitTree = nil
	x.out.Pending = append([]string{task}, x.out.Pending...)
	if !x.out.InLane(task) {
		x.out.Begun = task
	}
	x.out.Action = Continue
	return err
}

// broken puts on record that the session could not be brought to where the loop begins: a stop, like that of a run.
// What was repaired stays, and the next resume makes the same plan of the rest.
func broken(ctx context.Context, h *held.Handle, cause error) error {
	if h.Git.IsDryRun() {
		return cause
	}
	status, stop := session.Failed, record.Stop{Reason: record.Errored, Detail: truncateMiddle(cause.Error())}
	if ctx.Err() != nil {
		status, stop = session.Running, record.Stop{Reason: record.Interrupted}
	}
	if err := Stopped(h, status, stop); err != nil {
		return errors.Join(cause, err)
	}
	return cause
}

// truncateMiddle keeps the beginning of a long text, for context, and its end, which has the failure.
func truncateMiddle(text string) string {
	const head, tail = 500, 3500
	r := []rune(text)
	if len(r) <= head+tail {
		return text
	}
	return string(r[:head]) + "\n[...]\n" + string(r[len(r)-tail:])
}

func shas(commits []gitx.Commit) []string {
	var out []string
	for _, c := range commits {
		out = append(out, c.SHA)
	}
	return out
}

// finishThenExecute finishes an unfinished rewind or undo, and then executes a new plan.
func finishThenExecute(ctx context.Context, h *held.Handle, e Execution) (Outcome, error) {
	what, err := rewind.Finish(ctx, h)
	if err != nil || h.Git.IsDryRun() {
		return Outcome{}, err
	}
	p, err := PlanOf(ctx, h)
	if err != nil {
		return Outcome{}, err
	}
	p.Finished = what
	return p.Execute(ctx, h, e)
}
