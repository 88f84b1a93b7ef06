package held

import (
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
)

// AppendVerdict writes a verdict into the ledger of its task, with secrets redacted.
func (h *Handle) AppendVerdict(v *record.EvaluatorVerdict) error {
	e := session.EntryOf(record.FormatTime(h.Now()), v)
	e.DiffSummary = h.Redact.String(e.DiffSummary)
	e.Case, e.Verdict = h.Redact.JSON(e.Case), h.Redact.JSON(e.Verdict)
	return h.S.AppendLedger(v.TaskID, e)
}

// AppendNote writes a person's note into the ledger of a task.
func (h *Handle) AppendNote(s *session.Session, ts, task, note string) error {
	return s.AppendLedger(task, session.NoteEntry(ts, h.Redact.String(note)))
}

// LedgerAppended is the event that follows a verdict's line in the ledger.
func LedgerAppended(v *record.EvaluatorVerdict) *record.LedgerAppended {
	e := &record.LedgerAppended{VerdictSummary: v.Verdict}
	if v.RejectionCategory != nil {
		e.VerdictSummary += " (" + *v.RejectionCategory + ")"
	}
	return e
}

// SaveTasks replaces prd.json and notes the statuses in the checkpoint, which is saved after it. If the process dies
// between the two, prd.json agrees with the record.
func (h *Handle) SaveTasks(tasks []session.Task) error {
	if err := h.S.SaveTasks(tasks); err != nil {
		return err
	}
	h.NoteStatuses(tasks)
	return nil
}

// NoteStatuses notes the tasks' statuses in the checkpoint.
func (h *Handle) NoteStatuses(tasks []session.Task) {
	h.Checkpoint.Statuses = map[string]string{}
	for _, t := range tasks {
		h.Checkpoint.Statuses[t.ID] = t.Status
	}
}

// SettleTotals makes the checkpoint's totals those of the record: a run that died did not come to write its checkpoint.
func (h *Handle) SettleTotals() error {
	sum, err := h.S.Summarize()
	if err == nil {
		h.Checkpoint.SetTotals(sum)
	}
	return err
}
