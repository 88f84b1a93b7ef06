package held

import (
	"encoding/json"

	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
)

// AppendVerdict writes a verdict into the ledger of its task, with what must not be on the record taken out.
func (h *Handle) AppendVerdict(v *record.EvaluatorVerdict) error {
	return h.S.AppendLedger(v.TaskID, h.VerdictEntry(record.FormatTime(h.Now()), v))
}

// VerdictEntry is a verdict as a line of the ledger.
func (h *Handle) VerdictEntry(ts string, v *record.EvaluatorVerdict) session.LedgerEntry {
	clean := func(part any) json.RawMessage { return h.Redact.JSON(record.JSON(part)) }
	return session.LedgerEntry{
		TS: ts, Iter: int64(v.Iter), DiffSummary: clean(v.DiffSummary), Case: clean(v.Case),
		Verdict: clean(struct {
			Verdict     string   `json:"verdict"`
			Category    *string  `json:"rejection_category"`
			Concern     *string  `json:"concern"`
			Evidence    []string `json:"evidence"`
			NextStep    *string  `json:"next_step"`
			ParseFailed bool     `json:"parse_failed,omitempty"`
		}{v.Verdict, v.RejectionCategory, v.Concern, v.Evidence, v.NextStep, v.ParseFailed}),
	}
}

// AppendNote writes a person's note into the ledger of a task.
func (h *Handle) AppendNote(s *session.Session, ts, task, note string) error {
	return s.AppendLedger(task, NoteEntry(ts, h.Redact.String(note)))
}

// NoteEntry is a person's note as a line of the ledger.
func NoteEntry(ts, note string) session.LedgerEntry {
	none := json.RawMessage(`{}`)
	return session.LedgerEntry{TS: ts, DiffSummary: json.RawMessage(`""`), Case: none, Verdict: none, Note: note}
}

// LedgerAppended is the event that follows a verdict's line in the ledger.
func LedgerAppended(v *record.EvaluatorVerdict) *record.LedgerAppended {
	e := &record.LedgerAppended{VerdictSummary: v.Verdict}
	if v.RejectionCategory != nil {
		e.VerdictSummary += " (" + *v.RejectionCategory + ")"
	}
	return e
}
