package view

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"

	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/view/viewtest"
)

func logOf(t *testing.T, s *session.Session, o LogOptions) string {
	t.Helper()
	var b bytes.Buffer
	if _, err := Log(context.Background(), &b, s, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// fieldsOf returns one field of each line of a log in a pipe.
func fieldsOf(log string, n int) string {
	var out []string
	for line := range strings.Lines(log) {
		out = append(out, strings.Split(strings.TrimSuffix(line, "\n"), "\t")[n])
	}
	return strings.Join(out, " ")
}

func TestLog(t *testing.T) {
	s := story(t)
	const want = "2026-06-12T06:10:26.771Z\tT-003/12\ttask_failed\tFAILED: iter_cap\n" +
		"2026-06-12T06:10:26.821Z\tT-003/12\tcommit\tdone, commit fa11ed0000\n" +
		"2026-06-12T06:10:27.821Z\t\tstop\titer_cap\n"
	if got := logOf(t, s, LogOptions{Tail: 3}); got != want {
		t.Errorf("the tail is\n%s\nwant\n%s", got, want)
	}
	if got := fieldsOf(logOf(t, s, LogOptions{Type: "evaluator_verdict"}),
		1); got != "T-001/3 T-001/5 T-002/6 T-003/4 T-003/8 T-003/12" {
		t.Errorf("verdicts: %s", got)
	}
	if got := fieldsOf(logOf(t, s, LogOptions{Type: "evaluator_verdict", Task: "T-003", Tail: 2}),
		1); got != "T-003/8 T-003/12" {
		t.Errorf("the last verdicts on T-003: %s", got)
	}
	data, err := os.ReadFile(s.Path(session.RecordFile))
	if err != nil {
		t.Fatal(err)
	}
	if got := logOf(t, s, LogOptions{Terminal: Terminal{JSON: true}}); got != string(data) {
		t.Error("--json is not the record's own lines")
	}
}

// A resume after a kill has no stop to name.
func TestLogOfAResume(t *testing.T) {
	w := viewtest.New(t, session.Store{Root: t.TempDir()})
	w.Event(0, "session_resume", viewtest.P{"last_stop": "wall_clock", "plan": "1 task to do"})
	w.Event(0, "session_resume", viewtest.P{"last_stop": nil, "plan": "2 tasks to do"})
	w.Close()
	want := []string{"after wall_clock: 1 task to do", "2 tasks to do"}
	got := logOf(t, w.S, LogOptions{})
	for i, line := range strings.Split(strings.TrimSpace(got), "\n") {
		if i >= len(want) || !strings.HasSuffix(line, "\t"+want[i]) {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestLogOnTerminal(t *testing.T) {
	time.Local = time.UTC
	w := viewtest.New(t, session.Store{Root: t.TempDir()})
	w.Event(0, "model_call",
		viewtest.Task("T-001", 2, viewtest.P{"prompt_tokens": 12345, "eval_tokens": 67, "cost": 0.25,
			"content": "First \x1b]0;x\x07line\nsecond\u202e and a lot more text than one line of a terminal can " +
				"hold"}))
	w.Event(0, "evaluator_verdict",
		viewtest.Task("T-001", 2, viewtest.P{"verdict": "reject", "rejection_category": "weak_test", "concern": "No."}))
	w.Event(0, "validator_run",
		viewtest.Task("T-001", 2, viewtest.P{"passed": false,
			"results": []viewtest.P{{"name": "go vet", "passed": true}, {"name": "go test", "passed": false}}}))
	w.Event(0, "odd \x1b[2J type", viewtest.P{"a": 1, "b": "x\ty"})
	w.Flush()
	want := "22:04:10  T-001/2   model_call         worker  12.3k → 67  $0.25  First ␛]0;x␇line …\n" +
		"22:04:10  T-001/2   evaluator_verdict  reviewer: reject (weak_test): No.\n" +
		"22:04:10  T-001/2   validator_run      validators failed: go vet ok, go test FAILED\n" +
		"22:04:10            odd ␛[2J type      a=1  b=x y\n"
	if got := logOf(t, w.S, LogOptions{Terminal: Terminal{TTY: true, Width: 84}}); got != want {
		t.Errorf("the log is\n%s\nwant\n%s", got, want)
	}
	colored := logOf(t, w.S, LogOptions{Terminal: Terminal{TTY: true, Color: true, Width: 84}})
	if !strings.Contains(colored, "\x1b[33mevaluator_verdict \x1b[0m") ||
		!strings.Contains(colored, "\x1b[31mvalidator_run     \x1b[0m") || strings.Contains(colored, "\x1b]0;") {
		t.Errorf("in colour: %q", colored)
	}
}

func TestLogCountsWhatItSkips(t *testing.T) {
	w := viewtest.New(t, session.Store{Root: t.TempDir()})
	viewtest.HostileRecord(w)
	var b bytes.Buffer
	skipped, err := Log(context.Background(), &b, w.S,
		LogOptions{Terminal: Terminal{TTY: true, Color: true, Width: 80}})
	if err != nil || skipped < 5 {
		t.Errorf("%d lines skipped, %v", skipped, err)
	}
	for line := range strings.Lines(b.String()) {
		plain := strings.NewReplacer("\x1b[0m", "", "\x1b[1m", "", "\x1b[2m", "", "\x1b[31m", "", "\x1b[32m", "",
			"\x1b[33m", "", "\x1b[34m", "", "\x1b[35m", "", "\x1b[36m", "").Replace(line)
		if strings.ContainsAny(plain, "\x1b\x00\x07\r\u202e\u009b") {
			t.Fatalf("a line can harm a terminal: %q", line)
		}
	}
}

// lineWriter hands out the lines that were written to it.
type lineWriter struct {
	mu   sync.Mutex
	buf  bytes.Buffer
	line chan string
}

func newLineWriter() *lineWriter { return &lineWriter{line: make(chan string, 1000)} }

func (w *lineWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.buf.Write(p)
	for {
		line, err := w.buf.ReadString('\n')
		if err == io.EOF {
			w.buf.WriteString(line)
			return len(p), nil
		}
		w.line <- strings.TrimSuffix(line, "\n")
	}
}

// expect waits for the next lines and compares their last fields.
func (w *lineWriter) expect(t *testing.T, want ...string) {
	t.Helper()
	for _, text := range want {
		select {
		case got := <-w.line:
			if f := strings.Split(got, "\t"); f[len(f)-1] != text {
				t.Fatalf("the next line is %q, want %q", got, text)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("no line came, want %q", text)
		}
	}
}

// Following continues through a torn line, a crash and its resume, and a rewind, and never shows an event twice.
func TestLogFollows(t *testing.T) {
	for _, tail := range []int{0, 2} {
		w := viewtest.New(t, session.Store{Root: t.TempDir()})
		note := func(w *viewtest.Writer, text string) {
			w.Event(time.Second, "nudge", viewtest.P{"kind": "k", "content": text})
			w.Flush()
		}
		w.Event(0, "session_start", viewtest.P{"phase": "prep-feature"})
		w.Event(0, "seed_committed", viewtest.P{"sha": "abcd", "branch": "b"})
		w.Flush()
		seed, err := os.Stat(w.S.Path(session.RecordFile))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		out := newLineWriter()
		done := make(chan error, 1)
		go func() {
			_, err := Log(ctx, out, w.S, LogOptions{Follow: true, Tail: tail})
			done <- err
		}()
		out.expect(t, "prep-feature in", "branch=b  sha=abcd")
		note(w, "one")
		out.expect(t, "nudged: k: one")
		w.Raw(`{"ts":"2026-06-11T22:05:00Z","type":"nudge","payload":{"kind":"k","content":"to`)
		w.Flush()
		w.Raw(`rn"}}` + "\n")
		w.Flush()
		out.expect(t, "nudged: k: torn")
		w.Raw(`{"type":"nudge","payl`)
		w.Flush()
		rec, err := w.S.OpenRecord(record.Options{Clock: func() time.Time { return viewtest.Start }})
		if err != nil {
			t.Fatal(err)
		}
		rec.Append(&record.Nudge{Kind: "k", Content: "after the crash"})
		rec.Close()
		for got := range out.line { // log_repaired comes first, if the session has one
			if strings.HasSuffix(got, "nudged: k: after the crash") {
				break
			}
		}
		if err := os.Truncate(w.S.Path(session.RecordFile), seed.Size()); err != nil {
			t.Fatal(err)
		}
		out.expect(t, "-- the record was replaced; this is the new one --")
		note(viewtest.Open(t, w.S), "anew")
		out.expect(t, "nudged: k: anew")
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if len(out.line) > 0 {
			t.Errorf("shown twice: %q", <-out.line)
		}
	}
}

// Following ends with the session, and does not mistake its end for a rewind. The record is deleted first, the
// directory last.
func TestLogFollowsToTheEndOfTheSession(t *testing.T) {
	w := viewtest.New(t, session.Store{Root: t.TempDir()})
	w.Event(0, "nudge", viewtest.P{"kind": "k", "content": "one"})
	w.Flush()
	out := newLineWriter()
	done := make(chan error, 1)
	go func() {
		_, err := Log(context.Background(), out, w.S, LogOptions{Follow: true})
		done <- err
	}()
	out.expect(t, "nudged: k: one")
	if err := os.WriteFile(w.S.Path(session.ResetMarkFile), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	w.Event(0, "nudge", viewtest.P{"kind": "k", "content": "a reset that has only begun"})
	w.Flush()
	out.expect(t, "nudged: k: a reset that has only begun")
	if err := os.Remove(w.S.Path(session.RecordFile)); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("the error is %v", err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("it goes on following")
	}
	if len(out.line) > 0 {
		t.Errorf("printed %q", <-out.line)
	}
}

// A record that is removed and replaced, for example by a backup, is followed again.
func TestLogFollowsARecordThatComesBack(t *testing.T) {
	w := viewtest.New(t, session.Store{Root: t.TempDir()})
	w.Event(0, "nudge", viewtest.P{"kind": "k", "content": "one"})
	w.Flush()
	path := w.S.Path(session.RecordFile)
	if err := os.Rename(path, path+".away"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	out := newLineWriter()
	done := make(chan error, 1)
	go func() {
		_, err := Log(ctx, out, w.S, LogOptions{Follow: true})
		done <- err
	}()
	if err := os.Rename(path+".away", path); err != nil {
		t.Fatal(err)
	}
	out.expect(t, "nudged: k: one")
	if err := os.WriteFile(path+".new", []byte(`{"type":"nudge","payload":{"kind":"k","content":"two"}}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	out.expect(t, "-- the record was replaced; this is the new one --", "nudged: k: two")
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// A rewind is noticed even if the run has passed the old end between two checks.
func TestFollowerNoticesAnotherRecord(t *testing.T) {
	w := viewtest.New(t, session.Store{Root: t.TempDir()})
	w.Event(0, "seed_committed", viewtest.P{"sha": "abcd"})
	w.Event(0, "nudge", viewtest.P{"content": "old"})
	w.Flush()
	f := &follower{s: w.S}
	count := func() (n int, reset bool) {
		t.Helper()
		_, reset, err := f.poll(func(record.Line) error { n++; return nil })
		if err != nil {
			t.Fatal(err)
		}
		return n, reset
	}
	if n, reset := count(); n != 2 || reset {
		t.Fatalf("%d lines, reset %v", n, reset)
	}
	data, err := os.ReadFile(w.S.Path(session.RecordFile))
	if err != nil {
		t.Fatal(err)
	}
	grown := bytes.Replace(data, []byte("old"), []byte("new and longer than the old one"), 1)
	if err := os.WriteFile(w.S.Path(session.RecordFile), grown, 0o600); err != nil {
		t.Fatal(err)
	}
	if n, reset := count(); n != 0 || !reset {
		t.Fatalf("%d lines, reset %v", n, reset)
	}
	if n, reset := count(); n != 2 || reset {
		t.Fatalf("after the reset: %d lines, reset %v", n, reset)
	}
	if err := os.Remove(w.S.Path(session.RecordFile)); err != nil {
		t.Fatal(err)
	}
	if n, reset := count(); n != 0 || !reset {
		t.Fatalf("removed: %d lines, reset %v", n, reset)
	}
	if n, reset := count(); n != 0 || reset {
		t.Fatalf("still removed: %d lines, reset %v", n, reset)
	}
}

// No line of a record can do anything to a terminal, or be two lines of a log.
func FuzzLogLine(f *testing.F) {
	f.Add([]byte(`{"ts":"2026-06-11T22:04:10Z","type":"tool_call","payload":{"task_id":"T-001","iter":1,"tool":"bash","args":{"command":"\u001b[2J\n"}}}`))
	f.Add([]byte(`{"type":"validator_run","payload":{"results":[{"name":"\u202e"},5]}}`))
	f.Add([]byte("{\"type\":\"x\",\"payload\":{\"a\xff\":[1],\"b\":{}}}"))
	f.Fuzz(func(t *testing.T, line []byte) {
		if !json.Valid(line) {
			return
		}
		for _, term := range []Terminal{{}, {TTY: true, Width: 60}} {
			var b bytes.Buffer
			l := &logger{out: bufio.NewWriter(&b), o: LogOptions{Terminal: term}}
			l.fits(record.Parse(line))
			if err := l.write(record.Parse(line)); err != nil {
				t.Fatal(err)
			}
			l.out.Flush()
			text := strings.TrimSuffix(b.String(), "\n")
			for _, r := range text {
				if unicode.IsControl(r) && (r != '\t' || term.TTY) || unicode.Is(unicode.Bidi_Control, r) {
					t.Fatalf("%q lets %U through", text, r)
				}
			}
			if !term.TTY && strings.Count(text, "\t") != 3 {
				t.Fatalf("%q has not four fields", text)
			}
		}
	})
}
