package record

import (
	"cmp"
	"maps"
	"slices"

	"github.com/git-tilth/git-tilth/internal/jsonl"
)

// Apply adds one event, in the order of the record; e is the event of line l.
func (s *State) Apply(l Line, e Event) {
	if s.Tasks == nil {
		s.Tasks = map[string]Task{}
	}
	s.begin(l, e)
	switch e := e.(type) {
	case *SessionRewound:
		s.went(e.Undo)
		s.rewound(l.Off, e)
		s.Begun = s.Begun || e.Undo > 0
	case *SessionUndone:
		s.undone(e)
	case *TaskMarked:
		s.marked(l.Off, e)
		return // usually between two runs; not an event of an attempt
	case *LogRepaired: // an edited plan may lack its task
		s.follow(e)
		return
	case *SessionStart:
		s.become(e.Tasks)
		s.Begun = s.Begun || e.Phase == "run"
		s.Settings = orElse(e.Settings, s.Settings)
	case *SessionResume:
		s.retry(e.Retried)
		s.Begun = true
		s.Edited = union(s.Edited, e.Edited)
		s.Settings = orElse(e.Settings, s.Settings)
	case *SeedCommitted:
		s.Head, s.LastTask = "", ""
	case *ContextReset:
		s.begun(l.Off, e)
		s.Begun = true
	case *Preflight:
		if s.PassesOnBase == nil {
			s.PassesOnBase = map[string][]string{}
		}
		if s.BaseSeconds == nil {
			s.BaseSeconds = map[string]float64{}
		}
		if e.Passed { // the tests may change after another one
			maps.Copy(s.PassesOnBase, e.PassesOnBase)
			s.BaseTests = map[string]int{}
		}
		for _, c := range e.Checks {
			if e.Passed && c.Own > 0 {
				s.BaseTests[c.Name] = c.Own
			}
			if c.Seconds > 0 {
				s.BaseSeconds[c.Name] = c.Seconds
			}
		}
	case *AgentSession:
		if e.Until != "" {
			if s.Limits == nil {
				s.Limits = map[string]string{}
			}
			s.Limits[e.From] = e.Until
		}
	case *Stop:
		if e.Reason == AllDone { // also if a killed command has not added a step's task
			s.Steps = nil
		}
	case *CommitRepeated:
		s.stepped(func(step Step) bool { return step.Commit == e.From })
	case *CaseSubmitted, *Commit:
		s.stepped(ofTask(e))
	case *PromptAssembled:
		if e.Role == RoleWorker {
			s.stepped(ofTask(e))
		}
	}
	if isWork(e) {
		s.Stop, s.Stopped, s.Rewound = nil, nil, ""
	}
	if rewound, ok := e.(*SessionRewound); ok {
		s.Rewound = rewound.To
	}
	s.follow(e)
	s.end(e)
	task := cmp.Or(e.Common().TaskID, s.Head)
	s.change(task, func(t *Task) {
		if e.Common().TaskID != "" {
			t.see(l.Off, e)
		}
		t.Attempt.see(l.TS, e)
	})
	if stop, ok := e.(*Stop); ok {
		s.Stop, s.Stopped = &LastStop{Reason: stop.Reason, TS: l.TS}, stop
		if task != s.Head {
			s.change(s.Head, func(t *Task) { t.Attempt.see(l.TS, e) })
		}
	}
}

// stepped removes commits from those to repeat on a new base. A worker, or a change's reviewer, continues with its
// files.
func (s *State) stepped(is func(Step) bool) {
	if len(s.Steps) > 0 {
		s.Steps = slices.DeleteFunc(slices.Clone(s.Steps), is)
	}
}

func ofTask(e Event) func(Step) bool {
	id := e.Common().TaskID
	return func(step Step) bool { return step.Task == id && id != "" }
}

func orElse(m, other map[string]Setting) map[string]Setting {
	if m == nil {
		return other
	}
	return m
}

// begin adds the events before a run.
func (s *State) begin(l Line, e Event) {
	switch e := e.(type) {
	case *SessionStart:
		s.Source, s.Base = cmp.Or(s.Source, e.Source), cmp.Or(s.Base, e.Base)
		s.Ran = s.Ran || e.Phase == "run"
	case *SessionPrepared:
		if e.TokensUsed != nil && !s.Ran {
			s.Prepared = e
		}
	case *SeedCommitted:
		if e.SHA != "" && !s.Ran {
			s.Seed, s.SeedAt = e, l.Off
		}
	case *SessionResume:
		s.Ran, s.Resumed = true, true
	case *SessionRewound:
		s.Resumed = s.Resumed || e.Undo > 0 // 0 is a fork's reset --to-seed
	case *SessionUndone:
		s.Resumed = true
	case *ContextReset:
		s.Ran = true
	}
}

// began ends a scan at the start of a run.
func (s *State) began() error {
	if s.Ran {
		return jsonl.ErrStop
	}
	return nil
}

// change changes a task, if id is not "".
func (s *State) change(id string, do func(*Task)) {
	if id == "" {
		return
	}
	t, known := s.Tasks[id]
	if !known {
		t.Status = Working
		s.Head = cmp.Or(s.Head, id)
	}
	do(&t)
	s.Tasks[id] = t
}

// begun adds an attempt. Of a committed task's last attempt, it keeps only the fields for a rewind.
func (s *State) begun(off int64, e *ContextReset) {
	if s.Head != e.TaskID {
		s.change(s.Head, func(t *Task) {
			if t.Status == Done && !t.Uncommitted {
				t.Attempt = Attempt{Begun: t.Attempt.Begun}
			}
		})
	}
	s.Head = e.TaskID
	s.change(e.TaskID, func(t *Task) {
		merged := t.Attempt.Merged
		if t.Last, t.Attempt = off, (Attempt{Begun: *e}); e.Lane && merged != nil && merged.Base == e.Base {
			t.Attempt.Merged = merged
		}
		if t.First == nil {
			t.First = &Begin{*e, off}
		}
	})
}

// end notes how an attempt ended.
func (s *State) end(e Event) {
	as := ""
	switch e := e.(type) {
	case *TaskFailed:
		as = Failed + ":" + e.Reason
	case *Commit:
		if !e.Placeholder && e.Aside == "" {
			as = Done
		}
	}
	if is := (End{e.Common().TaskID, as}); as != "" && is.Task != "" {
		// A task that is redone is done once.
		again := func(was End) bool { return was == is && as == Done }
		s.Progress = append(slices.DeleteFunc(slices.Clone(s.Progress), again), is)
	}
}

// follow tracks the task of the last attempt. A run that stopped before its first attempt does not change it, because
// the worktree still has the earlier run's work.
func (s *State) follow(e Event) {
	task := e.Common().TaskID
	switch e := e.(type) {
	case *Stop:
		if task == "" && !ReasonOf(e.Reason).Cuts && s.Touched {
			s.LastTask = ""
		}
	case *SessionResume:
		s.Touched = false
	}
	if task != "" {
		s.LastTask, s.Touched = task, true
	}
}

// retry removes the failures of tasks that are tried again.
func (s *State) retry(ids []string) {
	for _, id := range ids {
		if s.Tasks[id].Status == Failed {
			s.change(id, func(t *Task) { t.Status, t.FailureReason = Pending, "" })
		}
	}
}

// marked applies the user's decision. A task to retry is neither committed nor reviewed.
func (s *State) marked(off int64, e *TaskMarked) {
	if e.Mark != "moved" && e.Mark != "changed" && e.Mark != "added" {
		s.stepped(ofTask(e))
	}
	if e.Mark == "removed" {
		delete(s.Tasks, e.TaskID)
		if s.Head == e.TaskID { // events without a task do not add it again
			s.Head = ""
		}
		return
	}
	s.change(e.TaskID, func(t *Task) {
		switch {
		case e.Status != "":
			t.Status, t.FailureReason, t.Uncommitted = e.Status, "", false
		case e.Mark == Skipped:
			t.Status, t.FailureReason = Skipped, ""
		case e.Mark == "retry" || e.Mark == "added":
			t.Status, t.FailureReason = Pending, ""
		}
		t.Case = nil
		if e.Mark == "retry" {
			t.Attempt.Case, t.Attempt.Waits, t.Attempt.RefusedBy = nil, false, nil
			if e.Note != "" {
				t.Ledger = append(slices.Clip(t.Ledger), off)
			}
		}
	})
}

// see updates the task's status by an event.
func (t *Task) see(off int64, e Event) {
	switch e := e.(type) {
	case *ContextReset:
		t.FailureReason, t.Uncommitted = "", false
		if t.Status != Skipped { // the user marks a task as done by its commit
			t.Status = Working
		}
	case *CaseSubmitted:
		t.Case = nil
	case *PromptAssembled:
		if e.Role == RoleWorker {
			t.Case = nil
		}
	case *EvaluatorVerdict:
		t.Ledger = append(slices.Clip(t.Ledger), off)
		if e.Verdict == "accept" && e.Tree != "" {
			t.Trees = append(slices.Clip(t.Trees), e.Tree)
		}
	case *LaneMerged:
		if t.Conflict = nil; len(e.Conflicts) > 0 {
			t.Conflict = e
		}
	case *TaskDone:
		t.Status, t.FailureReason, t.Uncommitted = Done, "", true
	case *TaskFailed:
		t.Status, t.FailureReason, t.Failure = Failed, e.Reason, &Failure{*e, t.Attempt.Objected}
		if e.Reason == ReviewerFailed {
			t.Case = t.Attempt.Case
		}
	case *Commit:
		t.Commits = append(slices.Clip(t.Commits), e.SHA)
		if e.Aside == "" {
			t.Commit = e.SHA
		}
		if e.Placeholder || e.Aside != "" {
			return
		}
		if t.Status != Done && (t.Status != Failed || e.RolledForward) { // refused, or interrupted
			t.Status, t.FailureReason = Done, ""
		}
		t.Uncommitted, t.Conflict = false, nil
	case *ValidatorRun:
		t.refused(e.OfHook() && !e.Passed)
	case *Stop:
		t.refused(e.Reason == CommitRefused)
	}
}

// refused reverts a task_done after a commit hook refused the accepted change.
func (t *Task) refused(is bool) {
	if is && t.Status == Done {
		t.Status, t.Uncommitted = Working, false
	}
}

// see updates the attempt by an event.
func (a *Attempt) see(ts string, e Event) {
	if v, ok := e.(*EvaluatorVerdict); ok {
		failing := a.Failing
		if v.Accepted() {
			failing = nil
		}
		*a = Attempt{Begun: a.Begun, Objected: Objected{Verdict: v, Failing: failing}, VerdictTS: ts,
			Unledgered: true, Waits: v.Accepted() && v.Tree != "", Merged: a.Merged}
		return
	}
	if run, ok := e.(*ValidatorRun); ok && !run.Passed {
		fails := func(r ValidatorResult) bool { return !r.Passed && !r.Skipped && !r.Known }
		if i := slices.IndexFunc(run.Results, fails); i >= 0 {
			a.Failing, a.FailedLast = &run.Results[i], true
		}
	}
	if !ofReview(e) {
		a.Case = nil
		a.Worked = a.Worked || !may(e, outside) && !isLearning(e)
	}
	a.Unledgered = a.Unledgered && may(e, afterVerdict)
	switch e := e.(type) {
	case *CaseSubmitted:
		a.Case, a.Waits = e, false
	case *LaneMerged:
		if a.Waits && len(e.Conflicts) == 0 { // accepted, and to be judged again on the new tip
			a.Case = &CaseSubmitted{Scope: e.Scope, Tree: e.Tree, Base: e.Base, Case: a.Verdict.Case}
		}
		a.Merged, a.Waits = e, false
	case *TaskDone:
		a.Noted = a.Waits
	case *SessionResume: // a resume that was killed before its first task changed nothing
	case *Stop:
		a.Waits = a.Waits && ReasonOf(e.Reason).Cuts
	case *ModelCall:
		a.Waits = a.Waits && isLearning(e)
	default:
		a.Waits = a.Waits && may(e, afterStop)
		if run, ok := e.(*ValidatorRun); ok && run.OfHook() && a.Verdict != nil && a.Verdict.Accepted() {
			a.RefusedBy = run
		}
	}
}

// isLearning reports whether an event belongs to the question about learnings after a task.
func isLearning(e Event) bool {
	if prompt, ok := e.(*PromptAssembled); ok {
		return prompt.Role == RoleSelfImprove
	}
	return e.Common().Phase == RoleSelfImprove
}

// ofReview reports whether an event may be between a case and its verdict, or after the end of a run in between.
func ofReview(e Event) bool {
	role := e.Common().Phase
	switch e := e.(type) {
	case *PromptAssembled:
		role = e.Role
	case *MemoryLoad:
		role = e.Role
	case *AgentSession:
		role = e.Role
	}
	return role == RoleEvaluator || may(e, inReview)
}

// may reports whether an event may be at that position. An event of an unknown type is work.
func may(e Event, where position) bool { return byName[TypeOf(e)].position&where != 0 }

// isWork reports whether an event is work of the session, so that an earlier stop is not its last state. Cleaning up
// after a stop is not work, nor is a resume that found everything done.
func isWork(e Event) bool {
	if resume, ok := e.(*SessionResume); ok {
		return !resume.foundAllDone()
	}
	return !may(e, afterStop)
}
