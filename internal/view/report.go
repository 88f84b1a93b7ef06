package view

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/agent"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
)

// Report is the report on a session that show, review, pr, the page and the end of a run print: its row of the list,
// its tasks, and the suggested commands. The caller of NewReport adds the parts that git and the agent programs know.
type Report struct {
	row
	Base  string `json:"base,omitempty"`  // commit at which the branch begins
	Reset string `json:"reset,omitempty"` // end of the usage limit that stopped it, if known
	Begun string `json:"begun,omitempty"`
	Ended string `json:"ended,omitempty"`
	// Waited is the time of waits for endpoints and agent programs in seconds, by the reason of record.AgentWaits.
	Waited   map[string]float64 `json:"waited,omitempty"`
	Next     string             `json:"next"` // the first of Commands
	Commands []Command          `json:"commands"`
	Onward   string             `json:"-"` // the only command that continues the work, or ""
	Worker   string             `json:"worker,omitempty"`
	Reviewer string             `json:"reviewer,omitempty"`
	Tasks    []ReportTask       `json:"tasks"`
	Edited   []string           `json:"edited_submodules,omitempty"` // in worktrees; no commit has these edits
	Notes    []string           `json:"notes,omitempty"`             // facts about branch and worktree, one per line
	Gone     bool               `json:"-"`                           // the branch is
	Detail   `json:"-"`
	agents   *record.Agents // of the last start
}

// ReportTask is one task of a review.
type ReportTask struct {
	ID            string   `json:"id"`
	Title         string   `json:"title"`
	Status        string   `json:"status"`
	Reason        string   `json:"reason"`          // why it is not done, in one line
	Commit        string   `json:"commit"`          // on the branch
	Taken         string   `json:"taken,omitempty"` // the branch into which it was taken
	Cost          float64  `json:"cost"`
	Tokens        int64    `json:"tokens"`
	Iterations    int64    `json:"iterations"`
	Rejections    int64    `json:"rejections"`
	Attempts      int64    `json:"attempts"`
	FailureReason string   `json:"failure_reason,omitempty"`
	Missing       string   `json:"missing_commit,omitempty"` // in the record, but no longer on the branch
	WaitsFor      []string `json:"waits_for,omitempty"`      // needs of a pending task that are not done
	Verdict       string   `json:"verdict"`                  // the last one
	By            string   `json:"by,omitempty"`             // author, if not the evaluator
	Concern       string   `json:"concern"`                  // concern of the last rejection
	Uncertainties []string `json:"uncertainties"`
	WorkArounds   []string `json:"work_arounds"`
	TestsChanged  []string `json:"tests_changed"`
	Touches       []string `json:"touches,omitempty"` // its touches patterns
	Strayed       []string `json:"strayed,omitempty"` // other files that it changed
	Files         int      `json:"files"`
	Insertions    int      `json:"insertions"`
	Deletions     int      `json:"deletions"`
	Aside         *Aside   `json:"aside,omitempty"`
	Summary       string   `json:"summary,omitempty"` // summary of the last hand-in

	Coverage []coverage `json:"coverage,omitempty"`
	Rejected []string   `json:"rejected,omitempty"` // each rejection in a line, oldest first
	// Checks lists the checks of its change, run or not; Unchecked is set if none ran.
	Checks     []string `json:"checks,omitempty"`
	Unchecked  bool     `json:"unchecked,omitempty"`
	Reviewer   string   `json:"reviewer,omitempty"`   // the reviewer that accepted it
	Acceptance string   `json:"acceptance,omitempty"` // concern and evidence of the verdict that accepted it
	Output     []string `json:"output,omitempty"`     // the last lines of a validator that failed
	Doubts     []string `json:"doubts,omitempty"`     // reasons to trust its tests less
	Changed    []string `json:"changed,omitempty"`    // changed files, with the number of lines

	// Workers are the programs that worked on the task if there are several; Reviewers gave verdicts.
	Workers   []string `json:"workers,omitempty"`
	Reviewers []string `json:"reviewers,omitempty"`
	Takeovers []string `json:"takeovers,omitempty"` // changes of agent with their reasons, newest first

	// Cause is the end of Reason: the words of the validator, hook or reviewer.
	Cause string `json:"cause,omitempty"`

	// Question is the sentence with which its worker ended, if that is a question.
	Question string `json:"question,omitempty"`

	Unread   int            `json:"unread,omitempty"` // reviewer's answers without a readable verdict
	heardOut bool           // the last words of its worker were read
	agents   *record.Agents // of the start before its last verdict
	failure  *failure
	help     string // the command that helps against it
	given    bool   // a verdict was read; the event before it names the conversation
}

// Aside is the partial work of a failed task that is not on the branch.
type Aside struct {
	Ref   string   `json:"ref"`   // ref in kept.git
	Files []string `json:"files"` // files with the number of lines
}

// coverage is a case's entry for one acceptance criterion.
type coverage struct {
	Criterion   string `json:"criterion"`
	AddressedBy string `json:"addressed_by"`
	Evidence    string `json:"evidence"`
}

// seen are the events that a report is made from, besides the record's summary.
var seen = map[string]bool{"agent_waits": true, "session_start": true, "session_resume": true,
	"evaluator_verdict": true, "validator_run": true, "task_marked": true, "evaluator_parse_error": true,
	"agent_session": true, "model_call": true}

// NewReport makes the report on a session from its files. An unreadable file leaves its fields empty.
func NewReport(o session.Overview, s *session.Session) *Report {
	r := &Report{row: rowOf(o), Commands: []Command{}, Tasks: []ReportTask{}, Detail: Detail{
		Worktree: Worktree{Path: s.Workspace(), State: "unknown"}, Conversations: []Conversation{}, Points: []string{}}}
	if sum := r.Summary; sum != nil { // the checkpoint is saved at the end of a task
		r.Cost, r.TokensUsed, r.TokensCached = sum.Cost, sum.Tokens.Total, sum.Usage.Sum().CachedTokens
	} else {
		r.Summary = &session.Summary{}
	}
	r.Begun, r.Ended = deref(r.Summary.StartedAt), cmp.Or(r.LastStopAt, deref(r.Summary.LastEventAt))
	plan, _ := s.Tasks()
	r.Overview.Tasks = session.CountTasks(plan) // the list trusts the files
	for _, t := range plan {
		r.add(t, plan)
	}
	if st := r.Summary.State; st != nil {
		r.Base = st.Base
		if st.Stopped != nil && r.LastStop == record.UsageLimit {
			r.Reset = st.Stopped.Reset
		}
	}
	var waits [][3]string         // reason, start and end, the last wait first
	end, killed := r.Ended, false // the end of the run that a line belongs to
	// list and show report an unreadable record.
	_, _ = record.Tail(s.Path(session.RecordFile), func(l record.Line) bool {
		if killed {
			end, killed = l.TS, false
		}
		id, _ := l.Task()
		t := cmp.Or(r.Task(id), &ReportTask{heardOut: true}) // an event of no task
		if !seen[l.Type] || l.Type == "model_call" && t.heardOut {
			return true
		}
		switch ev := l.Event().(type) {
		case *record.AgentWaits:
			waits = append(waits, [3]string{ev.Reason, l.TS, min(ev.Until, end)})
		case *record.SessionStart:
			r.inherit(ev)
			r.began(&ev.Agents)
		case *record.SessionResume:
			r.began(ev.Agents)
			killed = true
		case *record.EvaluatorVerdict:
			t.seeVerdict(ev)
		case *record.ValidatorRun:
			if t.Checks == nil && !ev.OfHook() {
				t.seeChecks(ev)
			}
		case *record.EvaluatorParseError:
			t.Unread++
		case *record.TaskMarked:
			if t.Status == session.TaskSkipped && ev.Mark == "skipped" {
				t.Reason = cmp.Or(t.Reason, oneLine(ev.Note), "by you")
			}
		case *record.AgentSession:
			t.worked(ev)
		case *record.ModelCall:
			if cmp.Or(ev.Phase, record.RoleWorker) == record.RoleWorker { // the last call
				t.heardOut, t.Question = true, question(ev.Content)
			}
		}
		return true
	})
	covered := map[string]string{} // until then, because lanes wait at the same time
	r.Waited = map[string]float64{}
	for _, w := range slices.Backward(waits) {
		from, to := record.ParseTime(max(w[1], covered[w[0]])), record.ParseTime(w[2])
		if !from.IsZero() && to.After(from) {
			r.Waited[w[0]] += to.Sub(from).Seconds()
			covered[w[0]] = w[2]
		}
	}
	if start := r.agents; start != nil {
		r.Worker = lastAgent(nil, start.WorkerAgent, deref(start.WorkerModel))
		r.Reviewer = lastAgent(nil, start.EvaluatorAgent, deref(start.EvaluatorModel))
	}
	for i := range r.Tasks {
		t := &r.Tasks[i]
		slices.Reverse(t.Rejected)
		t.Rejected = slices.Compact(t.Rejected)
		slices.Reverse(t.Workers)
		slices.Reverse(t.Reviewers)
		t.reviewedBy()
		if t.Checks == nil && t.Status == session.TaskDone {
			t.Checks, t.Unchecked = []string{notChecked + "no validator ran"}, true
		}
		if t.Status != session.TaskDone {
			t.Reason = cmp.Or(t.Reason, r.whyNot(t))
		}
	}
	return r
}

// inherit names the session that a fork's finished tasks come from, which also checked them.
func (r *Report) inherit(fork *record.SessionStart) {
	for id := range fork.Tasks {
		if t := r.Task(id); t != nil && t.Checks == nil && t.Status == session.TaskDone {
			t.Checks = []string{"inherited from " + oneLine(fork.ForkedFrom)}
		}
	}
}

// began notes the agents of a start or resume, the last one first; nil if the event does not name them.
func (r *Report) began(by *record.Agents) {
	if by == nil || by.WorkerAgent == "" {
		return
	}
	r.agents = cmp.Or(r.agents, by)
	for i := range r.Tasks {
		if t := &r.Tasks[i]; t.Verdict != "" {
			t.agents = cmp.Or(t.agents, by)
		}
	}
}

// add adds a task of the plan with its state by the record.
func (r *Report) add(planned session.Task, plan []session.Task) {
	t := ReportTask{ID: planned.ID, Title: planned.Title, Status: planned.Status, Touches: planned.Touches,
		Uncertainties: []string{}, WorkArounds: []string{}, TestsChanged: []string{}}
	if t.Status == session.TaskPending {
		t.WaitsFor = planned.WaitsFor(plan)
	}
	if s := r.Summary.Tasks[t.ID]; s != nil {
		t.Attempts, t.Iterations, t.Tokens, t.Cost = s.Attempts, s.Iterations, s.Tokens, s.Cost
		t.Rejections, t.Commit = s.Evaluator.Rejects, s.Commit
		if t.Status != session.TaskDone && t.Status != session.TaskSkipped {
			t.FailureReason = s.FailureReason
		}
	}
	if st := r.Summary.State; st != nil && st.Tasks[t.ID].Failure != nil {
		was := st.Tasks[t.ID].Failure
		if text.IsCommand(was.Hint) {
			t.help = oneLine(was.Hint)
		}
		if t.Status != session.TaskDone {
			t.failure = &failure{Reason: oneLine(was.Reason), Detail: oneLine(was.Detail)}
			t.failure.objections(t.ID, was.Objected, was)
		}
	}
	r.Tasks = append(r.Tasks, t)
}

// OnBranch replaces the recorded commits of the tasks by those on the branch, which the user may have rebased.
func (r *Report) OnBranch(commits map[string]string) {
	for i := range r.Tasks {
		t := &r.Tasks[i]
		recorded := t.Commit
		if recorded == "" {
			continue
		}
		if t.Commit = commits[t.ID]; t.Commit != "" {
			continue
		}
		if t.Status == session.TaskDone {
			t.Reason = "its commit " + text.Head(recorded, 10) + " is no longer on the branch"
		}
		if t.Status == session.TaskDone || t.Status == session.TaskFailed {
			t.Missing = recorded
		}
	}
}

// Task returns the task with an id, nil for none.
func (r *Report) Task(id string) *ReportTask {
	if i := slices.IndexFunc(r.Tasks, func(t ReportTask) bool { return t.ID == id }); i >= 0 {
		return &r.Tasks[i]
	}
	return nil
}

// maxRejections is the maximum number of rejections of a task in a review.
const maxRejections = 100

// question returns the last sentence of a text if it is a question.
func question(said string) string {
	said = strings.TrimRight(strings.TrimSpace(said), "*_\"')`")
	if !strings.HasSuffix(said, "?") {
		return ""
	}
	from := strings.LastIndexAny(said, "\n") + 1
	for _, end := range []string{". ", "! ", "? ", ": "} {
		from = max(from, strings.LastIndex(said, end)+1)
	}
	return oneLine(strings.TrimLeft(said[from:], "*_#- "))
}

// worked notes the program of a conversation about the task, the last one first.
func (t *ReportTask) worked(ev *record.AgentSession) {
	if ev.How == agent.TookOver {
		t.Takeovers = append(t.Takeovers, oneLine(ev.Agent+" took over: "+ev.Why))
	}
	if ev.How == agent.Replaced {
		t.Takeovers = append(t.Takeovers, "began a fresh conversation: "+oneLine(ev.Why))
	}
	who := &t.Workers
	if ev.Role == record.RoleEvaluator {
		if !t.given {
			return // no verdict: at its limit, or with an unreadable answer
		}
		who, t.given = &t.Reviewers, false
	}
	if name := oneLine(ev.Agent); len(*who) == 0 || (*who)[len(*who)-1] != name {
		*who = append(*who, name)
	}
}

func (t *ReportTask) seeVerdict(v *record.EvaluatorVerdict) {
	if t.Verdict == "" {
		t.seeCase(v)
	}
	t.given = v.By == "" && v.CarriedFrom == ""
	if v.Accepted() {
		t.Acceptance = cmp.Or(t.Acceptance, oneLine(joined(" ", append([]string{deref(v.Concern)}, v.Evidence...)...)))
		return
	}
	says := joined(": ", oneLine(deref(v.RejectionCategory)), oneLine(deref(v.Concern)))
	t.Concern = cmp.Or(t.Concern, says)
	if len(t.Rejected) < maxRejections {
		t.Rejected = append(t.Rejected, record.WithNext(says, oneLine(deref(v.NextStep))))
	}
}

func (t *ReportTask) seeCase(v *record.EvaluatorVerdict) {
	t.Verdict, t.By = verdictOf(v), v.By
	var c struct {
		Summary       string     `json:"summary"`
		Coverage      []coverage `json:"ac_coverage"`
		WorkArounds   []string   `json:"work_arounds"`
		Uncertainties []string   `json:"uncertainties"`
	}
	_ = json.Unmarshal(v.Case, &c) // invalid members are left out
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

// whyNot returns why a task is not done, in one line.
func (r *Report) whyNot(t *ReportTask) string {
	refused := r.LastStop == record.CommitRefused && r.Failure != nil && r.Failure.Task == t.ID
	if f := t.failure; f != nil && t.Status == session.TaskFailed {
		t.Cause = cmp.Or(f.Last, f.Detail)
		if t.Question != "" {
			t.Cause = joined("; ", "the worker asks: "+t.Question, f.Last)
		}
		return joined(": ", inWords(f.Reason), t.Cause)
	} else if refused && t.Status == session.TaskPending {
		t.Cause = r.Failure.Detail
		return "accepted, not committed: " + t.Cause
	} else if f != nil && t.Status == session.TaskPending {
		t.Cause = joined(": ", "failed before", cmp.Or(f.Last, f.Detail, inWords(f.Reason)))
		return "pending again; " + t.Cause
	}
	of := r.Summary.Tasks[t.ID]
	if t.Status == session.TaskFailed && of != nil {
		return inWords(of.FailureReason)
	}
	if len(t.WaitsFor) > 0 {
		return "waits for " + strings.Join(t.WaitsFor, ", ")
	}
	switch {
	case t.Status == session.TaskPending && t.Iterations > 0 && of.Status == session.TaskPending:
		return "pending again"
	case t.Status == session.TaskPending && (t.Iterations > 0 || t.Attempts > 0 && of.Status == record.Working):
		return "started, not finished"
	case t.Status == session.TaskPending:
		return notBegun
	}
	return ""
}

// risk is a point to check before taking a task's change.
type risk struct{ task, says string }

// risks returns the points to check of all tasks. Changed tests come first, because the end may be cut.
func (r *Report) risks() (all []risk) {
	for _, t := range r.Tasks {
		for _, s := range t.risks() {
			all = append(all, risk{t.ID, s})
		}
	}
	ofTest := func(r risk) int { return strings.Index(r.says+changedTest, changedTest) }
	slices.SortStableFunc(all, func(a, b risk) int { return min(ofTest(a), 1) - min(ofTest(b), 1) })
	return all
}

const changedTest = "changed the test "

// risks returns the points to check before taking the task's change, one a line.
func (t *ReportTask) risks() (lines []string) {
	for _, s := range t.TestsChanged {
		lines = append(lines, changedTest+s)
	}
	lines = append(lines, t.Doubts...)
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
	if t.Unread > 0 {
		lines = append(lines, "no readable verdict in "+text.Plural(t.Unread, "answer")+" of its reviewer")
	}
	if t.Status == session.TaskDone {
		if t.Rejections > 0 && t.Concern != "" {
			lines = append(lines, "rejected "+times(t.Rejections)+", last: "+t.Concern)
		}
		if t.By == record.ByPerson {
			lines = append(lines, "marked done by you, not reviewed")
		}
	}
	return lines
}
