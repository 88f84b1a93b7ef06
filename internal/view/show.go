package view

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"sort"
	"strings"
	"time"

	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
)

// Detail is one session as show prints it. The parts that git and the agent programs
// know are filled in by the caller.
type Detail struct {
	Overview      session.Overview
	Plan          []session.Task
	Summary       *session.Summary // nil if the record could not be read
	Usage         session.Usage    // of the checkpoint
	Worktree      Worktree
	Conversations []Conversation
	Resume        string // what `resume` would do, one line
}

// Worktree is a session's worktree as git sees it.
type Worktree struct {
	Path    string `json:"path"`
	State   string `json:"state"`             // ok, or what is wrong: missing, not registered, on another branch…
	Head    string `json:"head,omitempty"`    // the branch's tip
	Commits int    `json:"commits"`           // since the seed
	Dirty   bool   `json:"dirty"`             // has changes that are not committed
	Subject string `json:"subject,omitempty"` // of the tip
}

// Conversation is a stored conversation of a task, and whether it can be resumed.
type Conversation struct {
	Task      string  `json:"task"`
	Agent     string  `json:"agent"`
	ID        string  `json:"id"`
	Model     string  `json:"model,omitempty"`
	LastUsed  string  `json:"last_used,omitempty"`
	Attempts  int     `json:"attempts"`
	Tokens    int64   `json:"tokens"`
	Cost      float64 `json:"cost"`
	Resumable bool    `json:"resumable"`
	Why       string  `json:"why,omitempty"` // why not, or how it was found
}

// ShowOptions say how show prints.
type ShowOptions struct {
	Terminal
	JSON bool
	Now  time.Time
}

// detailJSON is `show --json`: a row of list, and more.
type detailJSON struct {
	Row
	Models        map[string]string `json:"models,omitempty"`
	Limits        json.RawMessage   `json:"limits,omitempty"`
	Usage         session.Usage     `json:"usage"`
	Plan          []taskJSON        `json:"plan"`
	Worktree      Worktree          `json:"worktree"`
	Conversations []Conversation    `json:"conversations"`
	Skipped       int64             `json:"skipped"` // lines of the record that are no events
	Resume        string            `json:"resume"`
}

type taskJSON struct {
	ID            string  `json:"id"`
	Title         string  `json:"title"`
	Status        string  `json:"status"`
	Attempts      int64   `json:"attempts"`
	Iterations    int64   `json:"iterations"`
	Tokens        int64   `json:"tokens"`
	Cost          float64 `json:"cost"`
	Accepts       int64   `json:"accepts"`
	Rejects       int64   `json:"rejects"`
	FailureReason string  `json:"failure_reason,omitempty"`
	Commit        string  `json:"commit,omitempty"`
}

// Show prints one session.
func Show(w io.Writer, d Detail, o ShowOptions) error {
	tasks := d.tasks()
	if o.JSON {
		j := detailJSON{Row: RowOf(d.Overview), Usage: d.Usage, Plan: tasks, Worktree: d.Worktree, Conversations: d.Conversations, Resume: d.Resume}
		if j.Conversations == nil {
			j.Conversations = []Conversation{}
		}
		if d.Summary != nil {
			j.Models, j.Limits, j.Skipped = d.Summary.Models, d.Summary.Limits, d.Summary.Skipped
		}
		return writeJSON(w, j)
	}
	out := bufio.NewWriter(w)
	sh := shower{out: out, term: o.Terminal, now: o.Now}
	sh.facts(d)
	sh.tasks(tasks)
	sh.usage(d)
	sh.conversations(d.Conversations)
	if d.Resume != "" {
		sh.heading("resume")
		sh.line("  " + text.VisibleLine(d.Resume))
	}
	return out.Flush()
}

// tasks joins the plan with what the record says of each task.
func (d Detail) tasks() []taskJSON {
	out := make([]taskJSON, 0, len(d.Plan))
	for _, t := range d.Plan {
		j := taskJSON{ID: t.ID, Title: t.Title, Status: t.Status}
		if d.Summary != nil && d.Summary.Tasks[t.ID] != nil {
			s := d.Summary.Tasks[t.ID]
			j.Attempts, j.Iterations, j.Tokens, j.Cost = s.Attempts, s.Iterations, s.Tokens, s.Cost
			j.Accepts, j.Rejects, j.Commit = s.Evaluator.Accepts, s.Evaluator.Rejects, s.Commit
			if t.Status != session.TaskDone {
				j.FailureReason = s.FailureReason
			}
		}
		out = append(out, j)
	}
	return out
}

type shower struct {
	out  *bufio.Writer
	term Terminal
	now  time.Time
}

func (s shower) line(text string) { s.out.WriteString(text + "\n") }

func (s shower) heading(name string) {
	if s.term.TTY {
		s.line("")
	}
	s.line(s.term.paint(bold, name))
}

func (s shower) fact(name, value, style string) {
	if value == "" {
		return
	}
	value = text.VisibleLine(value)
	if !s.term.TTY {
		s.line(name + "\t" + value)
		return
	}
	s.line(s.term.paint(dim, fmt.Sprintf("%-10s", name)) + " " + s.term.paint(style, value))
}

func (s shower) facts(d Detail) {
	o := d.Overview
	state := State(o)
	s.fact("session", o.ID, bold)
	s.fact("label", o.Label, plain)
	s.fact("status", state+stopPhrase(o), stateStyle(state))
	if o.Busy != nil {
		s.fact("held by", strings.TrimPrefix(o.Busy.Error(), "the session is in use by "), plain)
	}
	s.fact("source", o.Source, plain)
	s.fact("branch", o.Branch+tipPhrase(d.Worktree), plain)
	worktreeStyle := plain
	if d.Worktree.State != "" && d.Worktree.State != "ok" {
		worktreeStyle = red
	}
	path := d.Worktree.Path
	if path == "" {
		path = o.Workspace
	}
	s.fact("worktree", path+worktreePhrase(d.Worktree), worktreeStyle)
	s.fact("begun", withAge(s.now, startOf(o)), plain)
	s.fact("last event", withAge(s.now, parseTime(o.LastEventAt)), plain)
	if d.Summary != nil {
		for _, role := range sortedKeys(d.Summary.Models) {
			s.fact(role, d.Summary.Models[role], plain)
		}
		if n := d.Summary.Skipped; n > 0 {
			s.fact("skipped", fmt.Sprintf("lines of the record that are no events: %d", n), red)
		}
	}
	for _, p := range o.Problems {
		s.fact("problem", p, red)
	}
}

func stopPhrase(o session.Overview) string {
	if o.LastStop == "" || o.LastStop == "all_done" {
		return ""
	}
	return " (last stop: " + o.LastStop + ")"
}

func tipPhrase(w Worktree) string {
	if w.Head == "" {
		return ""
	}
	s := " at " + w.Head[:min(len(w.Head), 10)]
	if w.Commits > 0 {
		s += fmt.Sprintf(", %d after the seed", w.Commits)
	}
	return s
}

func worktreePhrase(w Worktree) string {
	switch {
	case w.State == "":
		return ""
	case w.State != "ok":
		return " (" + w.State + ")"
	case w.Dirty:
		return " (uncommitted changes)"
	}
	return " (clean)"
}

func withAge(now, t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Local().Format("2006-01-02 15:04:05") + " (" + Age(now, t) + ")"
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

func (s shower) tasks(tasks []taskJSON) {
	if len(tasks) == 0 {
		return
	}
	s.heading("tasks")
	t := table{term: s.term, columns: []column{{name: "TASK"}, {name: "STATUS"}, {name: "ITER", right: true}, {name: "REJECTED", right: true},
		{name: "TOKENS", right: true}, {name: "COST", right: true}, {name: "COMMIT"}, {name: "TITLE", grow: true}}}
	for _, j := range tasks {
		status := j.Status
		if j.FailureReason != "" {
			status += ": " + j.FailureReason
		}
		t.add(cell{j.ID, plain}, cell{status, taskStyle(j.Status)}, cell{numberOrNothing(j.Iterations), plain}, cell{numberOrNothing(j.Rejects), plain},
			cell{Count(j.Tokens), plain}, cell{costOrNothing(j.Cost), plain}, cell{j.Commit[:min(len(j.Commit), 10)], dim}, cell{j.Title, plain})
	}
	s.table(t)
}

// table prints a part of the whole, which flushes at the end.
func (s shower) table(t table) {
	if s.term.TTY {
		t.aligned(s.out)
	} else {
		t.separated(s.out)
	}
}

func taskStyle(status string) string {
	switch status {
	case session.TaskDone:
		return green
	case session.TaskFailed:
		return red
	}
	return plain
}

func numberOrNothing(n int64) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprint(n)
}

// usage shows what each role spent, and how near each cap is.
func (s shower) usage(d Detail) {
	s.heading("usage")
	u := d.Usage
	if u.Total() == 0 && d.Summary != nil {
		u = d.Summary.Usage
	}
	t := table{term: s.term, columns: []column{{name: "ROLE"}, {name: "CALLS", right: true}, {name: "PROMPT", right: true}, {name: "CACHED", right: true},
		{name: "ANSWER", right: true}, {name: "COST", right: true}}}
	for _, role := range []string{session.RoleWorker, session.RoleEvaluator, session.RoleInterview, session.RoleSelfImprove} {
		r := u.Role(role)
		if r.Calls == 0 && r.Total() == 0 {
			continue
		}
		t.add(cell{role, plain}, cell{fmt.Sprint(r.Calls), plain}, cell{Count(r.PromptTokens), plain}, cell{percent(float64(r.CachedTokens), float64(r.PromptTokens)), dim},
			cell{Count(r.EvalTokens), plain}, cell{costOrNothing(r.Cost), plain})
	}
	if len(t.rows) > 0 {
		s.table(t)
	}
	s.fact("tokens", Count(d.Overview.TokensUsed)+capPhrase(float64(d.Overview.TokensUsed), d.limit("max_tokens", "tokens"), func(v float64) string { return Count(int64(v)) }), plain)
	if d.Overview.Cost > 0 {
		s.fact("cost", Money(d.Overview.Cost)+capPhrase(d.Overview.Cost, d.limit("max_cost", "cost"), Money), plain)
	}
}

func capPhrase(used, limit float64, unit func(float64) string) string {
	if limit <= 0 {
		return ""
	}
	return " of " + unit(limit) + " (" + percent(used, limit) + ")"
}

// limit is a cap from the latest session_start that has caps.
func (d Detail) limit(names ...string) float64 {
	if d.Summary == nil {
		return 0
	}
	var limits map[string]any
	if json.Unmarshal(d.Summary.Limits, &limits) != nil {
		return 0
	}
	for _, n := range names {
		if v, ok := limits[n].(float64); ok {
			return v
		}
	}
	return 0
}

func (s shower) conversations(list []Conversation) {
	if len(list) == 0 {
		return
	}
	s.heading("conversations")
	t := table{term: s.term, columns: []column{{name: "TASK"}, {name: "AGENT"}, {name: "RESUMABLE"}, {name: "ID"}, {name: "LAST USED"}, {name: "WHY", grow: true}}}
	for _, c := range list {
		yes, style := "no", yellow
		if c.Resumable {
			yes, style = "yes", green
		}
		t.add(cell{c.Task, plain}, cell{c.Agent, plain}, cell{yes, style}, cell{c.ID, dim}, cell{Age(s.now, parseTime(c.LastUsed)), plain}, cell{c.Why, plain})
	}
	s.table(t)
}
