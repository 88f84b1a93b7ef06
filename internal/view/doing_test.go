package view

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/git-tilth/git-tilth/internal/record"
)

func TestDoing(t *testing.T) {
	for args, want := range map[string]string{
		`{"file_path":"/s/workspace/src/calc.py","old_string":"x"}`: "Edit src/calc.py for 5s",
		`{"path":"calc.py"}`:                     "Edit calc.py for 5s",
		`{"command":"make\ntest"}`:               "Edit make test for 5s",
		`[{"path":"/w/a/b.go","kind":"update"}]`: "Edit a/b.go for 5s",
		`{"title":"a\u0007b"}`:                   `Edit a␇b for 5s`,
		`{"title":"t","input":{"command":"ls"}}`: "Edit ls for 5s",
		`"garbled"`:                              "Edit for 5s",
	} {
		d := Doings{}
		d.Feed(record.Parse(fmt.Appendf(nil,
			`{"ts":"2026-01-01T00:00:00Z","type":"tool_call","payload":{"tool":"Edit","args":%s}}`, args)))
		d.Feed(record.Parse([]byte(`{"ts":"2026-01-01T00:00:03Z","type":"tool_result","payload":{}}`)))
		now := time.Date(2026, 1, 1, 0, 0, 5, 0, time.UTC)
		if got := d.Text(now, 0); got != want {
			t.Errorf("%s: %q, want %q", args, got, want)
		}
		if got := d.Text(now, 12); Width(got) > 12 || !strings.HasSuffix(got, " for 5s") {
			t.Errorf("%s: %q", args, got)
		}
		d.Feed(record.Parse([]byte(`{"ts":"2026-01-01T00:00:04Z","type":"model_call","payload":{}}`)))
		if d.Text(time.Now(), 0) != "" {
			t.Error("it goes on after the turn")
		}
	}
}

// An event of one lane does not change the activity of another one; the end of a run ends all.
func TestDoings(t *testing.T) {
	d, now := Doings{}, time.Date(2026, 1, 1, 0, 0, 5, 0, time.UTC)
	feed := func(typ, payload string) {
		d.Feed(record.Parse(fmt.Appendf(nil, `{"ts":"2026-01-01T00:00:00Z","type":%q,"payload":%s}`, typ, payload)))
	}
	feed("tool_call", `{"task_id":"T-002","tool":"bash","args":{"command":"make test"}}`)
	feed("tool_call", `{"task_id":"T-001","tool":"Edit","args":{"path":"a.go"}}`)
	feed("tool_result", `{"task_id":"T-002"}`)
	if got := d.Text(now, 0); got != "T-001 Edit a.go for 5s, T-002 bash make test for 5s" {
		t.Errorf("%q", got)
	}
	if got := d.Text(now, 40); Width(got) > 40 {
		t.Errorf("%q is %d wide", got, Width(got))
	}
	feed("model_call", `{"task_id":"T-001"}`)
	if got := d.Text(now, 0); got != "bash make test for 5s" {
		t.Errorf("%q", got)
	}
	feed("stop", `{"reason":"interrupted"}`)
	if got := d.Text(now, 0); got != "" {
		t.Errorf("%q", got)
	}
}
