package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/git-tilth/git-tilth/internal/config"
	"github.com/git-tilth/git-tilth/internal/loop"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
	"github.com/git-tilth/git-tilth/internal/view"
)

// progress shows a run as it happens: one line per event worth seeing and, on a terminal, a live last line; with --json
// the events themselves. It shows what is on the record and decides nothing.
type progress struct {
	out   io.Writer
	err   *os.File
	term  view.Terminal
	caps  config.Caps
	since time.Time
	idle  time.Time     // since when a usage limit is waited for; zero where none is
	still time.Duration // waited for usage limits until then
	now   func() time.Time
	of    string // begins each line of a run that is one of several, "" for the only one

	mu     sync.Mutex
	titles map[string]string
	plan   func() ([]session.Task, error)
	task   string
	iter   int
	begun  time.Time // when the task at hand began; zero where that was in an earlier run
	before float64   // the cost until then
	bare   bool      // that there are no validators was said
	tokens int64
	cost   float64
	waits  string      // what an agent program that says nothing is doing, "" while it does say something
	shown  bool        // the live line is on the screen
	timer  *time.Timer // redraws it; nil where there is none
}

func (w *repoContext) newProgress(s *session.Session, asJSON bool) *progress {
	t := w.p.terminal(asJSON)
	pr := &progress{
		out: w.p.stdout, err: w.p.stderr, term: t, now: w.p.now, since: w.p.now(),
		titles: map[string]string{}, plan: s.Tasks,
	}
	if check, err := s.Checkpoint(); err == nil {
		pr.tokens, pr.cost = check.TokensUsed, check.Usage.Sum().Cost
	}
	return pr
}

// name learns the tasks' titles.
func (p *progress) name() {
	if tasks, err := p.plan(); err == nil {
		for _, t := range tasks {
			p.titles[t.ID] = t.Title
		}
	}
}

// start prints what is about to happen and begins the live line.
func (p *progress) start(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.name()
	if p.term.JSON {
		return
	}
	p.line("", nil, line)
	if p.term.TTY && p.timer == nil && p.of == "" {
		p.timer = time.AfterFunc(time.Second, p.redraw)
	}
}

// redraw keeps the live line true while nothing happens.
func (p *progress) redraw() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer != nil {
		p.drawLive()
		p.timer.Reset(time.Second)
	}
}

// event is the record's sink.
func (p *progress) event(l record.Line) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.idle.IsZero() {
		p.still, p.idle = p.still+p.now().Sub(p.idle), time.Time{}
	}
	if p.term.JSON {
		p.out.Write(append(append([]byte{}, l.Raw...), '\n'))
		return
	}
	p.waits = ""
	if quietEvents[l.Type] {
		return
	}
	e := l.Event()
	if in := e.Common(); in.TaskID != "" {
		p.task, p.iter = in.TaskID, in.Iter
	}
	if call, ok := e.(*record.ModelCall); ok {
		p.tokens = max(p.tokens, call.TokensUsedTotal)
		if call.Cost != nil {
			p.cost += *call.Cost
		}
	}
	if text := p.describe(e); text != "" {
		if w, ok := e.(*record.AgentWaits); ok {
			p.waits = w.Agent + " " + waitWords(w)
		}
		p.line(l.TS, e, text)
	} else {
		p.drawLive()
	}
}

// quietEvents are for the record, not for the screen, and are not even decoded.
var quietEvents = map[string]bool{
	"prompt_assembled": true, "memory_load": true, "tool_call": true, "tool_result": true, "ledger_appended": true,
	"session_start": true, "session_resume": true, "stop": true, "hook_run": true,
}

// describe is the line of an event, "" for none.
func (p *progress) describe(e record.Event) string {
	in := e.Common()
	at := fmt.Sprintf("%s  iter %d  ", in.TaskID, in.Iter)
	switch e := e.(type) {
	case *record.Preflight:
		p.bare = len(e.Checks) == 0
		return "preflight: " + view.Preflight(e)
	case *record.ContextReset:
		p.begun, p.before = p.now(), p.cost
		return fmt.Sprintf("%s  %s", e.TaskID, p.titles[e.TaskID])
	case *record.ModelCall:
		switch e.Health {
		case "", "ok", "completed", loop.Interrupted: // that the run was interrupted is said at its end
			return ""
		}
		text := fmt.Sprintf("%s  model: %s", e.TaskID, firstWords(e.Error, e.Health))
		if e.WaitSeconds != nil && *e.WaitSeconds > 0 {
			text += fmt.Sprintf(" (again in %.0f s)", *e.WaitSeconds)
		}
		return text
	case *record.ValidatorRun:
		if len(e.Results) == 0 && p.bare {
			return ""
		}
		p.bare = len(e.Results) == 0
		return at + validatorWords(e)
	case *record.EvaluatorVerdict:
		if e.Accepted() && e.By == "" {
			return "" // the commit says so
		}
		who := "evaluator"
		switch e.By {
		case record.ByHarness:
			who = "git-tilth"
		case record.ByPerson:
			who = "a person's word"
		}
		text := at + who + ": " + e.Verdict
		if e.RejectionCategory != nil {
			text += " (" + *e.RejectionCategory + ")"
		}
		if e.Concern != nil && e.Verdict == loop.Reject {
			text += ": " + firstWords(*e.Concern, "")
		}
		if e.NextStep != nil && e.Verdict == loop.Reject {
			text = strings.TrimSuffix(text, ".") + "; next: " + firstWords(*e.NextStep, "")
		}
		return text
	case *record.Commit:
		if e.Aside != "" {
			return fmt.Sprintf("%s  partial work set aside in %s", e.TaskID, e.Aside)
		}
		if e.Placeholder {
			return fmt.Sprintf("%s  partial work kept in %.10s", e.TaskID, e.SHA)
		}
		return fmt.Sprintf("%s  done, commit %.10s", e.TaskID, e.SHA) + p.spent()
	case *record.TaskFailed:
		reason := e.Reason
		if e.Detail != "" {
			reason += " (" + firstWords(e.Detail, "") + ")"
		}
		if e.Objection != "" {
			reason += ": " + e.Objection
		}
		return e.TaskID + "  FAILED: " + reason + p.spent()
	case *record.Nudge:
		return at + "nudged: " + nudgeWords[e.Kind]
	case *record.AgentWaits:
		return fmt.Sprintf("%s  %s %s", e.TaskID, e.Agent, waitWords(e))
	case *record.PreToolBlock:
		return at + e.Tool + " blocked: " + firstWords(e.Reason, "")
	case *record.CaseParseError:
		return at + "case parse error: " + firstWords(e.Error, "")
	case *record.EvaluatorParseError:
		return at + "evaluator parse error: " + firstWords(e.Error, "")
	case *record.AgentSession:
		if e.Role == "" && e.How != "fresh" && e.How != "continued" {
			return fmt.Sprintf("%s  %s goes on with its conversation (%s)", e.TaskID, e.Agent, e.Why)
		}
	case *record.ProposedLearnings:
		if e.Emitted && e.Entry != nil {
			return fmt.Sprintf("%s  learned: %s", e.TaskID, firstWords(*e.Entry, ""))
		}
	case *record.BuildProducts:
		return fmt.Sprintf("%s  left out of commits: %s", e.TaskID, strings.Join(e.LeftOut, ", "))
	case *record.RepoChanged:
		return "the repository changed: " + repoChange(e.What, e.Before, e.After)
	case *record.LogRepaired:
		return "repaired: " + firstWords(strings.Trim(e.File+" "+e.Why+e.What+", "+e.Done, ", "), "the record")
	}
	return ""
}

// spent is what the task at hand took so far.
func (p *progress) spent() string {
	if p.begun.IsZero() {
		return ""
	}
	s := fmt.Sprintf(", %s, %s", text.Plural(max(p.iter, 1), "iteration"), view.Span(p.now().Sub(p.begun)))
	if p.cost > p.before {
		s += ", " + view.Money(p.cost-p.before)
	}
	return s
}

// nudgeWords says what was wrong with a turn that was answered with a nudge.
var nudgeWords = map[string]string{
	"silent": "a turn without a tool or a case", "no_message": "a turn without a final message",
	"time_limit": "a turn that ran into its time limit",
}

// waitWords says what a program that says nothing more was last heard of.
func waitWords(w *record.AgentWaits) string {
	if w.Said != "" {
		return "waits by itself: " + firstWords(w.Said, "")
	}
	since, err := time.Parse(time.RFC3339, w.Since)
	if err != nil {
		return "is quiet"
	}
	return "has been quiet since " + since.Local().Format("15:04")
}

func validatorWords(s *record.ValidatorRun) string {
	if len(s.Results) == 0 {
		return firstWords(s.Note, "no validators")
	}
	var parts []string
	why := ""
	for _, r := range s.Results {
		word := "ok"
		switch {
		case r.Skipped:
			word = "skipped"
		case !r.Passed:
			word = "FAILED"
			if why == "" && r.Output != nil {
				why = firstWords(text.FailingLine(*r.Output), "")
			}
		}
		parts = append(parts, fmt.Sprintf("%s %s", r.Name, word))
	}
	state := "passed"
	if !s.Passed {
		state = "failed"
	}
	said := "validators " + state + ": " + strings.Join(parts, ", ")
	if why != "" {
		said += ": " + why
	}
	return said
}

// firstWords is the beginning of a text on one line.
func firstWords(s, otherwise string) string {
	if words := text.OneLine(s); words != "" {
		return text.Clip(words, 160)
	}
	return otherwise
}

// line prints what an event says above the live line, with the time. Without an event it is said now.
func (p *progress) line(ts string, e record.Event, says string) {
	p.clearLive()
	at := record.ParseTime(ts)
	if at.IsZero() {
		at = p.now()
	}
	fmt.Fprintln(p.term.Writer(p.out), p.term.RunLine(at, e, text.VisibleLine(p.of+says)))
	p.drawLive()
}

func (p *progress) clearLive() {
	if p.shown {
		fmt.Fprint(p.out, "\r\x1b[K")
		p.shown = false
	}
}

// drawLive redraws the last line: task, iteration of cap, tokens, cost, time.
func (p *progress) drawLive() {
	if p.timer == nil {
		return
	}
	parts := []string{view.Count(p.tokens) + " tokens"}
	if p.task != "" {
		parts = append([]string{fmt.Sprintf("%s  iteration %d of %d", p.task, max(p.iter, 1),
			int(p.caps[config.MaxIterations]))}, parts...)
	}
	if p.cost > 0 {
		parts = append(parts, view.Money(p.cost))
	}
	parts = append(parts, view.Span(p.now().Sub(p.since)))
	if p.waits != "" {
		parts = append(parts, p.waits)
	}
	line := []rune(strings.Join(parts, " · "))
	if p.term.Width > 0 && len(line) >= p.term.Width {
		line = line[:p.term.Width-1]
	}
	fmt.Fprint(p.term.Writer(p.out), "\r\x1b[K"+string(line))
	p.shown = true
}

// waiting tells that the run waits for a usage limit.
func (p *progress) waiting(until time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = p.now()
	if !p.term.JSON {
		p.line("", nil, "usage limit: waiting until "+until.Local().Format("2006-01-02 15:04:05")+"; Ctrl-C stops")
	}
}

// tell says something to the person at the terminal, whatever standard output is for.
func (p *progress) tell(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clearLive()
	fmt.Fprintln(p.err, "git-tilth: "+line)
	p.drawLive()
}
