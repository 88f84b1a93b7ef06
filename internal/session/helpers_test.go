package session

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/record"
)

var testNow = time.Date(2026, 6, 1, 10, 20, 30, 456e6, time.UTC)

const testID = "20260601-102030-abcdef"

// newSession creates a session in a new store.
func newSession(t testing.TB) *Session {
	t.Helper()
	s, err := Store{Root: filepath.Join(t.TempDir(), "sessions")}.Create(testID)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t testing.TB, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func openRecord(t testing.TB, s *Session, opts record.Options) *record.Record {
	t.Helper()
	if opts.Clock == nil {
		opts.Clock = func() time.Time { return testNow }
	}
	r, err := s.OpenRecord(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// sameJSON reports whether two JSON texts have the same values.
func sameJSON(a, b []byte) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// p is a payload.
type p = map[string]any

// event is an event with any payload.
func event(typ string, payload p) record.Event {
	if payload == nil {
		payload = p{}
	}
	return &record.Unknown{Type: typ, Payload: record.JSON(payload)}
}

// scanned returns the lines of a scan.
func scanned(t testing.TB, path string) (lines []string, end int64, skipped int) {
	t.Helper()
	end, skipped, err := jsonl.Scan(path, 0, func(_ int64, line []byte) error {
		lines = append(lines, string(line))
		return nil
	})
	must(t, err)
	return lines, end, skipped
}
