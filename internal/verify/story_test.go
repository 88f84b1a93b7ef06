package verify

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestEndsThatMayBeUnwritten has processes die between the end of a task on record and prd.json.
func TestEndsThatMayBeUnwritten(t *testing.T) {
	const (
		ends   = `{"ts":"2026-06-11T22:04:10.000Z","type":"commit","payload":{"task_id":"T-001","sha":"1"}}`
		serial = `{"ts":"2026-06-11T22:04:11.000Z","type":"context_reset","payload":{"task_id":"T-002","base":"1"}}`
		lane   = `{"ts":"2026-06-11T22:04:11.000Z","type":"context_reset","payload":{"task_id":"T-002","base":"0",` +
			`"lane":true}}`
		fails  = `{"ts":"2026-06-11T22:04:12.000Z","type":"task_failed","payload":{"task_id":"T-003","reason":"iter_cap"}}`
		resume = `{"ts":"2026-06-11T22:04:13.000Z","type":"session_resume","payload":{}}`
	)
	for name, c := range map[string]struct {
		lines []string
		want  string
	}{
		"the end is the last thing":     {[]string{ends}, "T-001"},
		"the next task has begun":       {[]string{ends, serial}, ""},
		"another lane has begun":        {[]string{ends, lane}, "T-001"},
		"another lane has ended, too":   {[]string{ends, lane, fails}, "T-001 T-003"},
		"a resume has written the ends": {[]string{ends, lane, fails, resume}, ""},
	} {
		path := filepath.Join(t.TempDir(), "events.jsonl")
		if err := os.WriteFile(path, []byte(strings.Join(c.lines, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		st, err := readStory(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(st.last, " "); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
