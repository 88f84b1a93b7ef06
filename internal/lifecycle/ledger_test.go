package lifecycle

import (
	"os"
	"strings"
	"testing"

	"github.com/git-tilth/git-tilth/internal/session"
)

func TestLastVerdictWithoutItsLedgerLine(t *testing.T) {
	for events, want := range map[string]bool{
		"evaluator_verdict":                              true,
		"evaluator_verdict ledger_appended":              false,
		"evaluator_verdict log_repaired":                 true,
		"evaluator_verdict stop":                         true,
		"evaluator_verdict stop hook_run":                true, // tilth-post-run comes after the stop
		"evaluator_verdict ledger_appended task_done":    false,
		"evaluator_verdict ledger_appended model_call":   false,
		"evaluator_verdict stop session_resume":          false, // a resume has settled it
		"evaluator_verdict ledger_appended log_repaired": false,
		"context_reset":                                  false,
		"":                                               false,
	} {
		s := &session.Session{ID: testID, Dir: t.TempDir()}
		var record strings.Builder
		for typ := range strings.FieldsSeq(events) {
			record.WriteString(`{"ts":"2026-06-01T12:00:00.000Z","type":"` + typ + `","payload":{"task_id":"T-001"}}` + "\n")
		}
		if err := os.WriteFile(s.Path(session.RecordFile), []byte(record.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		e, ok, err := lastVerdict(s)
		if err != nil || ok != want || ok && e.Type != "evaluator_verdict" {
			t.Errorf("%q: %v %v %v", events, e.Type, ok, err)
		}
	}
}
