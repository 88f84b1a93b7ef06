// Package viewtest creates sessions for tests of views: an ordinary unattended run, a hostile one, and runs of any
// length.
package viewtest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/git-tilth/git-tilth/internal/session"
)

// Start is the time at which the sessions begin.
var Start = time.Date(2026, 6, 11, 22, 4, 10, 0, time.UTC)

// Writer appends events to a record, each some time after the one before.
type Writer struct {
	S   *session.Session
	Now time.Time
	out *bufio.Writer
	f   *os.File
	t   testing.TB

	lanes *[]held // waiting output; nil for none
}

// held is an event that waits for earlier events of other lanes.
type held struct {
	at   time.Time
	line string
}

// New creates an empty session in a store.
func New(t testing.TB, store session.Store) *Writer {
	t.Helper()
	s, err := store.Create(session.NewID(Start))
	if err != nil {
		t.Fatal(err)
	}
	return Open(t, s)
}

// Open continues a session's record.
func Open(t testing.TB, s *session.Session) *Writer {
	t.Helper()
	f, err := os.OpenFile(s.Path(session.RecordFile), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	w := &Writer{S: s, Now: Start, out: bufio.NewWriterSize(f, 1<<20), f: f, t: t}
	t.Cleanup(func() { f.Close() })
	return w
}

// P is a payload.
type P map[string]any

// Event appends one event, after so much time.
func (w *Writer) Event(after time.Duration, typ string, p P) {
	w.t.Helper()
	w.Now = w.Now.Add(after)
	data, err := json.Marshal(map[string]any{"ts": w.Now.Format("2006-01-02T15:04:05.000Z"), "type": typ, "payload": p})
	if err != nil {
		w.t.Fatal(err)
	}
	if w.lanes != nil {
		*w.lanes = append(*w.lanes, held{w.Now, string(data) + "\n"})
		return
	}
	w.Raw(string(data) + "\n")
}

// sideBySide writes the events of several tasks as if all started now.
func (w *Writer) sideBySide(tasks ...func(*Writer)) {
	w.t.Helper()
	begun, events := w.Now, []held{}
	w.lanes = &events
	for _, task := range tasks {
		w.Now = begun
		task(w)
	}
	w.lanes = nil
	slices.SortStableFunc(events, func(a, b held) int { return a.at.Compare(b.at) })
	for _, e := range events {
		w.Raw(e.line)
		w.Now = e.at
	}
}

// Raw appends bytes as they are.
func (w *Writer) Raw(s string) {
	if _, err := w.out.WriteString(s); err != nil {
		w.t.Fatal(err)
	}
}

// Flush puts everything on disk.
func (w *Writer) Flush() {
	w.t.Helper()
	if err := w.out.Flush(); err != nil {
		w.t.Fatal(err)
	}
}

// Close flushes and closes the record, for tests that make thousands of records.
func (w *Writer) Close() {
	w.t.Helper()
	w.Flush()
	if err := w.f.Close(); err != nil {
		w.t.Fatal(err)
	}
}

// Small fills a session with the files of a short run: a checkpoint, a plan and twenty events, the last one a stop.
func Small(w *Writer) {
	w.t.Helper()
	files := map[string]string{
		session.CheckpointFile: `{"session_id":"` + w.S.ID + `","source":"/home/ada/src/orchard","workspace":"` + w.S.Workspace() + `","branch":"` + w.S.Branch() +
			`","status":"all_done","tokens_used":41000,"usage":{"worker":{"calls":9,"prompt":40000,"eval":1000,"cost":0.08}},"started_at":"2026-06-11T22:04:10Z","conversations":{}}`,
		session.TasksFile: `[{"id":"T-001","title":"Parse durations","description":"d","acceptance_criteria":["a"],"status":"done"}]`,
	}
	for name, data := range files {
		if err := os.WriteFile(w.S.Path(name), []byte(data), 0o600); err != nil {
			w.t.Fatal(err)
		}
	}
	for i := range 19 {
		w.Event(time.Second, "model_call",
			Task("T-001", 1+i, P{"prompt_tokens": 4000, "eval_tokens": 100, "content": strings.Repeat("word ", 60)}))
	}
	w.Event(time.Second, "stop", P{"reason": "all_done"})
}

// Task returns the payload of a task's event.
func Task(id string, iter int, more P) P {
	p := P{"task_id": id, "trace_id": TraceID(id), "span_id": fmt.Sprintf("%08x%08x", len(id)*7919, iter)}
	if iter > 0 {
		p["iter"] = iter
	}
	for k, v := range more {
		p[k] = v
	}
	return p
}

// TraceID returns the trace of a task's first run.
func TraceID(id string) string {
	return fmt.Sprintf("%032x", []byte(id))[:32]
}

// Long writes n events of an ordinary mix, 450 bytes each on average, as one long
// task after another.
func (w *Writer) Long(n int) {
	w.t.Helper()
	body := strings.Repeat("the quick brown fox jumps over a lazy dog; ", 6)
	w.Event(0, "session_start", P{"phase": "run", "source": "/home/ada/src/orchard", "worker_model": "acme/large",
		"evaluator_model": "acme/judge",
		"limits": P{"max_iterations_per_task": 32, "max_tokens": 2000000000,
			"max_wall_clock_minutes": 120000}})
	for i := 1; i < n; {
		id := fmt.Sprintf("T-%03d", 1+i/4000)
		iter := 1 + i/10%400
		add := func(typ string, p P) {
			if i < n {
				w.Event(1200*time.Millisecond, typ, Task(id, iter, p))
				i++
			}
		}
		add("model_call", P{"prompt_tokens": 9000 + i%4000*5, "eval_tokens": 300 + i%200, "cached_tokens": 8000,
			"cost": 0.0123, "tokens_used_total": i * 900,
			"finish_reason": "tool_calls", "content": body[:120], "reasoning": body, "health": "ok"})
		for range 4 {
			add("tool_call", P{"tool": "read_file", "args": P{"path": "internal/orchard/tree.go", "note": body[:130]}})
			add("tool_result", P{"tool": "read_file", "result_preview": body + fmt.Sprint("needle-", i),
				"result_chars": 4000 + i})
		}
		if i%1000 < 10 {
			add("evaluator_verdict", P{"verdict": "reject", "rejection_category": "weak_test",
				"concern": "The test passes without the change.", "evidence": []string{body[:80]}})
		}
	}
	w.Flush()
}
