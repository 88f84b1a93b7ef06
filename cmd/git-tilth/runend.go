package main

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/git-tilth/git-tilth/internal/config"
	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/loop"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
	"github.com/git-tilth/git-tilth/internal/view"
)

// stopped prints the summary of a run that ended with a result. It is what a person at a terminal is told of that;
// told reports whether it was.
func (p *progress) stopped(h *held.Handle, s loop.Stop, result error) (told bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer != nil {
		p.timer.Stop()
		p.timer = nil
	}
	p.clearLive()
	if p.term.JSON {
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
	for _, left := range s.Left {
		fmt.Fprintln(p.out, "  "+text.VisibleLine(fmt.Sprintf("%s  %s  %s", left.Task, p.titles[left.Task], left.Why)))
		if left.Hint != "" {
			fmt.Fprintln(p.out, "         "+text.VisibleLine(left.Hint))
		}
	}
	if s.Reason == loop.CommitRefused {
		fmt.Fprintf(p.out, "%s is accepted and waits for its commit; the commit hook says:\n", s.Task)
		for line := range strings.Lines(s.Detail) {
			fmt.Fprintln(p.out, "  "+text.VisibleLine(strings.TrimRight(line, "\n")))
		}
	}
	next := "git tilth take " + h.S.ID
	var stopped *exitError
	if errors.As(result, &stopped) {
		next = stopped.hint
		if told = p.term.TTY && isTerminal(p.err); told && len(s.Left) == 0 && stopped.msg != s.Reason {
			fmt.Fprintln(p.out, "  "+text.VisibleLine(stopped.msg))
		}
	}
	fmt.Fprintf(p.out, "%s\n", p.capUse(h))
	fmt.Fprintf(p.out, "branch  %s\nnext    %s\n", h.S.Branch(), next)
	return told
}

// workOf names the session's own commits as git does: those since the commit that it was begun at.
func workOf(s *session.Session) string {
	begun, err := record.ReadBeginning(s.Path(session.RecordFile))
	switch {
	case err == nil && begun.Base != "":
		return text.Head(begun.Base, 10) + ".." + s.Branch()
	case err == nil && begun.Seed != nil:
		return text.Head(begun.Seed.SHA, 10) + ".." + s.Branch()
	}
	return s.Branch()
}

// capUse is how much of each cap was used.
func (p *progress) capUse(h *held.Handle) string {
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
		n, limit := used[c.Name], p.caps[c.Name]
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
		case i > 0 && p.term.Width > 0 && columns+2+n > p.term.Width:
			line, columns = line+"\n", 0
		case i > 0:
			line, columns = line+"  ", columns+2
		}
		line, columns = line+part, columns+n
	}
	return line
}
