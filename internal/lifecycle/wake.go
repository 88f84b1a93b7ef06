package lifecycle

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/session"
)

// Inspect decides what a resume of the held session would do, with no change but the end of a rewind that was begun.
func (h *Held) Inspect(ctx context.Context) (Plan, State, error) {
	st, err := Look(ctx, h.Git, h.S, h.Check)
	if err != nil {
		return Plan{}, st, err
	}
	return Decide(st), st, nil
}

// Wake brings the session to the state that the plan describes and logs session_resume.
//
// Each step leaves a state of which Decide makes the same plan, less what is done:
//  1. a rewind is finished                 prepared
//  2. the last verdict in the ledger       as before
//     status running, totals settled       no other run takes it up
//  3. the worktree stands
//  4. an accepted tree is committed        its trailers make the task done in the next look
//  5. commits marked done in prd.json
//  6. the tip is unwound (one soft reset)  the failed tasks still say so in prd.json
//  7. failed tasks pending in prd.json
//  8. session_resume
//
// Where 3 to 7 fail or are interrupted, a stop takes the place of 8.
func (h *Held) Wake(ctx context.Context, p Plan, setup Setup) (Plan, error) {
	if p.FinishRewind {
		if err := h.FinishRewind(quiet(ctx)); err != nil {
			return p, err
		}
		again, _, err := h.Inspect(quiet(ctx))
		if err != nil {
			return p, err
		}
		again.FinishRewind = true
		p = again
	}
	if p.Action == Refuse {
		return p, &RefusedError{Why: "session " + h.S.ID + ": " + p.Why, Hint: p.Hint}
	}
	if err := h.OpenRecord(); err != nil {
		return p, err
	}
	h.settleTotals()
	if p.Action != Nothing {
		if err := h.settleLedger(); err != nil {
			return p, err
		}
		h.Check.Status = session.Running
		h.Check.StartedAt = session.FormatTime(h.Now())
		if err := h.Save(); err != nil {
			return p, err
		}
		var err error
		if p, err = h.mend(ctx, p, setup); err != nil {
			return p, h.broken(ctx, err)
		}
	}
	if p.Action == Nothing && h.Check.Status != session.AllDone {
		// The process died between the stop and the checkpoint.
		h.Check.Status = session.AllDone
		if err := h.Save(); err != nil {
			return p, err
		}
	}
	payload := map[string]any{
		"session_id": h.S.ID, "last_stop": nullable(p.LastStop), "retried": list(p.Retried), "pending": list(p.Pending),
		"unwound_commit": nil, "plan": p.String(),
	}
	if len(p.Unwind) > 0 {
		payload["unwound_commit"] = p.Unwind[0].SHA
		payload["unwound_commits"] = shas(p.Unwind)
	}
	return p, h.Record.AppendSync("session_resume", payload)
}

// mend brings the worktree and the branch to what the plan says. Only the setup commands, which may install all of a
// project's dependencies, end with the first signal; the worktree is then made anew by the next resume.
func (h *Held) mend(live context.Context, p Plan, setup Setup) (Plan, error) {
	ctx := quiet(live)
	fresh, aside, err := h.mendWorktree(ctx, p.Worktree)
	if err != nil {
		return p, err
	}
	if p.Aside = aside; aside != "" {
		what := map[string]any{"what": "a directory that is no worktree stood at " + h.Path(), "done": "moved to " + aside}
		if err := h.Record.Append("log_repaired", what); err != nil {
			return p, err
		}
	}
	if fresh {
		if err := h.Furnish(live, setup); err != nil {
			return p, err
		}
		if err := h.worktreeMade(); err != nil {
			return p, err
		}
	}
	wt, err := h.Worktree()
	if err != nil {
		return p, err
	}
	if err := h.Git.QuitOperations(ctx, wt); err != nil {
		return p, err
	}
	if p, err = h.commitAccepted(live, wt, p); err != nil {
		return p, err
	}
	if len(p.Unwind) > 0 {
		if err := h.Git.SoftReset(ctx, wt, p.UnwindTo); err != nil {
			return p, err
		}
	}
	if err := h.noteCommits(p); err != nil {
		return p, err
	}
	return p, h.settlePlan(p)
}

// broken puts on record that the session could not be brought to where the loop begins: a stop, like that of a run. What was
// mended stays mended, and the next resume makes the same plan of the rest.
func (h *Held) broken(ctx context.Context, cause error) error {
	status, payload := session.Failed, map[string]any{"reason": "error", "detail": ends(cause.Error())}
	if ctx.Err() != nil {
		status, payload = session.Running, map[string]any{"reason": "interrupted"}
	}
	if err := h.Stopped(status, payload); err != nil {
		return errors.Join(cause, err)
	}
	return cause
}

// ends are the beginning of a long text, which says what it is, and its end, which says what went wrong.
func ends(text string) string {
	const head, tail = 500, 3500
	r := []rune(text)
	if len(r) <= head+tail {
		return text
	}
	return string(r[:head]) + "\n[...]\n" + string(r[len(r)-tail:])
}

// commitAccepted commits a tree that was accepted before the process died. The repo's hooks run, as they would
// have. If one refuses or changes the tree, or if the files are not what was judged any more (a hook died half-way, a
// person edited them), the task is simply not done yet and its work is in the index: what differs from the accepted
// tree would be taken for work of the next task.
func (h *Held) commitAccepted(live context.Context, wt gitx.Worktree, p Plan) (Plan, error) {
	ctx := quiet(live)
	a := p.CommitTree
	if a == nil {
		return p, nil
	}
	tasks, err := h.S.Plan()
	if err != nil {
		return p, err
	}
	i := slices.IndexFunc(tasks, func(t session.Task) bool { return t.ID == a.Task })
	giveUp := func() Plan {
		p.CommitTree = nil
		p.Pending = append([]string{a.Task}, p.Pending...)
		p.Behind--
		p.Action = Continue
		return p
	}
	there, err := h.Git.ObjectExists(ctx, h.Common, a.Tree)
	if err != nil {
		return p, err
	}
	if !there {
		return giveUp(), nil
	}
	now, _, err := h.Git.StageAll(ctx, wt, a.Base)
	if err != nil {
		return p, err
	}
	base, err := h.Git.TreeOf(ctx, h.Common, a.Base)
	if err != nil {
		return p, err
	}
	switch now {
	case a.Tree:
	case base:
		// The worktree was lost and made again; the accepted work is in the repository still.
		if err := h.Git.ReadTreeIntoFiles(ctx, wt, a.Tree); err != nil {
			return p, err
		}
	default:
		return giveUp(), nil
	}
	if !a.Noted {
		if err := h.Record.Append("task_done", h.rolledForward(a.Task, map[string]any{"summary": a.Summary})); err != nil {
			return p, err
		}
	}
	sha, err := h.CommitTask(live, wt, tasks[i], a.Summary, a.Tree, a.Base)
	var refused *gitx.HookRefusedError
	var changed *TreeChangedError
	switch {
	case errors.As(err, &refused):
		p.Refused = &HookRefusal{Task: a.Task, Output: refused.Output}
		return giveUp(), h.Record.Append("validator_run", h.rolledForward(a.Task, RefusedBy(refused.Output)))
	case errors.As(err, &changed):
		return giveUp(), nil
	}
	if err != nil {
		return p, err
	}
	p.MarkDone[a.Task] = sha
	return p, nil
}

// onRecord tells whether a commit of a task is on record, behind the verdict that accepted it.
func (h *Held) onRecord(task, sha string) (found bool, err error) {
	_, err = h.S.TailRecord(func(_ int64, line []byte) (more bool) {
		if !mentions(line, `"commit"`, `"evaluator_verdict"`) {
			return true
		}
		e := session.ParseEvent(line)
		var p struct {
			Task    string `json:"task_id"`
			SHA     string `json:"sha"`
			Verdict string `json:"verdict"`
		}
		if json.Unmarshal(e.Payload, &p) != nil {
			return true
		}
		found = e.Type == "commit" && p.SHA == sha
		return !found && !(e.Type == "evaluator_verdict" && p.Task == task && p.Verdict == "accept")
	})
	return found, err
}

// noteCommits writes down the commits of tasks that are marked done now and that are not on record. What a process
// that died had not written down is at most one, the last; but a person may have set a task back.
func (h *Held) noteCommits(p Plan) error {
	if len(p.MarkDone) == 0 {
		return nil // looking for the last commit may mean reading all of a long record
	}
	for _, t := range slices.Sorted(maps.Keys(p.MarkDone)) {
		sha := p.MarkDone[t]
		if known, err := h.onRecord(t, sha); err != nil || known {
			if err != nil {
				return err
			}
			continue
		}
		if err := h.Record.AppendSync("commit", h.rolledForward(t, map[string]any{"sha": sha})); err != nil {
			return err
		}
	}
	return nil
}

// rolledForward is the payload of an event that a process that died did not come to write. It belongs to the iteration
// of the task's last verdict.
func (h *Held) rolledForward(task string, payload map[string]any) map[string]any {
	payload["task_id"], payload["rolled_forward"] = task, true
	e, _, ok, err := h.S.LastEvent("evaluator_verdict")
	var verdict map[string]any
	if err != nil || !ok || json.Unmarshal(e.Payload, &verdict) != nil || verdict["task_id"] != task {
		return payload // a foreign record may have none
	}
	for _, name := range []string{"trace_id", "span_id", "iter"} {
		if v, ok := verdict[name]; ok {
			payload[name] = v
		}
	}
	return payload
}

// RefusedBy is the payload of a validator_run by which a commit hook's refusal is on record.
func RefusedBy(output string) map[string]any {
	return map[string]any{
		"passed": false, "results": []map[string]any{{"name": "commit hook", "passed": false, "seconds": 0, "output": output}},
	}
}

// TreeChangedError says that a commit hook made another tree than the one that was judged. The commit was
// taken back; the index holds what the hook made.
type TreeChangedError struct{ Judged, Made string }

func (e *TreeChangedError) Error() string { return "a commit hook changed the tree" }

// CommitTask commits exactly the judged tree, which the index holds, with the repo's hooks. The summary becomes public with
// the branch, so secrets are taken out of it as they are on the record. A signal ends git and the hooks, which may take minutes;
// the next resume finds the commit made, or makes it of the accepted tree. What follows a commit that was made is not cut short.
func (h *Held) CommitTask(live context.Context, wt gitx.Worktree, t session.Task, summary, tree, base string) (sha string, err error) {
	ctx := quiet(live)
	sha, _, err = h.Git.Commit(live, wt, TaskMessage(h.S.ID, t, h.Redact.String(summary)), gitx.CommitOpts{Sign: h.Sign})
	if err != nil {
		return "", err
	}
	made, err := h.Git.Log(ctx, h.Common, sha, "", 1)
	if err != nil {
		return "", err
	}
	if len(made) == 0 {
		return "", errors.New("the commit of " + t.ID + " cannot be read back")
	}
	if made[0].Tree != tree {
		if err := h.Git.SoftReset(ctx, wt, base); err != nil {
			return "", err
		}
		return "", &TreeChangedError{Judged: tree, Made: made[0].Tree}
	}
	return h.withTrailers(ctx, wt, t, made[0])
}

// withTrailers gives the commit of a task back the trailers that it is known by, if a commit-msg hook took them away. Until
// then it is known as the accepted tree.
func (h *Held) withTrailers(ctx context.Context, wt gitx.Worktree, t session.Task, c gitx.Commit) (sha string, err error) {
	who := author{sessionID: h.S.ID, tasks: map[string]session.Task{t.ID: t}}
	if task, ok := who.done(c); ok && task == t.ID || len(c.Parents) != 1 {
		return c.SHA, nil
	}
	msg := message(c.Subject, c.Body, trailer(TrailerSession, h.S.ID), trailer(TrailerTask, t.ID))
	return h.Git.CommitTreeOver(ctx, wt, c.Tree, c.Parents[0], c.SHA, msg, "tilth: trailers", h.Sign)
}

// settlePlan brings prd.json and progress.txt in line with the plan.
func (h *Held) settlePlan(p Plan) error {
	tasks, err := h.S.Plan()
	if err != nil {
		return err
	}
	changed := false
	for i := range tasks {
		t := &tasks[i]
		switch {
		case p.MarkDone[t.ID] != "":
			t.Status, changed = "done", true
		case t.Status == "failed", t.ID == p.Redo:
			t.Status, changed = "pending", true
		}
	}
	if changed {
		if err := h.S.SavePlan(tasks); err != nil {
			return err
		}
	}
	return h.settleProgress(tasks)
}

// settleProgress adds the lines that a process that died had no time for: progress.txt comes after prd.json.
func (h *Held) settleProgress(tasks []session.Task) error {
	lines, err := h.S.Progress()
	if err != nil {
		return err
	}
	there := map[string]bool{}
	for _, l := range lines {
		there[l.Task] = there[l.Task] || l.State == "done"
	}
	for _, t := range tasks {
		if t.Status != "done" || there[t.ID] {
			continue
		}
		if err := h.S.AppendProgress(t.ID, "done", t.Title); err != nil {
			return err
		}
	}
	return nil
}

// settleTotals raises the checkpoint's totals to what the record's last model call says: a run that
// died did not come to write its checkpoint.
func (h *Held) settleTotals() {
	e, _, ok, err := h.S.LastEvent("model_call")
	if err != nil || !ok {
		return
	}
	var last struct {
		Total int64 `json:"tokens_used_total"`
	}
	if json.Unmarshal(e.Payload, &last) == nil && last.Total > h.Check.TokensUsed {
		h.Check.TokensUsed = last.Total
		if sum, err := h.S.Summarize(); err == nil {
			h.Check.Usage = sum.Usage
		}
	}
}

func list(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}

func nullable(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func shas(commits []gitx.Commit) []string {
	var out []string
	for _, c := range commits {
		out = append(out, c.SHA)
	}
	return out
}
