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

// Stopped prints the summary of a run. why is the failure for a terminal, or ""; printed reports whether a line has
// printed it.
func (p *runLines) Stopped(h *held.Handle, s loop.Stop, why string, r *view.Report) (printed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.printFinished()
	p.stopLive()
	if p.Term.JSON {
		return false
	}
	var out bytes.Buffer // one write, because another run may print at the same time
	fmt.Fprintf(&out, "\n%s\n", r.EndLine(s.Reason))
	printed = why != "" && p.Term.TTY && p.errTTY
	switch {
	case s.Reason == record.PreflightFailed && printed: // otherwise the error's line has the findings
		io.WriteString(&out, problemLines(s, p.Term))
	case len(s.Problems) > 0 && s.Reason != record.PreflightFailed, s.Reason == record.CommitRefused:
		r.Unfinished(&out, p.Term)
	}
	for _, line := range r.CheckLines(true) {
		fmt.Fprintln(&out, p.Term.Fold("  "+text.VisibleLine(line)))
	}
	if printed && len(s.Problems) == 0 && why != s.Reason {
		fmt.Fprintln(&out, p.Term.Fold("  "+text.VisibleLine(why)))
	}
	fmt.Fprintf(&out, "%s\nbranch  %s\n%s", p.Term.Fold(r.Spent()), h.S.Branch(),
		p.Term.Commands("next    ", r.Commands))
	p.out.Write(out.Bytes())
	return printed
}

// problemLines returns the problems of a stop, each with a suggested command.
func problemLines(s loop.Stop, term view.Terminal) string {
	var b strings.Builder
	for _, problem := range s.Problems {
		b.WriteString(term.Finding("  ", problem.Why, problem.Hint))
	}
	return b.String()
}
