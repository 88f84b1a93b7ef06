// Package progress shows a run at the terminal as it happens, and how it ended.
package progress

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/git-tilth/git-tilth/internal/agent"
	"github.com/git-tilth/git-tilth/internal/config"
	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
	"github.com/git-tilth/git-tilth/internal/view"
)

// Lines shows a run: one line for each important event and, on a terminal, a live last line; with --json the events. It
// shows the record and decides nothing.
type Lines struct {
	out    io.Writer
	err    io.Writer
	errTTY bool
	Term   view.Terminal
	term   func() view.Terminal // as it is now: people make terminals wider and narrower
	Caps   config.Caps
	since  time.Time
	idle   time.Time     // since when a usage limit is waited for; zero where none is
	still  time.Duration // waited for usage limits until then
	now    func() time.Time
	Of     string // begins each line of a run that is one of several, "" for the only one

	mu     sync.Mutex
	titles map[string]string
	plan   func() ([]session.Task, error)
	at     map[string]*atWork // by task
	iter   int                // of the last event
	bare   bool               // that there are no validators was said
	tokens int64
	cost   float64
	shown  []int       // the columns of each live line that is on the screen
	timer  *time.Timer // redraws them; nil where there are none
}

// atWork is a task that is worked on.
type atWork struct {
	iter  int
	begun time.Time  // zero where that was in an earlier run
	cost  float64    // since then
	doing view.Doing // what its worker does, or the validator
	waits string     // what an agent program that says nothing is doing, "" while it does say something
}

// work returns the state of an event's task if a worker is at it, else an unused one.
func (p *Lines) work(task string) *atWork {
	if of := p.at[task]; of != nil {
		return of
	}
	return &atWork{}
}

// New shows the runs of a session on a terminal. tty says that errors can be read there too.
func New(s *session.Session, term func() view.Terminal, out, err io.Writer, tty bool) *Lines {
	pr := &Lines{
		out: out, err: err, errTTY: tty, Term: term(), term: term, now: time.Now, since: time.Now(),
		titles: map[string]string{}, plan: s.Tasks, at: map[string]*atWork{},
	}
	if check, err := s.Checkpoint(); err == nil {
		pr.tokens, pr.cost = check.TokensUsed, check.Usage.Sum().Cost
	}
	return pr
}

// Name learns the tasks' titles.
func (p *Lines) Name() {
	if tasks, err := p.plan(); err == nil {
		for _, t := range tasks {
			p.titles[t.ID] = t.Title
		}
	}
}

// Start prints a first line and starts the live line.
func (p *Lines) Start(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Name()
	if p.Term.JSON {
		return
	}
	p.line("", nil, line)
	if p.Term.TTY && p.timer == nil && p.Of == "" {
		p.timer = time.AfterFunc(time.Second, p.redraw)
	}
}

// Bounds prints the limits of the run.
func (p *Lines) Bounds(h *held.Handle) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.Term.JSON {
		return
	}
	var parts []string
	add := func(name, format string, say func(float64) string) {
		if limit := p.Caps[name]; limit > 0 {
			parts = append(parts, fmt.Sprintf(format, say(limit)))
		}
	}
	plain := func(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }
	spent := func(used string, any bool) string {
		if !any {
			return ""
		}
		return " (" + used + " used)"
	}
	tokens, cost := h.Checkpoint.TokensUsed, h.Checkpoint.Usage.Sum().Cost
	add(config.MaxMinutes, "%s minutes", plain)
	add(config.MaxTokens, "%s tokens"+spent(view.Count(tokens), tokens > 0),
		func(n float64) string { return view.Count(int64(n)) })
	add(config.MaxCost, "%s"+spent(view.Money(cost), cost > 0), view.Money)
	add(config.MaxIterations, "%s iterations per task", plain)
	add(config.MaxEvaluatorCalls, "%s reviews per task", plain)
	p.line("", nil, "caps: "+strings.Join(parts, ", "))
}

// redraw keeps the live line true while nothing happens.
func (p *Lines) redraw() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer != nil {
		p.drawLive()
		p.timer.Reset(time.Second)
	}
}

// Event is the record's sink.
func (p *Lines) Event(l record.Line) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.idle.IsZero() {
		p.still, p.idle = p.still+p.now().Sub(p.idle), time.Time{}
	}
	if p.Term.JSON {
		p.out.Write(append(append([]byte{}, l.Raw...), '\n'))
		return
	}
	task, _ := l.Task()
	of := p.work(task)
	of.waits = ""
	of.doing.Feed(l)
	if l.Type == "tool_call" {
		p.drawLive()
	}
	if quietEvents[l.Type] {
		return
	}
	e := l.Event()
	if in := e.Common(); in.TaskID != "" {
		p.iter, of.iter = in.Iter, in.Iter
	}
	if call, ok := e.(*record.ModelCall); ok {
		p.tokens = max(p.tokens, call.TokensUsedTotal)
		if call.Cost != nil {
			p.cost, of.cost = p.cost+*call.Cost, of.cost+*call.Cost
		}
	}
	if text := p.describe(e); text != "" {
		if w, ok := e.(*record.AgentWaits); ok {
			of.waits = view.WaitLine(w)
		}
		p.line(l.TS, e, text)
	} else {
		p.drawLive()
	}
	if ends(e) {
		delete(p.at, task)
	}
}

// ends reports whether an event is the end of its task.
func ends(e record.Event) bool {
	c, committed := e.(*record.Commit)
	_, failed := e.(*record.TaskFailed)
	return failed || committed && !c.Placeholder
}

// quietEvents are for the record, not for the screen, and are not even decoded.
var quietEvents = map[string]bool{
	"prompt_assembled": true, "memory_load": true, "tool_call": true, "tool_result": true, "ledger_appended": true,
	"session_start": true, "session_resume": true, "stop": true, "hook_run": true,
}

// describe is the line of an event, "" for none: its words after its task and, within one, its iteration.
func (p *Lines) describe(e record.Event) string {
	in := e.Common()
	_, says := view.Line(e, nil)
	says = text.Clip(text.OneLine(text.HeadBytes(says, maxSaid*4)), maxSaid)
	switch e := e.(type) {
	case *record.Preflight:
		p.bare = !slices.ContainsFunc(e.Checks, record.PreflightCheck.OfValidator)
		if !e.Passed && p.Term.TTY && p.errTTY {
			return "preflight: failed" // the end says each finding on a line of its own
		}
		return says
	case *record.LogRepaired:
		return says
	case *record.ContextReset:
		p.at[e.TaskID] = &atWork{begun: p.now()}
		says = p.titles[e.TaskID]
	case *record.ModelCall:
		if view.Healthy(e) {
			return ""
		}
	case *record.ValidatorRun:
		bare := p.bare
		if p.bare = len(e.Results) == 0; bare && p.bare {
			return ""
		}
		says = fmt.Sprintf("iter %d  %s", in.Iter, says)
	case *record.EvaluatorVerdict:
		if e.Accepted() && e.By == "" {
			return "" // the commit says so
		}
		says = fmt.Sprintf("iter %d  %s", in.Iter, says)
	case *record.Nudge, *record.PreToolBlock, *record.CaseParseError, *record.EvaluatorParseError:
		says = fmt.Sprintf("iter %d  %s", in.Iter, says)
	case *record.Commit:
		if !e.Placeholder {
			says += p.spent(e.TaskID)
		}
	case *record.TaskFailed:
		says = strings.TrimSuffix(says, ".") + p.spent(e.TaskID)
	case *record.AgentSession:
		switch {
		case e.How == agent.TookOver && e.Role == record.RoleEvaluator:
			says = fmt.Sprintf("%s reviews instead: %s", e.Agent, text.Clip(text.OneLine(e.Why), maxSaid))
		case e.How == agent.TookOver:
			says = fmt.Sprintf("%s continues the task: %s", e.Agent, text.Clip(text.OneLine(e.Why), maxSaid))
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

// maxSaid is how many characters of an event's line a run prints.
const maxSaid = 400

// spent returns the usage of a task so far.
func (p *Lines) spent(task string) string {
	of := p.work(task)
	if of.begun.IsZero() {
		return ""
	}
	s := fmt.Sprintf(", %s, %s", text.Plural(max(of.iter, 1), "iteration"), view.Span(p.now().Sub(of.begun)))
	if of.cost > 0 {
		s += ", " + view.Money(of.cost)
	}
	return s
}

// line prints a text in the style of an event above the live line, with the event's time, or the current time for nil.
func (p *Lines) line(ts string, e record.Event, says string) {
	p.clearLive()
	at := record.ParseTime(ts)
	if at.IsZero() {
		at = p.now()
	}
	fmt.Fprintln(p.Term.Writer(p.out), p.Term.RunLine(at, e, text.VisibleLine(p.Of+says)))
	p.drawLive()
}

// clearLive takes the live lines off the screen. A terminal that was made narrower since has broken them.
func (p *Lines) clearLive() {
	p.Term = p.term()
	rows := 0
	for _, columns := range p.shown {
		rows++
		if p.Term.Width > 0 {
			rows += max(columns-1, 0) / p.Term.Width
		}
	}
	if rows > 0 {
		fmt.Fprint(p.out, "\r\x1b[K"+strings.Repeat("\x1b[A\x1b[K", rows-1))
	}
	p.shown = nil
}

// between are the parts of the last line.
const between = " · "

// maxRows bounds the lines of tasks at work: those that have left the screen could not be taken back.
const maxRows = 12

// drawLive redraws the last line: task, iteration and cap, tokens, cost, time and the worker's activity. With several
// running tasks each has its own line above it.
func (p *Lines) drawLive() {
	if p.timer == nil {
		return
	}
	p.clearLive()
	var lines []string
	sum := []string{view.Count(p.tokens) + " tokens"}
	if p.cost > 0 {
		sum = append(sum, view.Money(p.cost))
	}
	sum = append(sum, view.Span(p.now().Sub(p.since)))
	tasks := slices.Sorted(maps.Keys(p.at))
	if n := len(tasks) - maxRows; n > 0 {
		sum = append([]string{fmt.Sprintf("%d more running", n)}, sum...)
	}
	for _, task := range tasks[:min(len(tasks), maxRows)] {
		of := p.at[task]
		row := []string{fmt.Sprintf("%s  iteration %d of %d", task, max(of.iter, 1), int(p.Caps[config.MaxIterations]))}
		if len(tasks) == 1 {
			row, sum = append(row, sum...), nil
		}
		lines = append(lines, p.fits(row, of))
	}
	if sum != nil {
		lines = append(lines, p.fits(sum, &atWork{}))
	}
	fmt.Fprint(p.Term.Writer(p.out), "\r\x1b[K"+strings.Join(lines, "\r\n"))
	for _, line := range lines {
		p.shown = append(p.shown, utf8.RuneCountInString(line))
	}
}

// fits joins parts into a line, with the worker's activity as far as the terminal has room for it.
func (p *Lines) fits(parts []string, of *atWork) string {
	room := 0 // for any number of columns
	if p.Term.Width > 0 {
		room = max(p.Term.Width-1-utf8.RuneCountInString(strings.Join(parts, between)+between), 1)
	}
	if of.waits != "" {
		parts = append(parts, of.waits)
	} else if now := of.doing.Text(p.now(), room); now != "" {
		parts = append(parts, now)
	}
	line := []rune(strings.Join(parts, between))
	if p.Term.Width > 0 && len(line) >= p.Term.Width {
		line = line[:p.Term.Width-1]
	}
	return string(line)
}

// Waiting tells that the run waits for a usage limit.
func (p *Lines) Waiting(until time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = p.now()
	if !p.Term.JSON {
		p.line("", nil, "usage limit: waiting until "+until.Local().Format("2006-01-02 15:04:05")+"; Ctrl-C stops")
	}
}

// Validating tells which validator runs now, until the next event of its task.
func (p *Lines) Validating(task, name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.work(task).doing = view.Doing{What: "validator " + name, Since: p.now()}
	p.drawLive()
}

// Tell says something to the person at the terminal, whatever standard output is for.
func (p *Lines) Tell(line string) {
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
