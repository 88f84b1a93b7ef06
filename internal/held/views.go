package held

import (
	"reflect"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
)

// Views are the files that are written from the record, for users and other tools: the statuses in prd.json,
// progress.txt, the ledgers, and the status in checkpoint.json. No decision reads them, except a status that the user
// set in prd.json (session.ByHand). They are written again after a power cut.

// WriteViews writes the plan with the statuses of the record, progress.txt and the checkpoint. If the process dies
// between prd.json and the checkpoint, which has the statuses too, prd.json agrees with the record.
func (h *Handle) WriteViews(plan []session.Task) error {
	return h.Change(func() error {
		state, err := h.S.State()
		if err != nil {
			return err
		}
		plan = slices.Clone(plan)
		for i := range plan {
			plan[i].Status = state.StatusOf(plan[i].ID)
		}
		stored, err := h.S.StoredTasks()
		if err != nil || h.Checkpoint.Statuses == nil || !reflect.DeepEqual(stored, plan) {
			err = h.S.SaveTasks(plan)
		}
		if err == nil {
			h.noteStatuses(plan)
			err = h.S.WriteProgress(ProgressLines(state, plan))
		}
		if err != nil {
			return err
		}
		if state.Seed != nil {
			h.Checkpoint.Status = state.SessionStatus()
		}
		return h.S.SaveCheckpoint(h.Checkpoint)
	})
}

// ProgressLines returns the ends of attempts at a plan's tasks. A done task has one line.
func ProgressLines(state *record.State, plan []session.Task) (lines []string) {
	for _, end := range state.Progress {
		if i := session.IndexOf(plan, end.Task); i >= 0 {
			lines = append(lines, session.ProgressLine(end.Task, end.As, plan[i].Title))
		}
	}
	for _, t := range plan {
		isDone := func(line string) bool { return strings.HasPrefix(line, t.ID+"\tdone\t") }
		switch {
		case t.Status != session.TaskDone:
			lines = slices.DeleteFunc(lines, isDone)
		case !slices.ContainsFunc(lines, isDone):
			lines = append(lines, session.ProgressLine(t.ID, session.TaskDone, t.Title))
		}
	}
	return lines
}

// noteStatuses notes the tasks' statuses in the checkpoint.
func (h *Handle) noteStatuses(tasks []session.Task) {
	h.Checkpoint.Statuses = map[string]string{}
	for _, t := range tasks {
		h.Checkpoint.Statuses[t.ID] = t.Status
	}
}

// WriteLedger writes a task's ledger, and reports whether it differed from the record. A ledger that began in another
// record keeps its entries.
func (h *Handle) WriteLedger(task string) (changed bool, err error) {
	state, err := h.S.State()
	if err != nil {
		return false, err
	}
	return h.S.WriteLedger(task, state.Tasks[task])
}

// LedgerAppended returns the event that follows a verdict's line in the ledger.
func LedgerAppended(v *record.EvaluatorVerdict) *record.LedgerAppended {
	e := &record.LedgerAppended{VerdictSummary: v.Verdict}
	if v.RejectionCategory != nil {
		e.VerdictSummary += " (" + *v.RejectionCategory + ")"
	}
	return e
}
