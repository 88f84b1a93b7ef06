package session

import "github.com/git-tilth/git-tilth/internal/record"

// taskRunning is the status of a task in a summary between its context_reset and its end.
const taskRunning = "running"

// NewSummary is the roll-up of an empty record.
func NewSummary(sessionID string) *Summary {
	s := &Summary{Version: summaryVersion, SessionID: sessionID, kept: kept{extra{}},
		Mark: mark{Begins: []int64{}, Fold: foldVersion}}
	s.complete()
	return s
}

// complete makes the maps that a summary, new or read from disk, lacks.
func (s *Summary) complete() {
	makeMap(&s.Tasks)
	makeMap(&s.ToolHistogram)
	makeMap(&s.HookOutcomes)
	makeMap(&s.Models)
	makeMap(&s.Evaluator.RejectionCategories)
	for id, t := range s.Tasks {
		if t == nil {
			delete(s.Tasks, id)
			continue
		}
		makeMap(&t.ToolCalls)
		makeMap(&t.Evaluator.RejectionCategories)
	}
	for hook, outcomes := range s.HookOutcomes {
		if outcomes == nil {
			s.HookOutcomes[hook] = map[string]int64{}
		}
	}
}

func makeMap[K comparable, V any](m *map[K]V) {
	if *m == nil {
		*m = map[K]V{}
	}
}

// Feed counts one line of the record, as a scan hands it out, in the order of the record. Lines that are no events
// count as skipped.
func (s *Summary) Feed(l record.Line) {
	if l.Type == "" {
		s.Skipped++
		return
	}
	s.Events++
	if l.TS != "" {
		s.LastEventAt = &l.TS
	}
	if l.Begins() {
		s.Mark.Begins = append(s.Mark.Begins, l.Off)
	}
	if s.Stop != nil && l.GoesOn() {
		s.Stop = nil
	}
	switch l.Type {
	case "prompt_assembled", "memory_load", "tool_result":
		s.task(l.Task()) // most of a record is their text, which nobody counts
	default:
		s.count(l.TS, l.Event())
	}
}

// count is the table of what each type of event changes.
func (s *Summary) count(ts string, e record.Event) {
	t := s.task(e.Common().TaskID, int64(e.Common().Iter))
	switch e := e.(type) {
	case *record.SessionStart:
		s.start(ts, e)
	case *record.SessionResume:
		s.resume(ts, e)
	case *record.SeedCommitted:
		s.SeedSHA = e.SHA
	case *record.ContextReset:
		t.Attempts++
		t.Iter, t.FailureReason, t.EndedAt, t.Uncommitted = 0, "", "", false
		if t.Status != TaskSkipped { // a person who calls it done does that with its commit
			t.Status = taskRunning
		}
		if t.StartedAt == "" {
			t.StartedAt = ts
		}
	case *record.TaskDone:
		t.Status, t.FailureReason, t.EndedAt, t.Uncommitted = TaskDone, "", ts, true
	case *record.TaskMarked:
		if e.Status != "" {
			t.Status, t.FailureReason, t.Uncommitted = e.Status, "", false
		}
		switch e.Mark {
		case TaskSkipped:
			t.Status, t.FailureReason, t.EndedAt = TaskSkipped, "", ts
		case "retry", "added":
			t.Status, t.FailureReason, t.EndedAt = TaskPending, "", ""
		case "removed":
			delete(s.Tasks, e.TaskID)
		}
	case *record.TaskFailed:
		t.Status, t.FailureReason, t.EndedAt = TaskFailed, e.Reason, ts
	case *record.Commit:
		if e.Aside == "" {
			t.Commit = e.SHA
		}
		if e.Placeholder || e.Aside != "" {
			break
		}
		if t.Status != TaskDone && (t.Status != TaskFailed || e.RolledForward) { // what was refused, or cut off
			t.Status, t.FailureReason, t.EndedAt = TaskDone, "", ts
		}
		t.Uncommitted = false
	case *record.SessionRewound:
		s.becomes(e.Tasks)
	case *record.SessionUndone:
		s.Stop = e.Stop
		s.becomes(e.Tasks)
	case *record.ValidatorRun:
		if e.OfHook() && !e.Passed {
			t.notCommitted()
		}
	case *record.Stop:
		s.Stop = &record.LastStop{Reason: e.Reason, TS: ts}
		if e.Reason == record.CommitRefused {
			t.notCommitted()
		}
	case *record.ModelCall:
		s.modelCall(t, e)
	case *record.ToolCall:
		bump(s.ToolHistogram, e.Tool)
		bump(t.ToolCalls, e.Tool)
	case *record.PreToolBlock:
		t.HookBlocks++
	case *record.HookRun:
		if e.Hook != "" && e.Outcome != "" {
			if s.HookOutcomes[e.Hook] == nil {
				s.HookOutcomes[e.Hook] = map[string]int64{}
			}
			bump(s.HookOutcomes[e.Hook], e.Outcome)
		}
	case *record.EvaluatorVerdict:
		s.Evaluator.count(e)
		t.Evaluator.count(e)
		if t.Ledger >= 0 {
			t.Ledger++
		}
	}
}

// notCommitted takes a task_done back: a commit hook refused what was accepted.
func (t *taskSummary) notCommitted() {
	if t.Status == TaskDone {
		t.Status, t.EndedAt, t.Uncommitted = taskRunning, "", false
	}
}

// task is the entry of an event's task, brought to its iteration; an event without a task gets one that nobody sees.
func (s *Summary) task(id string, iter int64) *taskSummary {
	t := s.Tasks[id]
	if t == nil {
		t = &taskSummary{Status: taskRunning, ToolCalls: map[string]int64{}}
		t.Evaluator.RejectionCategories = map[string]int64{}
		if id != "" {
			s.Tasks[id] = t
		}
	}
	if iter > t.Iter {
		t.Iterations += iter - t.Iter
		t.Iter = iter
	}
	return t
}

func (s *Summary) start(ts string, e *record.SessionStart) {
	s.becomes(e.Tasks)
	if e.Phase == "prep-feature" || e.Phase == "fork" {
		s.PrepStartedAt = &ts
	} else {
		s.StartedAt = &ts
	}
	if len(e.Limits) > 0 {
		s.Limits = record.JSON(e.Limits)
	}
	said := map[string]*string{record.RoleWorker: e.WorkerModel, record.RoleEvaluator: e.EvaluatorModel}
	for role, model := range said {
		if model != nil && *model != "" {
			s.Models[role] = *model
		}
	}
}

// becomes gives tasks the state that a rewind, an undo or a fork gave them.
func (s *Summary) becomes(states map[string]record.TaskState) {
	for id, state := range states {
		t := s.task(id, 0)
		t.Status, t.Commit, t.FailureReason = state.Status, state.Commit, state.FailureReason
		t.Uncommitted, t.Ledger = false, -1
	}
}

// resume takes back the failures of the tasks that are tried again.
func (s *Summary) resume(ts string, e *record.SessionResume) {
	s.Resumes++
	if s.StartedAt == nil {
		s.StartedAt = &ts
	}
	for _, id := range e.Retried {
		if t := s.Tasks[id]; t != nil && t.Status == TaskFailed {
			t.Status, t.FailureReason, t.EndedAt = TaskPending, "", ""
		}
	}
}

func (s *Summary) modelCall(t *taskSummary, e *record.ModelCall) {
	call := RoleUsage{Calls: 1, PromptTokens: e.PromptTokens, EvalTokens: e.EvalTokens, CachedTokens: e.CachedTokens,
		ReasoningTokens: e.ReasoningTokens}
	s.Tokens.Prompt += e.PromptTokens
	s.Tokens.Eval += e.EvalTokens
	s.Tokens.Cached += e.CachedTokens
	if e.TokensUsedTotal > 0 {
		s.Mark.TotalSeen = true
		s.Tokens.Total = max(s.Tokens.Total, e.TokensUsedTotal)
	} else if !s.Mark.TotalSeen {
		s.Tokens.Total = max(0, s.Tokens.Prompt-s.Tokens.Cached) + s.Tokens.Eval
	}
	if e.Cost != nil {
		call.Cost = *e.Cost
	}
	s.Cost += call.Cost
	t.Tokens += call.Total()
	t.Cost += call.Cost
	s.Usage.Role(e.Phase).Add(call)
}

func (v *verdictCounts) count(e *record.EvaluatorVerdict) {
	if e.Accepted() {
		v.Accepts++
		return
	}
	v.Rejects++
	if e.RejectionCategory != nil {
		bump(v.RejectionCategories, *e.RejectionCategory)
	}
}

func bump(m map[string]int64, key string) {
	if key != "" {
		m[key]++
	}
}
