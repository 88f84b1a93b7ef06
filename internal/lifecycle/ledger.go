package lifecycle

import (
	"encoding/json"

	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
)

// settleLedger writes down the reviewer's last word if a process died between the verdict and the ledger. On disk after
// each step: the ledger line, which is found again by its task, iteration and time; then the event, and it is settled.
func (h *Handle) settleLedger(p Plan) error {
	v := p.History.Verdict
	if !p.History.Unledgered || v.TaskID == "" { // another writer's verdict names no task
		return nil
	}
	entries, err := h.S.ReadLedger(v.TaskID, 1)
	if err != nil {
		return err
	}
	n := len(entries) - 1 // before it may stand a person's note
	if n < 0 || entries[n].Iter != int64(v.Iter) || entries[n].TS < p.History.VerdictTS {
		if err := h.AppendVerdict(v); err != nil {
			return err
		}
	}
	appended := LedgerAppended(v)
	appended.Scope = p.rolledForward(v.TaskID)
	return h.Record.Append(appended)
}

// AppendVerdict writes a verdict into the ledger of its task, with what must not be on the record taken out.
func (h *Handle) AppendVerdict(v *record.EvaluatorVerdict) error {
	clean := func(part any) json.RawMessage { return h.Redact.JSON(record.JSON(part)) }
	return h.S.AppendLedger(v.TaskID, session.LedgerEntry{
		TS: record.FormatTime(h.Now()), Iter: int64(v.Iter), DiffSummary: clean(v.DiffSummary), Case: clean(v.Case),
		Verdict: clean(struct {
			Verdict     string   `json:"verdict"`
			Category    *string  `json:"rejection_category"`
			Concern     *string  `json:"concern"`
			Evidence    []string `json:"evidence"`
			NextStep    *string  `json:"next_step"`
			ParseFailed bool     `json:"parse_failed,omitempty"`
		}{v.Verdict, v.RejectionCategory, v.Concern, v.Evidence, v.NextStep, v.ParseFailed}),
	})
}

// appendNote writes a person's note into the ledger of a task.
func (h *Handle) appendNote(s *session.Session, ts, task, note string) error {
	none := json.RawMessage(`{}`)
	return s.AppendLedger(task, session.LedgerEntry{TS: ts, DiffSummary: json.RawMessage(`""`), Case: none,
		Verdict: none, Note: h.Redact.String(note)})
}

// LedgerAppended is the event that follows a verdict's line in the ledger.
func LedgerAppended(v *record.EvaluatorVerdict) *record.LedgerAppended {
	e := &record.LedgerAppended{VerdictSummary: v.Verdict}
	if v.RejectionCategory != nil {
		e.VerdictSummary += " (" + *v.RejectionCategory + ")"
	}
	return e
}
