package lifecycle

import (
	"os"
	"strings"
	"testing"

	"github.com/git-tilth/git-tilth/internal/session"
)

// Only a verdict that accepted a commit's tree makes the commit a task's work, and nothing that a worker can write.
func TestProofIsOnTheRecord(t *testing.T) {
	const (
		accepted  = `{"type":"evaluator_verdict","payload":{"task_id":"T-001","verdict":"accept","tree":"tree"}}`
		rejected  = `{"type":"evaluator_verdict","payload":{"task_id":"T-001","verdict":"reject","tree":"tree"}}`
		other     = `{"type":"evaluator_verdict","payload":{"task_id":"T-002","verdict":"accept","tree":"tree"}}`
		committed = `{"type":"commit","payload":{"task_id":"T-001","sha":"c1"}}`
		quoted    = `{"type":"tool_result","payload":{"tool":"bash","result_preview":"\"evaluator_verdict\" accept tree"}}`
	)
	for _, c := range []struct {
		name   string
		record []string
		judged bool
	}{
		{"accepted", []string{accepted, quoted}, true},
		{"rejected", []string{rejected, quoted}, false},
		{"accepted of another task", []string{other}, false},
		{"quoted in another event", []string{quoted}, false},
		{"committed, without a verdict", []string{committed}, false},
		{"empty", nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			state, err := recordOf(t, c.record...).State()
			if err != nil {
				t.Fatal(err)
			}
			st := State{Record: state}
			if got := st.judged("T-001", "tree"); got != c.judged {
				t.Errorf("judged: %v, want %v", got, c.judged)
			}
		})
	}
}

// recordOf is a session with this record, each line without its time.
func recordOf(t *testing.T, lines ...string) *session.Session {
	t.Helper()
	s := &session.Session{ID: testID, Dir: t.TempDir()}
	var record strings.Builder
	for _, line := range lines {
		record.WriteString(`{"ts":"2026-06-01T12:00:00.000Z",` + strings.TrimPrefix(line, "{") + "\n")
	}
	if err := os.WriteFile(s.Path(session.RecordFile), []byte(record.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return s
}
