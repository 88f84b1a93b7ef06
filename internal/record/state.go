package record

import (
	"cmp"
	"maps"
	"slices"

	"github.com/git-tilth/git-tilth/internal/text"
)

// The status of a task. Working is a task with an attempt that has not ended; the plan calls it pending.
const (
	Pending = "pending"
	Working = "running"
	Done    = "done"
	Failed  = "failed"
	Skipped = "skipped"
)

// State is the state of a session by its record. All decisions use it; the statuses in prd.json, the ledgers,
// progress.txt, the checkpoint's totals and summary.json are written from it. It is a fold: Apply adds one event, so a
// stored State can continue. The event's row in the table says whether it counts as work or ends an attempt.
//
// The state is kept by task, so that events of one attempt never affect another. An event without a task, such as a
// stop, belongs to the newest attempt (Head).
type State struct {
	Source   string           `json:"source,omitempty"`   // the repository, as the first session_start names it
	Prepared *SessionPrepared `json:"prepared,omitempty"` // with the tokens used before a run
	Ran      bool             `json:"ran,omitempty"`      // a run has started, even if it was undone since
	Resumed  bool             `json:"resumed,omitempty"`  // the last start was a resume, a rewind or an undo
	// Settings are the settings for validation and review at the last start; nil if no start recorded them.
	Settings map[string]Setting `json:"settings,omitempty"`
	// Limits are the ends of the agents' usage limits, by agent.
	Limits map[string]string `json:"limits,omitempty"`
	// PassesOnBase joins PassesOnBase of all passed preflights.
	PassesOnBase map[string][]string `json:"passes_on_base,omitempty"`
	// BaseSeconds is the time that each validator took on the base, by its name.
	BaseSeconds map[string]float64 `json:"base_seconds,omitempty"`
	// BaseTests is the number of tests that each validator ran on the base, without acceptance tests.
	BaseTests map[string]int `json:"base_tests,omitempty"`

	Moment
	// Went has the moments that rewinds and undos removed, by the number of the undo.
	Went map[int]Moment `json:"went,omitempty"`
}

// Moment is the part of a State that a rewind removes and an undo restores. Its tasks are values, so a copy of the map
// copies them.
type Moment struct {
	Beginning
	Begun bool `json:"begun,omitempty"` // a run, a resume or a rewind came since the seed was committed
	// Steps are the commits that are still to be repeated on a new base, in their order.
	Steps []Step          `json:"steps,omitempty"`
	Tasks map[string]Task `json:"tasks,omitempty"`
	Head  string          `json:"head,omitempty"` // the task of the last attempt
	// LastTask is the last task of the last run, or "" if the task ended. Its work may be in the worktree.
	LastTask string `json:"last_task,omitempty"`
	Touched  bool   `json:"touched,omitempty"` // a task has an event since the last resume
	// Edited are the files that somebody changed in the worktree between a stop and its resume.
	Edited []string `json:"edited,omitempty"`
	// Progress are the ends of tasks, in their order.
	Progress []End `json:"progress,omitempty"`
	// Stop is the session's last state; nil if work continued after it.
	Stop    *LastStop `json:"stop,omitempty"`
	Stopped *Stop     `json:"stopped,omitempty"` // event of the stop
	// Rewound is the point of the last rewind; "" if work continued after it.
	Rewound string `json:"rewound,omitempty"`
}

// Beginning is the start of the branch.
type Beginning struct {
	Base   string         `json:"base,omitempty"`    // commit at which the branch begins
	Seed   *SeedCommitted `json:"seed,omitempty"`    // the last one before a run, or that of a new base; nil for none
	SeedAt int64          `json:"seed_at,omitempty"` // offset of its line
}

// End is the end of an attempt at a task: done, or failed with a reason.
type End struct{ Task, As string }

// Task is the state of a task.
type Task struct {
	TaskState
	Uncommitted bool `json:"uncommitted,omitempty"` // between task_done and its commit
	// Ledger has the offsets of the record's lines for its ledger: verdicts and the user's notes.
	Ledger  []int64  `json:"ledger,omitempty"`
	Shared  bool     `json:"shared,omitempty"`  // its ledger began in another session's record
	Commits []string `json:"commits,omitempty"` // on record, placeholders among them
	Trees   []string `json:"trees,omitempty"`   // trees of accepting verdicts
	First   *Begin   `json:"first,omitempty"`   // start of the first attempt
	Last    int64    `json:"last,omitempty"`    // offset of the last attempt's start; 0 for none
	Attempt Attempt  `json:"attempt"`           // the last one
	// Failure is its last failure; nil if it never failed.
	Failure *Failure `json:"failure,omitempty"`
	// Case is the case that waits for a review because no reviewer gave a verdict on it; nil for none.
	Case *CaseSubmitted `json:"case,omitempty"`
	// Conflict is the last merge of its change that conflicted; later attempts may contain its markers.
	Conflict *LaneMerged `json:"conflict,omitempty"`
}

// AwaitsReview returns the case of a task that waits for a review since its failure or for a new base, or nil.
func (s *State) AwaitsReview(task string) *CaseSubmitted {
	if s == nil {
		return nil
	}
	if v := s.Carried(task); v != nil {
		return &CaseSubmitted{Scope: Scope{TaskID: task}, Tree: v.Tree, Base: v.Base, Case: v.Case}
	}
	return s.Tasks[task].Case
}

// Carried returns the verdict on a task's change that must be repeated on a new base, or nil.
func (s *State) Carried(task string) *EvaluatorVerdict {
	if s == nil {
		return nil
	}
	i := slices.IndexFunc(s.Steps, func(step Step) bool { return step.Task == task })
	if i < 0 || task == "" {
		return nil
	}
	return s.Steps[i].Verdict
}

// Failure is a task's failure with the objections to its change.
type Failure struct {
	TaskFailed
	Objected
}

// Why returns the reason in one line, with the last objection to the change.
func (f *Failure) Why() string {
	why := f.Reason
	if d := text.OneLine(f.Detail); d != "" {
		why += " (" + text.Clip(d, 160) + ")"
	}
	if f.TaskFailed.Objection != "" {
		why += ": " + f.TaskFailed.Objection
	}
	return why
}

// Begin is the start of the first attempt at a task.
type Begin struct {
	ContextReset
	Counts int64 `json:"counts"` // the record up to it
}

// Attempt is the last attempt at a task by the record. It shows the steps that a dead process did not finish.
type Attempt struct {
	Begun ContextReset `json:"begun"` // first event of the attempt
	Objected
	// VerdictTS is the time of the verdict. Worked is set if an iteration began since, Unledgered if its line in the
	// ledger may be missing.
	VerdictTS  string `json:"verdict_ts,omitempty"`
	Worked     bool   `json:"worked,omitempty"`
	Unledgered bool   `json:"unledgered,omitempty"`
	// Waits is set if the verdict's tree was accepted and, by the record, not committed. A task_done may follow it.
	Waits bool `json:"waits,omitempty"`
	Noted bool `json:"noted,omitempty"`
	// Case is a case that the evaluator was being asked about when the last run ended; nil for none.
	Case *CaseSubmitted `json:"case,omitempty"`
	// RefusedBy is the last refusal of the accepted change by a commit hook, or nil.
	RefusedBy *ValidatorRun `json:"refused_by,omitempty"`
	// Merged is the last merge with the branch's tip, of an attempt in a lane.
	Merged *LaneMerged `json:"merged,omitempty"`
}

// Base returns the base commit of the attempt.
func (a Attempt) Base() string {
	if a.Merged != nil {
		return a.Merged.Base
	}
	return a.Begun.Base
}

// Objected are the objections to an attempt's change.
type Objected struct {
	Verdict *EvaluatorVerdict `json:"verdict,omitempty"` // the last one
	// Failing is the last failed validator or commit hook since a change was accepted; FailedLast if it came after
	// the verdict.
	Failing    *ValidatorResult `json:"failing,omitempty"`
	FailedLast bool             `json:"failed_last,omitempty"`
}

// SessionStatus returns the session's status, once it has a seed. It is not all_done after the user retried or added a
// task.
func (s *State) SessionStatus() string {
	again := func(id string) bool { return s.StatusOf(id) == Pending }
	switch {
	case s.Stop != nil && (s.Stop.Reason != AllDone || !slices.ContainsFunc(slices.Collect(maps.Keys(s.Tasks)), again)):
		return ReasonOf(s.Stop.Reason).Status
	case s.Stop != nil, s.Begun, len(s.Went) == 0 && (s.Ran || s.Resumed):
		return Working
	}
	return "prepared"
}

// StatusOf returns a task's status for a plan: committed tasks are done, and tasks with an open attempt are pending.
func (s *State) StatusOf(id string) string {
	t := s.Tasks[id]
	if t.Status == Working || t.Status == Done && t.Uncommitted {
		return Pending
	}
	return cmp.Or(t.Status, Pending)
}

// Recorded reports whether a commit of a task is on record.
func (s *State) Recorded(task, sha string) bool { return slices.Contains(s.Tasks[task].Commits, sha) }

// ReadBeginning returns the state of the record at path before its first run.
func ReadBeginning(path string) (*State, error) {
	var s State
	_, _, err := Scan(path, 0, func(l Line) error {
		s.Apply(l, l.Brief())
		return s.began()
	})
	return &s, err
}

// Clone returns a copy that later calls of Apply do not change.
func (s *State) Clone() *State {
	c := *s
	c.Moment, c.Went, c.Limits = s.Moment.clone(), maps.Clone(s.Went), maps.Clone(s.Limits)
	c.PassesOnBase, c.BaseSeconds = maps.Clone(s.PassesOnBase), maps.Clone(s.BaseSeconds)
	c.BaseTests = maps.Clone(s.BaseTests)
	return &c
}

// clone returns a copy that no Apply changes.
func (m Moment) clone() Moment {
	if m.Tasks = maps.Clone(m.Tasks); m.Tasks == nil {
		m.Tasks = map[string]Task{}
	}
	return m
}

// union returns the names of both lists, each once.
func union(names, more []string) []string {
	for _, name := range more {
		if !slices.Contains(names, name) {
			names = append(slices.Clone(names), name)
		}
	}
	return names
}
