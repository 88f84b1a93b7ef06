package lifecycle

import (
	"bytes"
	"encoding/json"

	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
)

// verdictPayload is what an evaluator_verdict holds beyond the verdict, so that its ledger line can be written from it.
type verdictPayload struct {
	Task     string          `json:"task_id"`
	Iter     int64           `json:"iter"`
	Verdict  string          `json:"verdict"`
	Category *string         `json:"rejection_category"`
	Diff     json.RawMessage `json:"diff_summary"`
	Case     json.RawMessage `json:"case"`
}

// lastVerdict finds the last verdict where nothing shows that its ledger line was written: a process died between the two.
func lastVerdict(s *session.Session) (e record.Line, ok bool, err error) {
	_, err = s.TailRecord(func(_ int64, line []byte) (more bool) {
		e = record.Parse(bytes.Clone(line))
		switch e.Type {
		case "evaluator_verdict":
			ok = true
		case "stop", "task_done", "log_repaired", "task_failed", "hook_run": // the last by tilth-post-run, after the stop
			return true
		}
		return false
	})
	return e, ok, err
}

// settleLedger writes down the reviewer's last word if a process died between the verdict and the ledger. On disk after each
// step: the ledger line, which is found again by its task, iteration and time; then the event, and it is settled.
func (h *Handle) settleLedger() error {
	e, ok, err := lastVerdict(h.S)
	if err != nil || !ok {
		return err
	}
	var p verdictPayload
	if json.Unmarshal(e.Payload, &p) != nil || p.Task == "" {
		return nil // another writer's
	}
	entries, err := h.S.ReadLedger(p.Task, 1)
	if err != nil {
		return err
	}
	if len(entries) == 0 || entries[0].Iter != p.Iter || entries[0].TS < e.TS {
		entry := session.LedgerEntry{TS: session.FormatTime(h.Now()), Iter: p.Iter, DiffSummary: p.Diff, Case: p.Case, Verdict: verdictOf(e.Payload)}
		if err := h.S.AppendLedger(p.Task, entry); err != nil {
			return err
		}
	}
	summary := p.Verdict
	if p.Category != nil {
		summary += " (" + *p.Category + ")"
	}
	return h.Record.Append(&record.LedgerAppended{Scope: h.rolledForward(p.Task), VerdictSummary: summary})
}

// verdictOf is the verdict in an event's payload, as a ledger has it.
func verdictOf(payload json.RawMessage) json.RawMessage {
	var all, verdict map[string]json.RawMessage
	if json.Unmarshal(payload, &all) != nil {
		return nil
	}
	verdict = map[string]json.RawMessage{}
	for _, name := range []string{"verdict", "rejection_category", "concern", "evidence", "next_step"} {
		verdict[name] = all[name]
	}
	if string(all["parse_failed"]) == "true" {
		verdict["parse_failed"] = all["parse_failed"]
	}
	raw, err := json.Marshal(verdict)
	if err != nil {
		return nil
	}
	return raw
}
