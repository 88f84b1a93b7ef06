package view

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/git-tilth/git-tilth/internal/config"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
)

// Detail has the facts that only show prints.
type Detail struct {
	Usage         session.Usage  `json:"usage"` // of the checkpoint
	Worktree      Worktree       `json:"worktree"`
	Conversations []Conversation `json:"conversations"`
	Resume        string         `json:"resume"`         // the plan of `resume` in one line
	Points        []string       `json:"points"`         // points for a rewind
	Undo          string         `json:"undo,omitempty"` // the operation that an undo would take back
}

// Worktree is git's view of a session's worktree.
type Worktree struct {
	Path    string `json:"path"`
	State   string `json:"state"`             // ok, or the fault: missing, not registered, on another branch…
	Head    string `json:"head,omitempty"`    // the branch's tip
	Commits int    `json:"commits"`           // since the seed
	Dirty   bool   `json:"dirty"`             // has uncommitted changes
	Subject string `json:"subject,omitempty"` // subject of the tip
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
	// ResumeBy is how an agent by ACP takes it up: "load", "resume" or "none".
	ResumeBy  string `json:"resume_by,omitempty"`
	Uncounted bool   `json:"uncounted,omitempty"` // the agent does not report its usage
}

// Show prints one session in detail.
func (r *Report) Show(w io.Writer, o Terminal) error {
	checks := r.CheckLines(true)
	if o.JSON {
		return writeJSON(w, struct {
			row
			Detail
			Checks  []string          `json:"checks"` // of each finished task
			Models  map[string]string `json:"models,omitempty"`
			Limits  json.RawMessage   `json:"limits,omitempty"`
			Plan    []ReportTask      `json:"plan"`
			Skipped int64             `json:"skipped"` // lines of the record that are not events
		}{r.row, r.Detail, checks, r.Summary.Models, r.Summary.Limits, r.Tasks, r.Summary.Skipped})
	}
	out := bufio.NewWriter(w)
	p := printer{out, o}
	p.facts(r)
	p.tasks(r.Tasks)
	for _, line := range checks {
		fmt.Fprintln(p.out, p.term.Fold("  "+text.VisibleLine(line)))
	}
	p.usage(r)
	p.conversations(r.Conversations)
	p.fact("resume", r.Resume, plain)
	p.fact("rewind to", strings.Join(r.Points, ", "), plain)
	p.fact("undo", r.Undo, plain)
	return out.Flush()
}

// printer prints text outside tables.
type printer struct {
	out  *bufio.Writer
	term Terminal
}

func (p printer) heading(name string) {
	if p.term.TTY {
		fmt.Fprintln(p.out)
	}
	fmt.Fprintln(p.out, p.term.Paint(bold, name))
}

func (p printer) fact(name, value, style string) {
	if value == "" {
		return
	}
	value = text.VisibleLine(value)
	if !p.term.TTY {
		fmt.Fprintln(p.out, name+"\t"+value)
		return
	}
	fmt.Fprintln(p.out, p.term.Paint(dim, fmt.Sprintf("%-10s", name))+" "+p.term.Paint(style, value))
}

func (p printer) facts(r *Report) {
	o := r.Overview
	p.fact("session", o.ID, bold)
	p.fact("label", o.Label, plain)
	p.fact("fork of", o.ForkedFrom, plain)
	p.fact("status", r.State+stopPhrase(o), styles[r.State])
	if r.Failure != nil {
		p.fact("why", r.Failure.String(), red)
		p.fact("fix", r.Failure.Hint, plain)
	}
	if o.Busy != nil {
		p.fact("held by", strings.TrimPrefix(o.Busy.Error(), "the session is in use by "), plain)
	}
	if o.Request != nil {
		p.fact("request", o.Request.Line(), plain)
		p.fact("address", o.Request.URL, plain)
	}
	p.fact("source", o.Source, plain)
	p.fact("branch", o.Branch+tipPhrase(r.Worktree), plain)
	phrase, style := worktreePhrase(r.Worktree)
	p.fact("worktree", r.Worktree.Path+phrase, style)
	p.fact("started", withAge(p.term.Now, startOf(o)), plain)
	p.fact("last event", withAge(p.term.Now, record.ParseTime(o.LastEventAt)), plain)
	for _, role := range slices.Sorted(maps.Keys(r.Summary.Models)) {
		p.fact(role, r.Summary.Models[role], plain)
	}
	if n := r.Summary.Skipped; n > 0 {
		p.fact("skipped", fmt.Sprintf("lines of the record that are not events: %d", n), red)
	}
	for _, problem := range o.Problems {
		p.fact("problem", problem, red)
	}
}

func stopPhrase(o session.Overview) string {
	if o.LastStop == "" || record.ReasonOf(o.LastStop).Last {
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

func worktreePhrase(w Worktree) (phrase, style string) {
	switch {
	case w.State != "ok":
		return " (" + w.State + ")", red
	case w.Dirty:
		return " (uncommitted changes)", plain
	}
	return " (clean)", plain
}

func withAge(now, t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Local().Format("2006-01-02 15:04:05") + " (" + age(now, t) + ")"
}

func (p printer) tasks(tasks []ReportTask) {
	if len(tasks) == 0 {
		return
	}
	p.heading("tasks")
	t := table{term: p.term, columns: []column{
		{name: "TASK"}, {name: "STATUS"}, {name: "ITER", right: true, spare: true},
		{name: "REJECTED", right: true, spare: true}, {name: "TOKENS", right: true, spare: true},
		{name: "COST", right: true, spare: true}, {name: "COMMIT", spare: true},
		{name: "TITLE", grow: true},
	}}
	for _, j := range tasks {
		status := j.Status
		if j.FailureReason != "" {
			status += ": " + j.FailureReason
		}
		if len(j.WaitsFor) > 0 {
			status += ", waits for " + strings.Join(j.WaitsFor, ", ")
		}
		if j.Missing != "" {
			status += ", not on the branch"
		}
		t.add(cell{j.ID, plain}, cell{status, styles[j.Status]}, cell{orDash(j.Iterations, Count), plain},
			cell{orDash(j.Rejections, Count), plain}, cell{Count(j.Tokens), plain},
			cell{orDash(j.Cost, Money), plain},
			cell{j.Commit[:min(len(j.Commit), 10)], dim}, cell{j.Title, plain})
	}
	t.print(p.out)
}

// usage prints the usage of each role, and the used part of each cap.
func (p printer) usage(of *Report) {
	p.heading("usage")
	u := of.Usage
	if s := of.Summary.Usage; s.Sum().Total() > u.Sum().Total() {
		u = s
	}
	t := table{term: p.term, columns: []column{
		{name: "ROLE"}, {name: "CALLS", right: true, spare: true}, {name: "PROMPT", right: true},
		{name: "CACHED", right: true, spare: true}, {name: "ANSWER", right: true}, {name: "COST", right: true},
	}}
	roles := []string{record.RoleWorker, record.RoleEvaluator, record.RoleInterview, record.RoleSelfImprove}
	for _, role := range roles {
		r := u.Role(role)
		if r.Calls == 0 && r.Total() == 0 {
			continue
		}
		t.add(cell{role, plain}, cell{fmt.Sprint(r.Calls), plain}, cell{Count(r.PromptTokens), plain},
			cell{percent(float64(r.CachedTokens), float64(r.PromptTokens)), dim}, cell{Count(r.EvalTokens), plain},
			cell{orDash(r.Cost, Money), plain})
	}
	if len(t.rows) > 0 {
		t.print(p.out)
	}
	tokens := func(n float64) string { return Count(int64(n)) }
	used := float64(of.TokensUsed)
	var caps config.Caps // of the latest session_start with limits
	_ = json.Unmarshal(of.Summary.Limits, &caps)
	p.fact("tokens", tokens(used)+capPhrase(used, caps[config.MaxTokens], tokens), plain)
	if cached := u.Sum().CachedTokens; cached > 0 {
		p.fact("cached", Count(cached)+" more", plain)
	}
	if of.Cost > 0 {
		p.fact("cost", Money(of.Cost)+capPhrase(of.Cost, caps[config.MaxCost], Money), plain)
	}
}

func capPhrase(used, limit float64, unit func(float64) string) string {
	if limit <= 0 {
		return ""
	}
	return " of " + unit(limit) + " (" + percent(used, limit) + ")"
}

func (p printer) conversations(list []Conversation) {
	if len(list) == 0 {
		return
	}
	p.heading("conversations")
	t := table{term: p.term, whole: true, columns: []column{
		{name: "TASK"}, {name: "AGENT"}, {name: "RESUMABLE"}, {name: "ID", spare: true}, {name: "LAST USED",
			spare: true},
	}}
	for _, c := range list {
		yes, style := "no", yellow
		if c.Resumable {
			yes, style = "yes", green
			if c.ResumeBy != "" {
				yes += ", by " + c.ResumeBy
			}
		}
		if c.Uncounted {
			c.Why += "; usage unknown"
		}
		t.rows = append(t.rows, newRow(c.Why, cell{c.Task, plain}, cell{c.Agent, plain}, cell{yes, style},
			cell{c.ID, dim}, cell{age(p.term.Now, record.ParseTime(c.LastUsed)), plain}))
	}
	t.print(p.out)
}
