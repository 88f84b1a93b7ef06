package lifecycle

import (
	"encoding/json"

	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
)

// settleLedger writes down the reviewer's last word if a process died between the verdict and the ledger. On disk after
// each step: the ledger line, which is found again by its task, iteration and time; then the event, and it is settled.
func (h *Handle) settleLedger(p Plan) error {
	v := p.history.Verdict
	if !p.history.Unledgered || v.TaskID == "" { // another writer's verdict names no task
		return nil
	}
	entries, err := h.S.ReadLedger(v.TaskID, 1)
	if err != nil {
		return err
	}
	if len(entries) == 0 || entries[0].Iter != int64(v.Iter) || entries[0].TS < p.history.VerdictTS {
		entry := session.LedgerEntry{
			TS: record.FormatTime(h.Now()), Iter: int64(v.Iter), DiffSummary: record.JSON(v.DiffSummary), Case: v.Case,
			Verdict: verdictOf(v),
		}
		if err := h.S.AppendLedger(v.TaskID, entry); err != nil {
			return err
		}
	}
	summary := v.Verdict
	if v.RejectionCategory != nil {
		summary += " (" + *v.RejectionCategory + ")"
	}
	return h.Record.Append(&record.LedgerAppended{Scope: p.rolledForward(v.TaskID), VerdictSummary: summary})
}

// verdictOf is the verdict of an event as a ledger has it.
func verdictOf(v *record.EvaluatorVerdict) json.RawMessage {
	return record.JSON(struct {
		Concern     *string  `json:"concern"`
		Evidence    []string `json:"evidence"`
		NextStep    *string  `json:"next_step"`
		ParseFailed bool     `json:"parse_failed,omitempty"`
		Category    *string  `json:"rejection_category"`
		Verdict     string   `json:"verdict"`
	}{v.Concern, v.Evidence, v.NextStep, v.ParseFailed, v.RejectionCategory, v.Verdict})
}
