package record_test

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/git-tilth/git-tilth/internal/record"
)

// Tail finds events in any spelling, and leaves out superseded events of the tasks that went back.
func TestTail(t *testing.T) {
	lines := []string{
		`{"ts":"2026-06-01T12:00:00.000Z","type":"stop","payload":{"reason":"kept"}}`,
		`{"ts":"2026-06-01T12:00:00.000Z","type":"stop","payload":{"task_id":"T-002","reason":"superseded"}}`,
		`{"ts":"2026-06-01T12:00:00.000Z","type":"stop","payload":{"task_id":"T-001","reason":"of another task"}}`,
		`{"ts":"2026-06-01T12:00:00.000Z","type":"session_rewound","payload":{"counts":77,"tasks":{"T-002":{}}}}`,
		`{"ts":"2026-06-01T12:00:00.000Z","type":"tool_call","payload":{"text":"\"type\":\"stop\""}}`,
		`{"ts":"2026-06-01T12:00:00.000Z","type":"stopped","payload":{}}`,
		`{"ts":"2026-06-01T12:00:00.000Z","type":"tool_call","payload":{`,
		`{ "type": "stop", "payload": {"reason": "by hand"} }`,
		`{"payload":{"reason":"last"},"type":"stop"}`,
	}
	lines[3] = strings.Replace(lines[3], "77", strconv.Itoa(len(lines[0])+1), 1)
	path := filepath.Join(t.TempDir(), "events.jsonl")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var stops []string
	_, err := record.Tail(path, func(l record.Line) bool {
		if stop, is := l.Event().(*record.Stop); is {
			stops = append(stops, stop.Reason)
		}
		return true
	})
	if err != nil || !slices.Equal(stops, []string{"last", "by hand", "of another task", "kept"}) {
		t.Errorf("%q, %v", stops, err)
	}
}
