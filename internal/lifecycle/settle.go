package lifecycle

import (
	"maps"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
)

// settleTasks brings prd.json and progress.txt in line with a plan: done names the commits of tasks that are done, redo
// tasks that claim to be and are not.
func (h *Handle) settleTasks(done map[string]string, redo []string) error {
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
		case t.Status == "failed", slices.Contains(redo, t.ID):
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
func (h *Handle) settleTotals(last record.History) {
	if last.TokensUsed <= h.Checkpoint.TokensUsed {
		return
	}
	h.Checkpoint.TokensUsed = last.TokensUsed
	if sum, err := h.S.Summarize(); err == nil {
		h.Checkpoint.Usage = sum.Usage
	}
}

// noteCommits writes down the commits of tasks that are done and that are not on record. What a process
// that died had not written down is at most one, the last; but a person may have set a task back.
func (x *execution) noteCommits(done map[string]string) error {
	for _, t := range slices.Sorted(maps.Keys(done)) {
		if x.out.History.Recorded(t, done[t]) {
			continue
		}
		if err := x.append(&record.Commit{Scope: x.out.rolledForward(t), SHA: done[t]}); err != nil {
			return err
		}
	}
	return nil
}

// rolledForward is the scope of an event that a process that died did not come to write. It belongs to the iteration of
// the task's last verdict.
func (p Plan) rolledForward(task string) record.Scope {
	in := record.Scope{TaskID: task}
	if v := p.History.Verdict; v != nil && v.TaskID == task { // a foreign record may have none
		in = v.Scope
	}
	in.RolledForward = true
	return in
}
