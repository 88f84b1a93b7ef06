package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
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
	name, _, err := held.Stash(ctx, x.Handle, wt, task, tip)
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
	// Settings are the settings for validation and review. They are recorded with the changes since the last start.
	Settings map[string]record.Setting
	// First omits session_resume for a prepared session, because `git tilth run` starts it.
	First bool
	// Only is the one task of a manual command; "" for all. Other failed tasks do not change.
	Only string
}

// Outcome is the result of Execute.
type Outcome struct {
	// Plan is the executed plan, without the commit of an accepted tree if it could not be made.
	Plan
	Aside   string       // new path of a directory that was at the worktree's path, or ""
	Refused *HookRefusal // a commit hook's objection to the accepted tree, or nil
	// SettingsChanged are the changes since the last start of settings that decide how work is judged.
	SettingsChanged []record.SettingChange
	// Edited are the files that somebody changed in the worktree after the stop.
	Edited []string
}

// HookRefusal is a commit hook's refusal of a task's accepted tree.
type HookRefusal struct {
	Output  string
	Verdict *record.EvaluatorVerdict
	Again   bool // the last run ended with the same words
}

// String returns the executed plan in one line.
func (o Outcome) String() string {
	line := o.line(o.Aside)
	if len(o.Edited) > 0 {
		line += "; edited since the stop: " + strings.Join(o.Edited, ", ")
	}
	return line
}

// maxEdited limits the list of edited files in a resume's output.
const maxEdited = 20

// editedSince returns the files that somebody changed in the worktree after the last stop, as far as that is known.
func (p Plan) editedSince(ctx context.Context, h *held.Handle) []string {
	stop := p.Record.Stop
	if stop == nil || p.Tree != held.TreeFine {
		return nil
	}
	// Stops are recorded in milliseconds.
	edited, _ := h.Git.EditedSince(ctx, h.Path(), record.ParseTime(stop.TS).Add(20*time.Millisecond))
	if n := len(edited) - maxEdited; n > 0 {
		edited = append(edited[:maxEdited], "and "+text.Plural(n, "more"))
	}
	return edited
}

// Execute carries the plan out. A dry run uses the same code: every git command is printed and no file is written.
//
// After each step MakePlan makes the same plan without the finished steps:
//  1. a rewind or an undo is finished      then a new plan is made
//  2. the last verdict in the ledger       the same
//  3. the worktree is repaired
//  4. an accepted tree is committed        the commit's tree makes the task done
//  5. commits marked done in prd.json
//  6. the tip is unwound (one soft reset)  the failed tasks are still failed in prd.json
//     the work of a task that is not run is stashed (held.Stash)
//  7. failed tasks pending in prd.json
//     lanes as in the record (held/lanes.go)
//     status running, totals written       all of it survives a power cut
//  8. session_resume, or the session_start of a prepared session
//
// If 3 to 7 fail or are interrupted, a stop replaces 8.
func (p Plan) Execute(ctx context.Context, h *held.Handle, e Execution) (Outcome, error) {
	if p.BranchTip != "" { // the user may have committed since, during a request to a model or a remote
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
	if p.Action != Nothing && !p.Fresh {
		out.Edited = p.editedSince(ctx, h)
	}
	x := &execution{h, out}
	if p.Action == Nothing {
		if p.remakes() { // a rewind needs the worktree
			if err := x.repair(ctx); err != nil {
				return x.out, err
			}
		}
		if err := settleRecord(h, p); err != nil {
			return out, err
		}
		if err := noteResume(h, out, e); err != nil {
			return out, err
		}
		return out, writeViews(h)
	}
	if err := settleRecord(h, p); err != nil {
		return out, err
	}
	h.Checkpoint.StartedAt = record.FormatTime(h.Now())
	if by, v := p.Last.RefusedBy, p.Last.Verdict; by != nil && v != nil && p.CommitTree == nil && v.TaskID == p.Begun {
		x.out.Refused = &HookRefusal{Output: *by.Results[0].Output, Verdict: v}
	}
	err := x.repair(ctx)
	if err != nil {
		return x.out, broken(ctx, h, err)
	}
	if !p.Fresh || !e.First {
		err = noteResume(h, x.out, e)
	}
	if err == nil && p.Fresh {
		start := e.Start
		start.Settings, start.TaskCount, start.Phase = e.Settings, len(p.Tasks), "run"
		start.Source, start.Worktree, start.Branch = h.Checkpoint.Source, h.Path(), h.S.Branch()
		err = h.Append(&start)
	}
	if err != nil {
		return x.out, err
	}
	return x.out, writeViews(h)
}

// writeViews writes the views of the stored plan, durably.
func writeViews(h *held.Handle) error {
	plan, err := h.S.StoredTasks()
	if err != nil {
		return err
	}
	return cmp.Or(h.WriteViews(plan), h.Sync())
}

// settleRecord records the user's edits of prd.json, and completes the ledgers.
func settleRecord(h *held.Handle, p Plan) error {
	if !p.Fresh {
		if err := adoptEdits(h, p.MarkDone); err != nil {
			return err
		}
	}
	return h.Change(func() error { return settleLedgers(h, p) })
}

func noteResume(h *held.Handle, o Outcome, e Execution) error {
	resume := record.SessionResume{
		SessionID: h.S.ID, LastStop: record.Optional(o.LastStop), Retried: o.Retried, Pending: o.Pending,
		Plan: o.String(), Sandbox: e.Start.Sandbox, Settings: e.Settings,
		SettingsChanged: o.SettingsChanged, Edited: o.Edited,
	}
	if len(o.Pending) > 0 {
		resume.Agents = &e.Start.Agents
	}
	if len(o.Unwind) > 0 {
		resume.UnwoundCommit, resume.UnwoundCommits = &o.Unwind[0].SHA, shas(o.Unwind)
	}
	return h.Append(&resume)
}

// execution is a plan that is being carried out.
type execution struct {
	*held.Handle
	out Outcome
}

// repair brings worktree and branch into the plan's state. The first signal ends only setup commands, which may
// install all dependencies of a project. The next resume then creates the worktree again.
func (x *execution) repair(live context.Context) error {
	ctx := proc.IgnoreFirstSignal(live)
	fresh, aside, err := x.RepairWorktree(ctx, x.out.Tree)
	if err != nil {
		return err
	}
	x.out.Aside = aside
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
	return x.settleLanes(ctx)
}

// fillNew checks out the accepted work, which the repository still has, in a new worktree and sets it up. While the
// mark of held.RepairWorktree exists, a resume creates the worktree again, because half-written work would look like
// an edit.
func (x *execution) fillNew(live context.Context) error {
	if a := x.out.CommitTree; a != nil {
		ctx := proc.IgnoreFirstSignal(live)
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

// commitAccepted commits a tree that was accepted before the process died. The repository's hooks run as usual. If a
// hook refuses or changes the tree, or if the files changed since (a hook died, the user edited them), the task is not
// done and its work is in the index. Otherwise differences from the accepted tree would become part of the next task.
// The id is then "".
func (x *execution) commitAccepted(live context.Context, wt gitx.Worktree,
	a *record.EvaluatorVerdict) (sha string, err error) {
	ctx := proc.IgnoreFirstSignal(live)
	if x.out.InLane(a.TaskID) { // files in the session's worktree are a part of a commit, or leftovers
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
		if x.out.Noted {
			return nil
		}
		return x.Append(&record.TaskDone{Scope: x.out.rolledForward(a.TaskID), Summary: a.Summary})
	})
	var refused *gitx.HookRefusedError
	switch {
	case errors.As(err, &refused):
		last := x.out.Record.Stopped
		again := last != nil && last.Reason == record.CommitRefused &&
			text.SaySame(x.Redact.String(refused.Output), last.Detail)
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

// stageAccepted stages the accepted tree; ready is false if the files have other work.
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
		// The work was deleted; it is still in the repository.
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

// broken records that the session could not be prepared for the loop: a stop, like that of a run. Repairs remain, and
// the next resume plans the rest.
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

// truncateMiddle keeps the beginning of a long text for context, and its end, which has the failure.
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
	what, err := finishGoingBack(ctx, h)
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
