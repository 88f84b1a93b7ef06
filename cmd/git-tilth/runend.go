package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/loop"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/text"
	"github.com/git-tilth/git-tilth/internal/view"
)

// Stopped prints the summary of a run. why is the failure for a terminal, or ""; told reports whether a line has
// printed it.
func (p *runLines) Stopped(h *held.Handle, s loop.Stop, why string, r *view.Report) (told bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer != nil {
		p.timer.Stop()
		p.timer = nil
	}
	p.printFinished()
	p.clearLive()
	if p.Term.JSON {
		return false
	}
	// One write, because another run may print at the same time.
	var b bytes.Buffer
	out := p.out
	p.out = &b
	defer func() {
		out.Write(b.Bytes())
		p.out = out
	}()
	fmt.Fprintf(p.out, "\n%s\n", r.EndLine(s.Reason))
	told = why != "" && p.Term.TTY && p.errTTY
	switch {
	case s.Reason == record.PreflightFailed && told: // without told, the error's line has the findings
		io.WriteString(p.out, leftLines(s, p.Term))
	case len(s.Left) > 0 && s.Reason != record.PreflightFailed, s.Reason == record.CommitRefused:
		r.Unfinished(p.out, p.Term)
	}
	for _, line := range r.CheckLines(true) {
		fmt.Fprintln(p.out, p.Term.Fold("  "+text.VisibleLine(line)))
	}
	if told && len(s.Left) == 0 && why != s.Reason {
		fmt.Fprintln(p.out, p.Term.Fold("  "+text.VisibleLine(why)))
	}
	fmt.Fprintf(p.out, "%s\nbranch  %s\n%s", p.Term.Fold(r.Spent()), h.S.Branch(),
		p.Term.Commands("next    ", r.Commands))
	return told
}

// leftLines returns the findings of a stop, each with the command that helps.
func leftLines(s loop.Stop, term view.Terminal) string {
	var b strings.Builder
	for _, left := range s.Left {
		b.WriteString(term.Finding("  ", left.Why, left.Hint))
	}
	return b.String()
}
