package session

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// BenchmarkOverview10000 measures list at 10,000 sessions of 8 tasks with records of 40 KB. In the filtered variant
// half of them belong to another repository.
func BenchmarkOverview10000(b *testing.B) {
	st := manySessions(b, 10_000)
	run := func(wanted func(*Session, string, string, string) bool, want int) func(*testing.B) {
		return func(b *testing.B) {
			for b.Loop() {
				ids, err := st.IDs()
				if err != nil {
					b.Fatal(err)
				}
				if got := st.Overview(ids, wanted); len(got) != want {
					b.Fatalf("%d sessions, want %d", len(got), want)
				}
			}
		}
	}
	b.Run("all", run(nil, 10_000))
	b.Run("filtered",
		run(func(_ *Session, source, _, _ string) bool { return source == "/home/u/repo0" }, 5_000))
}

// manySessions writes plausible sessions by hand, without the fsyncs of real ones, but with the roll-up of the record.
func manySessions(tb testing.TB, n int) Store {
	tb.Helper()
	st := Store{Root: tb.TempDir()}
	filler := strings.Repeat(`{"ts":"2026-06-01T10:00:00.000Z","type":"tool_result","payload":{"task_id":"T-001","iter":1,"result_preview":"`+
		strings.Repeat("x", 180)+`"}}`+"\n", 160)
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range n {
		id := start.Add(time.Duration(i)*time.Minute).Format(idLayout) + fmt.Sprintf("-%06x", i)
		s := st.session(id)
		status, stop := AllDone, "all_done"
		switch i % 5 {
		case 1:
			status, stop = Failed, "iter_cap"
		case 2:
			status, stop = Running, "wall_clock"
		}
		var tasks []string
		for t := range 8 {
			tasks = append(tasks, fmt.Sprintf(`  {"id": "T-%03d", "title": "do thing %d", "description": %q, "acceptance_criteria": ["it works", "it is tested"], "status": "done"}`,
				t+1, t, strings.Repeat("why and how ", 20)))
		}
		checkpoint := fmt.Sprintf(`{
  "session_id": %q, "source": "/home/u/repo%d", "workspace": %q, "branch": "session/%s", "status": %q, "tokens_used": 123456,
  "usage": {"worker": {"calls": 20, "prompt": 100000, "eval": 20000, "cost": 0.5}, "evaluator": {"calls": 3, "prompt": 3000, "eval": 456, "cost": 0.1}},
  "started_at": "2026-06-01T10:00:00.000Z", "conversations": {}
}`, id, i%2, s.Workspace(), id, status)
		record := filler + fmt.Sprintf(`{"ts":"2026-06-01T10:20:00.000Z","type":"stop","payload":{"reason":%q}}`+"\n", stop)
		if err := os.Mkdir(s.Dir, 0o700); err != nil {
			tb.Fatal(err)
		}
		for name, text := range map[string]string{
			CheckpointFile: checkpoint, TasksFile: "[\n" + strings.Join(tasks, ",\n") + "\n]\n", RecordFile: record,
			LockFile: "",
		} {
			if err := os.WriteFile(filepath.Join(s.Dir, name), []byte(text), 0o600); err != nil {
				tb.Fatal(err)
			}
		}
		if err := s.WriteSummary(); err != nil {
			tb.Fatal(err)
		}
	}
	return st
}
