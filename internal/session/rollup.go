package session

import "github.com/git-tilth/git-tilth/internal/record"

// taskRunning is the status of a task in a summary between its context_reset and its end.
const taskRunning = "running"

// NewSummary is the roll-up of an empty record.
func NewSummary(sessionID string) *Summary {
	s := &Summary{Version: summaryVersion, SessionID: sessionID, kept: kept{extra{}}, Mark: mark{Begins: []int64{}}}
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
	if s.Stop != nil && goesOn(l) {
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
		t.Iter, t.Status, t.FailureReason, t.EndedAt = 0, taskRunning, "", ""
		if t.StartedAt == "" {
			t.StartedAt = ts
		}
	case *record.TaskDone:
		t.Status, t.FailureReason, t.EndedAt = TaskDone, "", ts
	case *record.TaskMarked:
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
		if t.Status == taskRunning && !e.Placeholder { // what was refused is committed
			t.Status, t.EndedAt = TaskDone, ts
		}
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
		if e.Reason == "commit_refused" {
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
	}
}

// notCommitted takes a task_done back: a commit hook refused what was accepted.
func (t *taskSummary) notCommitted() {
	if t.Status == TaskDone {
		t.Status, t.EndedAt = taskRunning, ""
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
	s.Tokens.Prompt += e.PromptTokens
	s.Tokens.Eval += e.EvalTokens
	if e.TokensUsedTotal > 0 {
		s.Mark.TotalSeen = true
		s.Tokens.Total = max(s.Tokens.Total, e.TokensUsedTotal)
	} else if !s.Mark.TotalSeen {
		s.Tokens.Total = s.Tokens.Prompt + s.Tokens.Eval
	}
	cost := 0.0
	if e.Cost != nil {
		cost = *e.Cost
	}
	s.Cost += cost
	t.Tokens += e.PromptTokens + e.EvalTokens
	t.Cost += cost
	s.Usage.Role(e.Phase).Add(RoleUsage{Calls: 1, PromptTokens: e.PromptTokens, EvalTokens: e.EvalTokens,
		CachedTokens: e.CachedTokens, ReasoningTokens: e.ReasoningTokens, Cost: cost})
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

// goesOn reports whether an event means that a session works, so that a stop before it is no longer its last word. What
// only tidies up after a stop is not work, and neither is a resume that found everything done.
func goesOn(l record.Line) bool {
	switch l.Type {
	case "stop", "hook_run", "log_repaired", "repo_changed", "proposed_learnings", "agent_session", "session_undone",
		"task_marked":
		return false
	case "session_resume":
		return !l.Event().(*record.SessionResume).FoundAllDone()
	}
	return true
}
