package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/git-tilth/git-tilth/internal/agent"
	"github.com/git-tilth/git-tilth/internal/config"
	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
	"github.com/git-tilth/git-tilth/internal/view"
)

// runLines shows a run: one line for each important event and, on a terminal, a live last line; with --json the
// events. It decides nothing.
type runLines struct {
	out    io.Writer
	err    io.Writer
	errTTY bool
	Term   view.Terminal
	term   func() view.Terminal // current size
	Caps   config.Caps
	since  time.Time
	now    func() time.Time
	Of     string // prefix of each line if there are several runs

	mu     sync.Mutex
	titles map[string]string
	plan   func() ([]session.Task, error)
	at     map[string]*atWork // by task
	doing  view.Doings        // of workers and validators
	bare   bool               // the note about missing validators was printed
	tokens int64
	cost   float64
	costs  map[string]float64 // by task, of all its attempts
	// finished has the lines of committed tasks that wait for the cost of their learnings call; nil outside of a run.
	finished map[string]finishedLine
	shown    []int       // columns of each live line on the screen
	timer    *time.Timer // redraws the live lines; nil without them
	patience *time.Timer // prints the running part of a preflight without live lines
}

// atWork is the state of a running task.
type atWork struct {
	iter  int
	begun time.Time          // zero if it began in an earlier run
	waits *record.AgentWaits // current wait for an endpoint or agent program, or nil
}

// finishedLine is the line of a finished task with its commit.
type finishedLine struct {
	ts, says string
	commit   record.Event
}

// work returns the state of an event's task if a worker has the task, else an unused state.
func (p *runLines) work(task string) *atWork {
	if of := p.at[task]; of != nil {
		return of
	}
	return &atWork{}
}

// newRunLines returns a printer of a session's runs, or of a preflight without a session for nil. tty reports whether
// errors appear on the same terminal.
func newRunLines(s *session.Session, term func() view.Terminal, out, err io.Writer, tty bool) *runLines {
	pr := &runLines{
		out: out, err: err, errTTY: tty, Term: term(), term: term, now: proc.Now, since: proc.Now(),
		titles: map[string]string{}, at: map[string]*atWork{}, doing: view.Doings{},
		costs: map[string]float64{},
	}
	if s == nil {
		return pr
	}
	pr.plan = s.Tasks
	if sum, err := s.Summarize(); err == nil {
		pr.tokens, pr.cost = sum.Tokens.Total, sum.Cost
		for task, of := range sum.Tasks {
			pr.costs[task] = of.Cost
		}
	}
	return pr
}

// Name stores the tasks' titles.
func (p *runLines) Name() {
	if tasks, err := p.plan(); err == nil {
		for _, t := range tasks {
			p.titles[t.ID] = t.Title
		}
	}
}

// Start prints a first line and starts the live line.
func (p *runLines) Start(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Name()
	p.finished = map[string]finishedLine{}
	if p.Term.JSON {
		return
	}
	p.line("", nil, line)
	if p.Of == "" {
		p.startLive()
	}
}

// amount formats a number in a cap's unit.
func amount(name string, n float64) string {
	switch name {
	case config.MaxTokens:
		return view.Count(int64(n))
	case config.MaxCost:
		return view.Money(n)
	}
	return strconv.FormatFloat(n, 'f', -1, 64)
}

// Bounds prints the limits of the run.
func (p *runLines) Bounds(h *held.Handle) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.Term.JSON {
		return
	}
	var parts []string
	for _, c := range []struct {
		name, unit string
		used       float64
	}{{config.MaxMinutes, " minutes", 0}, {config.MaxTokens, " tokens", float64(h.Checkpoint.TokensUsed)},
		{config.MaxCost, "", h.Checkpoint.Usage.Sum().Cost}, {config.MaxIterations, " iterations per task", 0},
		{config.MaxEvaluatorCalls, " reviews per task", 0}} {
		if limit := p.Caps[c.name]; limit > 0 {
			part := amount(c.name, limit) + c.unit
			if c.used > 0 {
				part += " (" + amount(c.name, c.used) + " used)"
			}
			parts = append(parts, part)
		}
	}
	if len(parts) > 0 {
		p.line("", nil, "caps: "+strings.Join(parts, ", "))
	}
}

// Event receives the record's events.
func (p *runLines) Event(l record.Line) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.Term.JSON {
		p.out.Write(append(append([]byte{}, l.Raw...), '\n'))
		return
	}
	task, _ := l.Task()
	of := p.work(task)
	waited := of.waits
	of.waits = nil
	p.doing.Feed(l)
	if l.Type == "tool_call" {
		p.drawLive()
	}
	if l.Type == "proposed_learnings" || l.Type == "context_reset" {
		p.printFinished()
	}
	if quietEvents[l.Type] {
		return
	}
	e := l.Event()
	if in := e.Common(); in.TaskID != "" {
		of.iter = in.Iter
	}
	if call, ok := e.(*record.ModelCall); ok {
		p.tokens = max(p.tokens, call.TokensUsedTotal)
		if call.Cost != nil {
			p.cost += *call.Cost
			p.costs[task] += *call.Cost
		}
	}
	said := p.describe(e)
	if ends(e) {
		delete(p.at, task)
	}
	if w, ok := e.(*record.AgentWaits); ok {
		of.waits = w
		if waited != nil && waited.Until == w.Until && w.Until != "" {
			said = "" // the same wait, reported again
		}
	}
	if c, ok := e.(*record.Commit); ok && !c.Placeholder && p.finished != nil {
		p.finished[task], said = finishedLine{l.TS, said, e}, ""
	}
	if said != "" {
		p.line(l.TS, e, said)
	} else {
		p.drawLive()
	}
}

// printFinished prints the lines of finished tasks with their cost.
func (p *runLines) printFinished() {
	for _, task := range slices.Sorted(maps.Keys(p.finished)) {
		f := p.finished[task]
		delete(p.finished, task)
		p.line(f.ts, f.commit, f.says+p.costOf(task))
	}
}

// costOf returns the cost of a task, as the report has it, after a comma.
func (p *runLines) costOf(task string) string {
	if p.costs[task] == 0 {
		return ""
	}
	return ", " + view.Money(p.costs[task])
}

// ends reports whether an event ends its task.
func ends(e record.Event) bool {
	c, committed := e.(*record.Commit)
	_, failed := e.(*record.TaskFailed)
	return failed || committed && !c.Placeholder
}

// quietEvents appear in the record only, and are not decoded.
var quietEvents = map[string]bool{
	"prompt_assembled": true, "memory_load": true, "tool_call": true, "tool_result": true, "ledger_appended": true,
	"session_start": true, "session_resume": true, "stop": true, "hook_run": true,
}

// describe returns the line of an event, or "". The line names the task and, within a task, the iteration.
func (p *runLines) describe(e record.Event) string {
	in := e.Common()
	if v, ok := e.(*record.EvaluatorVerdict); ok && v.Accepted() && v.By == "" {
		return "" // the commit's line reports it
	}
	_, says := view.Line(e, nil)
	says = text.Clip(text.OneLine(text.HeadBytes(says, maxSaid*4)), maxSaid)
	switch e := e.(type) {
	case *record.Preflight:
		p.bare = !slices.ContainsFunc(e.Checks, record.Check.OfValidator)
		if !e.Passed && p.Term.TTY && p.errTTY {
			return "preflight: failed" // the run's end prints each finding
		}
		return says
	case *record.LogRepaired:
		return says
	case *record.ContextReset:
		p.at[e.TaskID] = &atWork{begun: p.now()}
		says = p.titles[e.TaskID]
	case *record.ModelCall:
		if view.Healthy(e) || e.WaitSeconds != nil && *e.WaitSeconds > 0 {
			return "" // the line of the wait has the reason
		}
	case *record.ValidatorRun:
		bare := p.bare
		if p.bare = len(e.Results) == 0; bare && p.bare {
			return ""
		}
		says = fmt.Sprintf("iter %d  %s", in.Iter, says)
	case *record.Nudge, *record.EvaluatorVerdict, *record.PreToolBlock, *record.CaseParseError,
		*record.EvaluatorParseError:
		says = fmt.Sprintf("iter %d  %s", in.Iter, says)
	case *record.Commit:
		if !e.Placeholder {
			says += p.spent(e.TaskID)
		}
	case *record.TaskFailed:
		says = strings.TrimSuffix(says, ".") + p.spent(e.TaskID) + p.costOf(e.TaskID)
	case *record.AgentSession:
		switch {
		case e.How == agent.TookOver && e.Role == record.RoleEvaluator:
			says = fmt.Sprintf("%s reviews instead: %s", e.Agent, text.Clip(text.OneLine(e.Why), maxSaid))
		case e.How == agent.TookOver:
			says = fmt.Sprintf("%s continues the task: %s", e.Agent, text.Clip(text.OneLine(e.Why), maxSaid))
		case e.How == agent.Replaced:
			says = fmt.Sprintf("%s starts a new conversation: %s", e.Agent, e.Why)
		case e.Role != "" || e.How == "fresh" || e.How == "continued":
			return ""
		default:
			says = fmt.Sprintf("%s continues its conversation (%s)", e.Agent, e.Why)
		}
	case *record.ProposedLearnings:
		if !e.Emitted || e.Entry == nil {
			return ""
		}
	case *record.AgentWaits, *record.BuildProducts:
	default:
		return ""
	}
	return in.TaskID + "  " + says
}

// maxSaid is the number of characters of an event's line that a run prints at most.
const maxSaid = 400

// spent returns the iterations and the duration of a task so far.
func (p *runLines) spent(task string) string {
	of := p.work(task)
	if of.begun.IsZero() {
		return ""
	}
	return fmt.Sprintf(", %s, %s", text.Plural(max(of.iter, 1), "iteration"), view.Span(p.now().Sub(of.begun)))
}

// line prints a text above the live line, in the style of an event and with its time. Without an event it uses the
// current time.
func (p *runLines) line(ts string, e record.Event, says string) {
	p.clearLive()
	at := record.ParseTime(ts)
	if at.IsZero() {
		at = p.now()
	}
	fmt.Fprintln(p.out, p.Term.RunLine(at, e, text.VisibleLine(p.Of+says)))
	p.drawLive()
}

// Tell prints a line on the terminal, even if standard output is redirected.
func (p *runLines) Tell(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clearLive()
	line = "git-tilth: " + line
	if p.errTTY {
		line = p.Term.Fold(line)
	}
	fmt.Fprintln(p.err, line)
	p.drawLive()
}
