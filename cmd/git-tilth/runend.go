package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/git-tilth/git-tilth/internal/config"
	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/loop"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/text"
	"github.com/git-tilth/git-tilth/internal/view"
)

// Stopped prints the summary of a run. why is the failure for a terminal, or ""; told reports whether it was printed.
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
	// Written at once, because another run may print too.
	var b bytes.Buffer
	out := p.out
	p.out = &b
	defer func() {
		out.Write(b.Bytes())
		p.out = out
	}()
	tasks := h.S.Overview().Tasks
	fmt.Fprintf(p.out, "\n%s  %d of %d tasks done", s.Reason, tasks.Done, tasks.Total)
	if tasks.Failed > 0 {
		fmt.Fprintf(p.out, ", %d failed", tasks.Failed)
	}
	if tasks.Skipped > 0 {
		fmt.Fprintf(p.out, ", %d skipped", tasks.Skipped)
	}
	fmt.Fprintln(p.out)
	for i, left := range s.Left {
		if t := r.Task(left.Task); t != nil && strings.HasPrefix(left.Hint, "${EDITOR") { // a retry comes first
			s.Left[i].Hint = view.TaskCommands(r, t)[0].Line
		}
	}
	told = why != "" && p.Term.TTY && p.errTTY
	if told || s.Reason != record.PreflightFailed { // otherwise the error's line has the findings
		io.WriteString(p.out, leftLines(s, p.titles, p.Term))
	}
	if s.Reason == record.CommitRefused {
		says := "; the commit hook says"
		if gitx.SaysUnsigned(s.Detail) {
			says = ""
		}
		fmt.Fprintf(p.out, "%s is accepted but not committed%s:\n", s.Task, says)
		for line := range strings.Lines(s.Detail) {
			fmt.Fprintln(p.out, p.Term.Fold("  "+text.VisibleLine(strings.TrimRight(line, "\n"))))
		}
	}
	for _, line := range r.CheckLines(true) {
		fmt.Fprintln(p.out, p.Term.Fold("  "+text.VisibleLine(line)))
	}
	if told && len(s.Left) == 0 && why != s.Reason {
		fmt.Fprintln(p.out, p.Term.Fold("  "+text.VisibleLine(why)))
	}
	fmt.Fprintf(p.out, "%s\n", p.capUse(h))
	fmt.Fprintf(p.out, "branch  %s\n%s", h.S.Branch(), p.Term.Commands("next    ", r.Commands))
	return told
}

// leftLines returns the unfinished tasks of a stop, each followed by the command that helps. Commands are not wrapped,
// so that they can be pasted.
func leftLines(s loop.Stop, titles map[string]string, term view.Terminal) string {
	var b strings.Builder
	for _, left := range s.Left {
		says := left.Why
		if left.Task != "" {
			says = left.Task + "  " + titles[left.Task] + "  " + says
		}
		b.WriteString(term.Finding("  ", says, left.Hint))
	}
	return b.String()
}

// capUse is how much of each cap was used.
func (p *runLines) capUse(h *held.Handle) string {
	elapsed := p.now().Sub(p.since) - p.still
	used := loop.Usage(h.Checkpoint.TokensUsed, h.Checkpoint.Usage.Sum().Cost, elapsed)
	used[config.MaxIterations] = float64(p.iter)
	var parts, lastTask []string
	for _, c := range config.AllCaps() {
		n, limit := used[c.Name], p.Caps[c.Name]
		if c.Label == "" || n == 0 && (limit == 0 || c.PerTask) {
			continue
		}
		part := c.Label + " " + amount(c.Name, n)
		if c.Name == config.MaxMinutes {
			part = c.Label + " " + view.Span(elapsed)
		}
		if limit > 0 {
			part += fmt.Sprintf(" (%.0f%% of cap)", 100*n/limit)
		}
		if c.Name == config.MaxTokens {
			part += view.CachedPhrase(h.Checkpoint.Usage.Sum().CachedTokens)
		}
		if c.PerTask {
			lastTask = append(lastTask, part)
		} else {
			parts = append(parts, part)
		}
	}
	return p.Term.Fold(strings.Join(append(parts, lastTask...), "  "))
}
