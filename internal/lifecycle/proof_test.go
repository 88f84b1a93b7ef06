package lifecycle

import (
	"os"
	"strings"
	"testing"

	"github.com/git-tilth/git-tilth/internal/session"
)

// A commit is a task's work by a verdict of that task which accepted its tree, and by nothing that a worker can write.
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
		judged string
	}{
		{"accepted", []string{accepted, quoted}, "c1"},
		{"rejected", []string{rejected, quoted}, ""},
		{"accepted of another task", []string{other}, ""},
		{"quoted in another event", []string{quoted}, ""},
		{"committed, without a verdict", []string{committed}, ""},
		{"empty", nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			commit := doneBy(testID, "T-001")
			commit.Tree = "tree"
			state := State{SessionID: testID, SeedKnown: true, Tasks: tasks("pending", "pending"),
				Commits: chain(commit)}
			judged, err := readProof(recordOf(t, c.record...), state.claims())
			if err != nil {
				t.Fatal(err)
			}
			if judged["c1"] != (c.judged == "c1") {
				t.Errorf("judged: %v, want %q", judged, c.judged)
			}
		})
	}
}

// What is looked up in the record is what trailers claim and nothing else settles: an ordinary resume looks up nothing.
func TestClaims(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*State)
		want   string
	}{
		{"all that is there is done", func(s *State) {
			s.Tasks, s.Commits = tasks("done", "done"), chain(doneBy(testID, "T-002"), doneBy(testID, "T-001"))
		}, ""},
		{"a failed task's placeholder", func(s *State) {
			s.Tasks, s.Commits = tasks("done", "failed"), chain(failedBy(testID, "T-002"), doneBy(testID, "T-001"))
		}, ""},
		{"a task that is not done", func(s *State) { s.Commits = chain(doneBy(testID, "T-001")) }, "c1"},
		{"another session's", func(s *State) { s.Commits = chain(doneBy(otherID, "T-001")) }, ""},
		{"Python Tilth's", func(s *State) { s.Foreign, s.Commits = true, chain(plain("T-001: Title")) }, ""},
	} {
		state := State{SessionID: testID, SeedKnown: true, Tasks: tasks("pending", "pending")}
		c.change(&state)
		var got []string
		for _, claim := range state.claims() {
			got = append(got, claim.sha)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %v, want %q", c.name, got, c.want)
		}
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
