package lifecycle

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
)

// settleTasks brings prd.json and progress.txt in line with a plan: done names the commits of tasks that are done, redo a task
// that claims to be and is not.
func (h *Handle) settleTasks(done map[string]string, redo string) error {
	if h.Git.IsDryRun() {
		return nil
	}
	tasks, err := h.S.Tasks()
	if err != nil {
		return err
	}
	changed := false
	for i := range tasks {
		t := &tasks[i]
		switch {
		case done[t.ID] != "":
			t.Status, changed = "done", true
		case t.Status == "failed", t.ID == redo:
			t.Status, changed = "pending", true
		}
	}
	if changed {
		if err := h.S.SaveTasks(tasks); err != nil {
			return err
		}
	}
	return h.settleProgress(tasks)
}

// settleProgress adds the lines that a process that died had no time for: progress.txt comes after prd.json.
func (h *Handle) settleProgress(tasks []session.Task) error {
	lines, err := h.S.ProgressTail(0)
	if err != nil {
		return err
	}
	for _, t := range tasks {
		isDone := func(line string) bool { return strings.HasPrefix(line, t.ID+"\tdone\t") }
		if t.Status != "done" || slices.ContainsFunc(lines, isDone) {
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
func (h *Handle) settleTotals() {
	e, ok, err := h.S.LastEvent("model_call")
	if err != nil || !ok {
		return
	}
	if call, isCall := e.Event().(*record.ModelCall); isCall && call.TokensUsedTotal > h.Checkpoint.TokensUsed {
		h.Checkpoint.TokensUsed = call.TokensUsedTotal
		if sum, err := h.S.Summarize(); err == nil {
			h.Checkpoint.Usage = sum.Usage
		}
	}
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
func (h *Handle) noteCommits(done map[string]string) error {
	if h.Git.IsDryRun() {
		return nil
	}
	for _, t := range slices.Sorted(maps.Keys(done)) {
		sha := done[t]
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
