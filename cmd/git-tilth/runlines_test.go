package main

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/view"
)

// TestLinesFollowTheTerminal makes a terminal narrower during a run. Lines break between words at the new width, and
// the live line, which the terminal has broken into three, is removed completely.
func TestLinesFollowTheTerminal(t *testing.T) {
	var out bytes.Buffer
	term := view.Terminal{TTY: true, Width: 100}
	p := newRunLines(&session.Session{Dir: t.TempDir()}, func() view.Terminal { return term }, &out, &out, true)
	p.Start("session 1: start with 1 task")
	p.Event(record.Parse([]byte(`{"ts":"2026-01-01T00:00:00Z","type":"context_reset","payload":{"task_id":"T-001"}}`)))
	p.Validating("T-001", strings.Repeat("a validator with a long name ", 5))
	if live := out.String()[strings.LastIndex(out.String(), "\x1b[K")+3:]; utf8.RuneCountInString(live) != 99 {
		t.Errorf("the live line at 100 columns: %q", live)
	}
	out.Reset()
	term.Width = 40
	said := "one two three four five six seven eight nine ten eleven twelve thirteen"
	p.line("", nil, said)
	if !strings.HasPrefix(out.String(), "\r\x1b[K"+strings.Repeat("\x1b[A\x1b[K", 2)) {
		t.Errorf("what takes the live line away: %q", out.String())
	}
	lines := strings.Split(strings.TrimLeft(out.String(), "\r\x1b[AK"), "\n")
	for _, line := range lines {
		if n := utf8.RuneCountInString(strings.TrimPrefix(line, "\r\x1b[K")); n > 40 {
			t.Errorf("a line of %d columns: %q", n, line)
		}
	}
	above := strings.Join(lines[:len(lines)-1], "\n")
	if got := strings.Join(strings.Fields(above)[1:], " "); got != said || len(lines) != 4 {
		t.Errorf("words are broken: %q", lines)
	}
}

// A run that only repeats commits has no worker and no caps.
func TestNoCaps(t *testing.T) {
	var out bytes.Buffer
	term := func() view.Terminal { return view.Terminal{} }
	p := newRunLines(&session.Session{Dir: t.TempDir()}, term, &out, &out, true)
	p.Bounds(&held.Handle{Checkpoint: &session.Checkpoint{}})
	if out.Len() > 0 {
		t.Errorf("printed %q", out.String())
	}
}

// A task's cost includes its earlier runs, and the row of a finished task is gone before its line is printed.
func TestCostOfATaskAfterAResume(t *testing.T) {
	s := &session.Session{Dir: t.TempDir()}
	call := `{"ts":"2026-01-01T00:00:00Z","type":"model_call","payload":{"task_id":"T-001","phase":"worker","cost":0.25}}`
	if err := os.WriteFile(s.Path(session.RecordFile), []byte(call+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	term := view.Terminal{TTY: true, Width: 60, Height: 4}
	p := newRunLines(s, func() view.Terminal { return term }, &out, &out, true)
	p.Start("session 1: 1 task to do")
	for _, task := range []string{"T-001", "T-002", "T-003"} {
		p.Event(record.Parse([]byte(`{"type":"context_reset","payload":{"task_id":"` + task + `"}}`)))
	}
	if len(p.shown) != 3 {
		t.Errorf("%d live lines on a terminal of 4 lines", len(p.shown))
	}
	p.Validating("T-002", strings.Repeat("検査", 40))
	if slices.Max(p.shown) > 59 {
		t.Errorf("live lines of %v columns", p.shown)
	}
	p.Event(record.Parse([]byte(call)))
	out.Reset()
	p.Event(record.Parse([]byte(`{"type":"commit","payload":{"task_id":"T-001","sha":"0123456789"}}`)))
	p.Event(record.Parse([]byte(`{"type":"model_call","payload":{"task_id":"T-001","phase":"self_improve","cost":1}}`)))
	p.Event(record.Parse([]byte(`{"type":"proposed_learnings","payload":{"task_id":"T-001","emitted":false}}`)))
	if !strings.Contains(out.String(), "$1.50") || strings.Contains(out.String(), "T-001  iteration") {
		t.Errorf("%q", out.String())
	}
}

// A part of a preflight has a timer on a terminal until the next part begins.
func TestPreflightTimer(t *testing.T) {
	var out bytes.Buffer
	p := newRunLines(nil, func() view.Terminal { return view.Terminal{TTY: true, Width: 80} }, &out, &out, true)
	p.startLive()
	defer p.stopLive()
	p.Validating("", "pytest")
	if !strings.HasSuffix(out.String(), " · preflight: pytest for 0s") {
		t.Errorf("%q", out.String())
	}
	if p.Validating("", ""); strings.HasSuffix(out.String(), "pytest for 0s") {
		t.Errorf("%q", out.String())
	}
}
