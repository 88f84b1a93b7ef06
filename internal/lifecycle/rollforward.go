package lifecycle

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
)

// commitAccepted commits a tree that was accepted before the process died. The repo's hooks run, as they would
// have. If one refuses or changes the tree, or if the files are not what was judged any more (a hook died half-way, a
// person edited them), the task is simply not done yet and its work is in the index: what differs from the accepted
// tree would be taken for work of the next task.
func (h *Handle) commitAccepted(live context.Context, wt gitx.Worktree, p Plan) (Plan, error) {
	ctx := quiet(live)
	a := p.CommitTree
	if a == nil {
		return p, nil
	}
	tasks, err := h.S.Tasks()
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
		// Somebody took the work away; it is in the repository still.
		if err := h.Git.ReadTreeIntoFiles(ctx, wt, a.Tree); err != nil {
			return p, err
		}
	default:
		return giveUp(), nil
	}
	if !a.Noted {
		if err := h.Record.Append(&record.TaskDone{Scope: h.rolledForward(a.Task), Summary: a.Summary}); err != nil {
			return p, err
		}
	}
	sha, err := h.CommitTask(live, wt, tasks[i], a.Summary, a.Tree, a.Base)
	var refused *gitx.HookRefusedError
	var changed *TreeChangedError
	switch {
	case errors.As(err, &refused):
		p.Refused = &HookRefusal{Task: a.Task, Output: refused.Output}
		run := RefusedBy(refused.Output)
		run.Scope = h.rolledForward(a.Task)
		return giveUp(), h.Record.Append(run)
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
func (h *Handle) onRecord(task, sha string) (found bool, err error) {
	_, err = h.S.TailRecord(func(_ int64, line []byte) (more bool) {
		if !mentions(line, `"commit"`, `"evaluator_verdict"`) {
			return true
		}
		e := record.Parse(line)
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
func (h *Handle) noteCommits(p Plan) error {
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
		if err := h.Record.Append(&record.Commit{Scope: h.rolledForward(t), SHA: sha}); err != nil {
			return err
		}
	}
	return nil
}

// rolledForward is the scope of an event that a process that died did not come to write. It belongs to the iteration of
// the task's last verdict.
func (h *Handle) rolledForward(task string) record.Scope {
	in := record.Scope{TaskID: task, RolledForward: true}
	l, ok, err := h.S.LastEvent("evaluator_verdict")
	if verdict := l.Scope(); err == nil && ok && verdict.TaskID == task { // a foreign record may have none
		in.TraceID, in.SpanID, in.Iter = verdict.TraceID, verdict.SpanID, verdict.Iter
	}
	return in
}
