package view

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/git-tilth/git-tilth/internal/agent"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
)

// Review is the result of a session for its user, and `review --json`. The caller fills in the parts from git and the
// suggested commands.
type Review struct {
	SessionID string       `json:"session_id"`
	Label     string       `json:"label,omitempty"`
	Branch    string       `json:"branch"`
	Base      string       `json:"base,omitempty"` // commit at which the branch begins
	State     string       `json:"-"`
	Word      string       `json:"state"`
	Stop      string       `json:"stop"`
	Why       string       `json:"why,omitempty"`       // the last run failed, in the words of whoever objected
	Mend      string       `json:"mend,omitempty"`      // what the last stop said is to be done before a resume
	Reset     string       `json:"reset,omitempty"`     // when the usage limit ends that stopped it, where that was said
	HookSaid  []string     `json:"hook_said,omitempty"` // of a commit that was refused, whole
	Cost      float64      `json:"cost"`
	Tokens    int64        `json:"tokens"`
	Begun     string       `json:"begun,omitempty"`
	Ended     string       `json:"ended,omitempty"`
	Next      string       `json:"next"` // the first of Commands
	Commands  []Command    `json:"commands"`
	Tasks     []ReviewTask `json:"tasks"`
	Edited    []string     `json:"edited_submodules,omitempty"` // in worktrees: no commit holds these edits
	Gone      bool         `json:"-"`                           // the branch is
	Worktree  string       `json:"-"`
	counts    session.TaskCounts
	whyTask   string // of Why
}

// ReviewTask is one task of a review.
type ReviewTask struct {
	ID            string   `json:"id"`
	Title         string   `json:"title"`
	Status        string   `json:"status"`
	Reason        string   `json:"reason"`          // it is not done, in one line
	Commit        string   `json:"commit"`          // as it is on the branch
	Taken         string   `json:"taken,omitempty"` // the branch into which it was taken
	Cost          float64  `json:"cost"`
	Tokens        int64    `json:"tokens"`
	Iterations    int64    `json:"iterations"`
	Rejections    int64    `json:"rejections"`
	Verdict       string   `json:"verdict"`      // the last one
	By            string   `json:"by,omitempty"` // who gave it, if not the evaluator
	Concern       string   `json:"concern"`      // of the last rejection
	Uncertainties []string `json:"uncertainties"`
	WorkArounds   []string `json:"work_arounds"`
	TestsChanged  []string `json:"tests_changed"`
	Touches       []string `json:"touches,omitempty"` // the paths that it was to touch
	Strayed       []string `json:"strayed,omitempty"` // the files that it changed beside those
	Files         int      `json:"files"`
	Insertions    int      `json:"insertions"`
	Deletions     int      `json:"deletions"`
	Aside         *Aside   `json:"aside,omitempty"`
	Summary       string   `json:"summary,omitempty"` // of its last case

	Coverage   []coverage `json:"coverage,omitempty"`
	Rejected   []string   `json:"rejected,omitempty"` // each rejection in a line, oldest first
	Validators []string   `json:"validators,omitempty"`
	Changed    []string   `json:"changed,omitempty"` // its files, with the lines of each

	// Workers are the programs that worked on the task if there are several, Reviewers those that gave verdicts.
	Workers   []string `json:"workers,omitempty"`
	Reviewers []string `json:"reviewers,omitempty"`
	Takeovers []string `json:"takeovers,omitempty"` // who took over from whom and why, newest first
	Cuts      []string `json:"cuts,omitempty"`      // turns that were ended when the program had gone on, newest first

	// Cause is the end of Reason: the words of the validator, hook or reviewer.
	Cause string `json:"cause,omitempty"`

	failure   *failure
	help      string // the command that helps against it
	begun     bool
	given     bool // a verdict, by whose conversation is the next one, the last event first
	unchecked bool // there were validators, none of which ran
}

// Aside is the partial work of a failed task that is not on the branch.
type Aside struct {
	Ref   string   `json:"ref"`   // in kept.git
	Files []string `json:"files"` // with the lines of each
}

// coverage is a case's entry for one acceptance criterion.
type coverage struct {
	Criterion   string `json:"criterion"`
	AddressedBy string `json:"addressed_by"`
	Evidence    string `json:"evidence"`
}

// NewReview makes the review of a session from its record. d has the fields that show prints.
func NewReview(s *session.Session, d Detail) *Review {
	r := &Review{SessionID: d.ID, Label: d.Label, Branch: d.Branch, State: d.State, Word: d.Word, Stop: d.LastStop,
		Cost: d.Cost, Tokens: d.TokensUsed, Worktree: d.Worktree.Path, counts: d.Tasks, Commands: []Command{},
		Tasks: []ReviewTask{}, Begun: deref(d.Summary.StartedAt),
		Ended: cmp.Or(d.LastStopAt, deref(d.Summary.LastEventAt))}
	if d.Failure != nil {
		r.Why, r.HookSaid, r.Mend, r.whyTask = d.Failure.String(), d.Failure.Words, d.Failure.Hint, d.Failure.Task
	}
	if st := d.Summary.State; st != nil {
		r.Base = st.Base
		if st.Stopped != nil && r.Stop == record.UsageLimit {
			r.Reset = st.Stopped.Reset
		}
	}
	touches := map[string][]string{}
	for _, t := range d.Plan {
		touches[t.ID] = t.Touches
	}
	for _, j := range d.tasks() {
		r.Tasks = append(r.Tasks, ReviewTask{ID: j.ID, Title: j.Title, Status: j.Status, Commit: j.Commit, Cost: j.Cost,
			Tokens: j.Tokens, Iterations: j.Iterations, Rejections: j.Rejects, Reason: missing(j),
			Uncertainties: []string{}, WorkArounds: []string{}, TestsChanged: []string{}, failure: d.failureOf(j),
			help: helpIn(d.Summary.State, j.ID), Touches: touches[j.ID], begun: j.Attempts > 0})
	}
	// What of a record cannot be read, list and show say.
	_, _ = record.Tail(s.Path(session.RecordFile), func(l record.Line) bool {
		switch l.Type {
		case "evaluator_verdict", "validator_run", "task_marked":
			ev := l.Event()
			if t := r.Task(ev.Common().TaskID); t != nil {
				t.see(ev)
			}
		case "agent_session":
			if ev, ok := l.Event().(*record.AgentSession); ok {
				r.Task(ev.TaskID).worked(ev)
			}
		case "model_call":
			if !bytes.Contains(l.Raw, []byte(`"`+record.HealthCut+`"`)) {
				break
			}
			call, ok := l.Event().(*record.ModelCall)
			if t := r.Task(call.TaskID); ok && t != nil && call.Health == record.HealthCut &&
				len(t.Cuts) < maxRejections {
				t.Cuts = append(t.Cuts, oneLine(call.Error))
			}
		}
		return true
	}, "evaluator_verdict", "validator_run", "task_marked", "agent_session", "model_call")
	for i := range r.Tasks {
		t := &r.Tasks[i]
		slices.Reverse(t.Rejected)
		t.Rejected = eachOnce(t.Rejected)
		slices.Reverse(t.Workers)
		slices.Reverse(t.Reviewers)
		if t.Status != session.TaskDone {
			t.Reason = cmp.Or(t.Reason, t.whyNot(d))
		}
	}
	return r
}

// failureOf is how a task that is not done failed last, nil if it never did.
func (d Detail) failureOf(j taskJSON) *failure {
	if d.Summary.State == nil || j.Status == session.TaskDone {
		return nil
	}
	was := d.Summary.State.Tasks[j.ID].Failure
	if was == nil {
		return nil
	}
	f := &failure{Reason: oneLine(was.Reason), Detail: lessCap(oneLine(was.Detail))}
	f.objections(j.ID, was.Objected)
	f.repeated(was)
	return f
}

func missing(j taskJSON) string {
	if j.Missing == "" || j.Status != session.TaskDone {
		return ""
	}
	return "its commit " + j.Missing[:min(len(j.Missing), 10)] + " is no longer on the branch"
}

// Task is the task with an id, nil for none.
func (r *Review) Task(id string) *ReviewTask {
	if i := slices.IndexFunc(r.Tasks, func(t ReviewTask) bool { return t.ID == id }); i >= 0 {
		return &r.Tasks[i]
	}
	return nil
}

// maxRejections is how many rejections of a task a review reads.
const maxRejections = 100

// eachOnce merges equal lines into one with a count.
func eachOnce(lines []string) (out []string) {
	counts := map[string]int{}
	for _, l := range lines {
		counts[l]++
	}
	for _, l := range lines {
		switch n := counts[l]; {
		case n == 1:
			out = append(out, l)
		case n > 1:
			out = append(out, fmt.Sprintf("%s (%d times)", l, n))
		}
		counts[l] = 0
	}
	return out
}

// see adds an event of the task, the last event first.
func (t *ReviewTask) see(ev record.Event) {
	if v, ok := ev.(*record.EvaluatorVerdict); ok {
		t.seeVerdict(v)
	}
	if v, ok := ev.(*record.ValidatorRun); ok && t.Validators == nil {
		for _, r := range v.Results {
			t.Validators = append(t.Validators, resultLine(r))
		}
		t.unchecked = len(v.Results) > 0 && !slices.ContainsFunc(v.Results, ran)
	}
	if m, ok := ev.(*record.TaskMarked); ok && t.Status == session.TaskSkipped && m.Mark == "skipped" {
		t.Reason = cmp.Or(t.Reason, oneLine(m.Note), "by you")
	}
}

// worked notes the program of a conversation about the task, the last one first.
func (t *ReviewTask) worked(ev *record.AgentSession) {
	if t == nil {
		return
	}
	if ev.How == agent.TookOver {
		t.Takeovers = append(t.Takeovers, oneLine(ev.Agent+" took over: "+ev.Why))
	}
	who := &t.Workers
	if ev.Role == record.RoleEvaluator {
		if !t.given {
			return // it came to no verdict: at its limit, or nobody could read what it said
		}
		who, t.given = &t.Reviewers, false
	}
	if name := oneLine(ev.Agent); len(*who) == 0 || (*who)[len(*who)-1] != name {
		*who = append(*who, name)
	}
}

func (t *ReviewTask) seeVerdict(v *record.EvaluatorVerdict) {
	if t.Verdict == "" {
		t.seeCase(v)
	}
	t.given = v.By == "" && v.CarriedFrom == ""
	if v.Accepted() {
		return
	}
	says := joined(": ", oneLine(deref(v.RejectionCategory)), oneLine(deref(v.Concern)))
	t.Concern = cmp.Or(t.Concern, says)
	if len(t.Rejected) < maxRejections {
		t.Rejected = append(t.Rejected, record.WithNext(says, oneLine(deref(v.NextStep))))
	}
}

func (t *ReviewTask) seeCase(v *record.EvaluatorVerdict) {
	t.Verdict, t.By = verdictOf(v), v.By
	var c struct {
		Summary       string     `json:"summary"`
		Coverage      []coverage `json:"ac_coverage"`
		WorkArounds   []string   `json:"work_arounds"`
		Uncertainties []string   `json:"uncertainties"`
	}
	_ = json.Unmarshal(v.Case, &c) // what is not as it should be is left out
	t.Summary, t.Coverage = cmp.Or(oneLine(c.Summary), oneLine(v.Summary)), c.Coverage
	for _, s := range c.WorkArounds {
		t.WorkArounds = append(t.WorkArounds, oneLine(s))
	}
	for _, s := range c.Uncertainties {
		t.Uncertainties = append(t.Uncertainties, oneLine(s))
	}
	t.TestsChanged = append(t.TestsChanged, v.TestsChanged...)
	for i := range t.TestsChanged {
		t.TestsChanged[i] = oneLine(t.TestsChanged[i])
	}
}

const notBegun = "not started"

// whyNot is why a task is not done, in one line.
func (t *ReviewTask) whyNot(d Detail) string {
	refused := d.LastStop == record.CommitRefused && d.Failure != nil && d.Failure.Task == t.ID
	if f := t.failure; f != nil && t.Status == session.TaskFailed {
		t.Cause = cmp.Or(f.last, f.Detail)
		return joined(": ", inWords(f.Reason), t.Cause)
	} else if refused && t.Status == session.TaskPending {
		t.Cause = d.Failure.Detail
		return "accepted, not committed: " + t.Cause
	} else if f != nil && t.Status == session.TaskPending {
		t.Cause = joined(": ", "failed before", cmp.Or(f.last, f.Detail, inWords(f.Reason)))
		return "pending again; " + t.Cause
	}
	i := session.IndexOf(d.Plan, t.ID)
	of := d.Summary.Tasks[t.ID]
	if t.Status == session.TaskFailed && of != nil {
		return inWords(of.FailureReason)
	}
	if open := d.Plan[i].WaitsFor(d.Plan); len(open) > 0 && t.Status == session.TaskPending {
		return "waits for " + strings.Join(open, ", ")
	}
	switch {
	case t.Status == session.TaskPending && t.Iterations > 0 && of.Status == session.TaskPending:
		return "pending again"
	case t.Status == session.TaskPending && (t.Iterations > 0 || t.begun && of.Status == record.Working):
		return "started, not finished"
	case t.Status == session.TaskPending:
		return notBegun
	}
	return ""
}

// risk is a point to check before taking a task's change.
type risk struct{ task, says string }

// risks returns the points to check of all tasks. Changed tests come first, because the end may be cut.
func (r *Review) risks() (all []risk) {
	for _, t := range r.Tasks {
		for _, s := range t.TestsChanged {
			all = append(all, risk{t.ID, changedTest + s})
		}
	}
	for _, t := range r.Tasks {
		for _, s := range t.risks()[len(t.TestsChanged):] {
			all = append(all, risk{t.ID, s})
		}
	}
	return all
}

const changedTest = "changed the test "

// risks returns the points to check before taking the task's change, one a line.
func (t *ReviewTask) risks() (lines []string) {
	for _, s := range t.TestsChanged {
		lines = append(lines, changedTest+s)
	}
	for _, s := range t.WorkArounds {
		lines = append(lines, "work-around: "+s)
	}
	for _, s := range t.Uncertainties {
		lines = append(lines, "unsure: "+s)
	}
	if len(t.Strayed) > 0 {
		lines = append(lines, "changed files outside its touches: "+oneLine(strings.Join(t.Strayed, ", ")))
	}
	if len(t.Workers) > 1 {
		lines = append(lines, "done by "+strings.Join(t.Workers, ", then "))
	}
	if len(t.Reviewers) > 1 {
		lines = append(lines, "reviewed by "+strings.Join(t.Reviewers, ", then "))
	}
	lines = append(lines, t.Takeovers...)
	for _, s := range t.Cuts {
		lines = append(lines, "turn stopped after the program reported: "+s)
	}
	if t.Status == session.TaskDone {
		if t.unchecked {
			lines = append(lines, "no validator ran: "+strings.Join(t.Validators, ", "))
		}
		if t.Rejections > 0 && t.Concern != "" {
			lines = append(lines, "rejected "+times(t.Rejections)+", last: "+t.Concern)
		}
		if t.By == record.ByPerson {
			lines = append(lines, "marked done by you, not reviewed")
		}
	}
	return lines
}

// span is from when to when the run went, in local time.
func (r *Review) span() string {
	from, to := record.ParseTime(r.Begun), record.ParseTime(r.Ended)
	if from.IsZero() || to.IsZero() {
		return ""
	}
	clock := func(t time.Time) string { return t.Local().Format("Jan 2 15:04") }
	when, until := clock(from), clock(to)
	if day := from.Local().Format("Jan 2 "); when != until {
		when += " to " + strings.TrimPrefix(until, day)
	}
	return when + " (" + Span(to.Sub(from)) + ")"
}
