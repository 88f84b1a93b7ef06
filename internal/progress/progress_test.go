package progress

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/view"
)

// TestLinesFollowTheTerminal makes a terminal narrower during a run: lines break between words at the width that it has
// then, and the live line, which it has broken into three, is taken away whole.
func TestLinesFollowTheTerminal(t *testing.T) {
	var out bytes.Buffer
	term := view.Terminal{TTY: true, Width: 100}
	p := New(&session.Session{Dir: t.TempDir()}, func() view.Terminal { return term }, &out, &out, true)
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
