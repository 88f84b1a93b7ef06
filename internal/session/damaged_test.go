package session

import (
	"bytes"
	"testing"

	"github.com/git-tilth/git-tilth/internal/record"
)

// FuzzDamagedFiles replaces a session's files with random bytes: views report the damage and continue.
func FuzzDamagedFiles(f *testing.F) {
	f.Add([]byte(`{"version":1,"tasks":{"T-001":null},"mark":{"offset":0},"iterations":[1]}`))
	f.Add([]byte(`{"version":1,"tasks":{"T-001":{"evaluator":null,"usage":[]}},"mark":{"offset":0}}`))
	f.Add([]byte(`[{"id":"T-001","depends_on":{"a":1},"title":["x"]},null,7]`))
	f.Add([]byte(`{"ts":"2026-01-01T00:00:00Z","type":"stop","payload":{"reason":7,"seconds":"x","failed_tasks":3}}` + "\n"))
	f.Add([]byte(`{"pid":1e99,"host":"\u001b[2J","since":{}}`))
	s := newSession(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, name := range []string{CheckpointFile, TasksFile, RecordFile, SummaryFile, SeedMetaFile, LockFile,
			"ledger/T-001.jsonl", "conversation/T-001.jsonl"} {
			write(t, s.Path(name), string(data))
		}
		shown := s.Overview()
		for _, problem := range shown.Problems {
			if problem == "" {
				t.Error("a problem without words")
			}
		}
		_, _ = s.SeedMeta()
		_, _ = s.ReadLedger("T-001", 3)
		if _, err := s.ReadTranscript(record.RoleWorker, "T-001"); err != nil && len(bytes.TrimSpace(data)) == 0 {
			t.Error(err)
		}
		_, _ = s.Summarize()
		s.Holder()
	})
}
