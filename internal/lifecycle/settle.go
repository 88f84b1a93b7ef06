package lifecycle

import (
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
)

// settlePlan brings prd.json and progress.txt in line with the plan.
func (h *Handle) settlePlan(p Plan) error {
	tasks, err := h.S.Tasks()
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
		if err := h.S.SaveTasks(tasks); err != nil {
			return err
		}
	}
	return h.settleProgress(tasks)
}

// settleProgress adds the lines that a process that died had no time for: progress.txt comes after prd.json.
func (h *Handle) settleProgress(tasks []session.Task) error {
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
