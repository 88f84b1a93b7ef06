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

// Tail finds events in any spelling, and leaves out superseded events.
func TestTail(t *testing.T) {
	lines := []string{
		`{"ts":"2026-06-01T12:00:00.000Z","type":"stop","payload":{"reason":"kept"}}`,
		`{"ts":"2026-06-01T12:00:00.000Z","type":"stop","payload":{"reason":"superseded"}}`,
		`{"ts":"2026-06-01T12:00:00.000Z","type":"session_rewound","payload":{"counts":77}}`,
		`{"ts":"2026-06-01T12:00:00.000Z","type":"tool_call","payload":{"text":"\"type\":\"stop\""}}`,
		`{"ts":"2026-06-01T12:00:00.000Z","type":"stopped","payload":{}}`,
		`{"ts":"2026-06-01T12:00:00.000Z","type":"tool_call","payload":{`,
		`{ "type": "stop", "payload": {"reason": "by hand"} }`,
		`{"payload":{"reason":"last"},"type":"stop"}`,
	}
	lines[2] = strings.Replace(lines[2], "77", strconv.Itoa(len(lines[0])+1), 1)
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
	if err != nil || !slices.Equal(stops, []string{"last", "by hand", "kept"}) {
		t.Errorf("%q, %v", stops, err)
	}
}
