package lifecycle

import (
	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
)

// settleLedgers rewrites the ledgers that differ from the record, and completes a ledger after a kill between the
// verdict and its line. The state on disk after each step: the ledger; then ledger_appended or log_repaired. The
// inherited ledgers of a fork stay, because its record does not have them.
func settleLedgers(h *held.Handle, p Plan) error {
	state, err := h.S.State()
	if err != nil {
		return err
	}
	tasks, err := h.S.StoredTasks()
	if err != nil {
		return err
	}
	for _, t := range tasks {
		of := state.Tasks[t.ID]
		if of.Shared {
			continue
		}
		entries, err := h.S.RecordedLedger(of.Ledger)
		if err != nil {
			return err
		}
		anew, err := h.S.SettleLedger(t.ID, entries)
		switch {
		case err != nil:
			return err
		case of.Attempt.Unledgered:
			appended := held.LedgerAppended(of.Attempt.Verdict)
			appended.Scope = p.rolledForward(t.ID)
			err = h.Record.Append(appended)
		case anew:
			err = h.Append(&record.LogRepaired{File: session.LedgerDir + "/" + t.ID + ".jsonl",
				Why: "did not match the verdicts on record", Done: "rewritten"})
		}
		if err != nil {
			return err
		}
	}
	return nil
}
