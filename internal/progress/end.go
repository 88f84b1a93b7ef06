package progress

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/git-tilth/git-tilth/internal/config"
	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/loop"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/text"
	"github.com/git-tilth/git-tilth/internal/view"
)

// Stopped prints the summary of a run. why is the failure for a terminal, or ""; told reports whether it was printed.
// next are the suggested commands.
func (p *Lines) Stopped(h *held.Handle, s loop.Stop, why string, next []view.Command) (told bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer != nil {
		p.timer.Stop()
		p.timer = nil
	}
	p.clearLive()
	if p.Term.JSON {
		return false
	}
	// In one piece: another run may be telling of its own.
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
	told = why != "" && p.Term.TTY && p.errTTY
	if told || s.Reason != record.PreflightFailed { // whose findings are in the error's line otherwise
		io.WriteString(p.out, LeftLines(s, p.titles, p.Term))
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
	if told && len(s.Left) == 0 && why != s.Reason {
		fmt.Fprintln(p.out, p.Term.Fold("  "+text.VisibleLine(why)))
	}
	fmt.Fprintf(p.out, "%s\n", p.capUse(h))
	fmt.Fprintf(p.out, "branch  %s\n%s", h.S.Branch(), p.Term.Commands("next    ", next))
	return told
}

// LeftLines returns the unfinished tasks of a stop, each followed by the command that helps. Commands are not wrapped,
// so that they can be pasted.
func LeftLines(s loop.Stop, titles map[string]string, term view.Terminal) string {
	var b strings.Builder
	for _, left := range s.Left {
		says := left.Why
		if left.Task != "" {
			says = left.Task + "  " + titles[left.Task] + "  " + says
		}
		b.WriteString(term.Fold("  "+text.VisibleLine(says)) + "\n")
		if left.Hint != "" {
			b.WriteString("         " + text.VisibleLine(left.Hint) + "\n")
		}
	}
	return b.String()
}

// capUse is how much of each cap was used.
func (p *Lines) capUse(h *held.Handle) string {
	elapsed := p.now().Sub(p.since) - p.still
	used := loop.Usage(h.Checkpoint.TokensUsed, h.Checkpoint.Usage.Sum().Cost, elapsed)
	used[config.MaxIterations] = float64(p.iter)
	words := map[string]func(float64) string{
		config.MaxMinutes: func(float64) string { return view.Span(elapsed) },
		config.MaxTokens:  func(n float64) string { return view.Count(int64(n)) },
		config.MaxCost:    view.Money,
	}
	var parts, lastTask []string
	for _, c := range config.AllCaps() {
		n, limit := used[c.Name], p.Caps[c.Name]
		if c.Label == "" || n == 0 && (limit == 0 || c.PerTask) {
			continue
		}
		part := fmt.Sprintf("%s %g", c.Label, n)
		if say, ok := words[c.Name]; ok {
			part = c.Label + " " + say(n)
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
	line, columns := "", 0
	for i, part := range append(parts, lastTask...) {
		n := utf8.RuneCountInString(part)
		switch {
		case i > 0 && p.Term.Width > 0 && columns+2+n > p.Term.Width:
			line, columns = line+"\n", 0
		case i > 0:
			line, columns = line+"  ", columns+2
		}
		line, columns = line+part, columns+n
	}
	return line
}
