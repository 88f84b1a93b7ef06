package verify

import (
	"os"
	"path/filepath"
	"testing"
)

// TestEndsThatMayBeUnwritten has processes die between the record and prd.json.
func TestEndsThatMayBeUnwritten(t *testing.T) {
	event := func(typ, payload string) string {
		return `{"ts":"2026-06-11T22:04:10.000Z","type":"` + typ + `","payload":` + payload + "}\n"
	}
	ends, stop := event("commit", `{"task_id":"T-001","sha":"1"}`), event("stop", `{"reason":"iter_cap"}`)
	for record, want := range map[string]bool{
		ends:        true,
		ends + stop: false,
		ends + stop + event("task_marked", `{"task_id":"T-001","mark":"skipped"}`): true,
		ends + event("stop", `{"reason":"interrupted"}`):                           true,
	} {
		path := filepath.Join(t.TempDir(), "events.jsonl")
		if err := os.WriteFile(path, []byte(record), 0o600); err != nil {
			t.Fatal(err)
		}
		st, err := readStory(path)
		if err != nil || st.cut() != want {
			t.Errorf("%s: %v, %v", record, st.cut(), err)
		}
	}
}
