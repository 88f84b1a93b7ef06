package session

import "github.com/git-tilth/git-tilth/internal/record"

// TaskRunning is the status of a task in a summary between its context_reset and its end.
const TaskRunning = "running"

// Rollup counts events as they are fed to it, in the order of the record. It is not safe for concurrent use.
type Rollup struct {
	sum  Summary
	mark mark
}

// NewRollup is the roll-up of an empty record.
func NewRollup(sessionID string) *Rollup {
	r := &Rollup{}
	r.sum.Version, r.sum.SessionID = summaryVersion, sessionID
	r.complete()
	return r
}

// complete makes the maps that a summary, new or read from disk, lacks.
func (r *Rollup) complete() {
	s := &r.sum
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

// Summary is the state of the roll-up. It is the roll-up's own: it changes with the next Feed.
func (r *Rollup) Summary() *Summary { return &r.sum }

// Feed counts one line of the record, as a scan hands it out. Lines that are no events count as skipped.
func (r *Rollup) Feed(line []byte) {
	l := record.Parse(line)
	if l.Type == "" {
		r.sum.Skipped++
		return
	}
	r.sum.Events++
	if l.TS != "" {
		r.sum.LastEventAt = &l.TS
	}
	if r.sum.Stop != nil && goesOn(l) {
		r.sum.Stop = nil
	}
	switch l.Type {
	case "prompt_assembled", "memory_load", "tool_result":
		r.task(l.Task()) // most of a record is their text, which nobody counts
	default:
		r.count(l.TS, l.Event())
	}
}

// count is the table of what each type of event changes.
func (r *Rollup) count(ts string, e record.Event) {
	s, t := &r.sum, r.task(e.Common().TaskID, int64(e.Common().Iter))
	switch e := e.(type) {
	case *record.SessionStart:
		r.start(ts, e)
	case *record.SessionResume:
		r.resume(ts, e)
	case *record.SeedCommitted:
		s.SeedSHA = e.SHA
	case *record.ContextReset:
		t.Attempts++
		t.Iter, t.Status, t.FailureReason, t.EndedAt = 0, TaskRunning, "", ""
		if t.StartedAt == "" {
			t.StartedAt = ts
		}
	case *record.TaskDone:
		t.Status, t.FailureReason, t.EndedAt = TaskDone, "", ts
	case *record.TaskFailed:
		t.Status, t.FailureReason, t.EndedAt = TaskFailed, e.Reason, ts
	case *record.Commit:
		t.Commit = e.SHA
	case *record.Stop:
		s.Stop = &Stop{Reason: e.Reason, TS: ts}
	case *record.ModelCall:
		r.modelCall(t, e)
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

// task is the entry of an event's task, brought to its iteration; an event without a task gets one that nobody sees.
func (r *Rollup) task(id string, iter int64) *taskSummary {
	t := r.sum.Tasks[id]
	if t == nil {
		t = &taskSummary{Status: TaskRunning, ToolCalls: map[string]int64{}}
		t.Evaluator.RejectionCategories = map[string]int64{}
		if id != "" {
			r.sum.Tasks[id] = t
		}
	}
	if iter > t.Iter {
		t.Iterations += iter - t.Iter
		t.Iter = iter
	}
	return t
}

func (r *Rollup) start(ts string, e *record.SessionStart) {
	s := &r.sum
	if e.Phase == "prep-feature" {
		s.PrepStartedAt = &ts
	} else {
		s.StartedAt = &ts
	}
	if len(e.Limits) > 0 {
		s.Limits = record.JSON(e.Limits)
	}
	for role, model := range map[string]*string{RoleWorker: e.WorkerModel, RoleEvaluator: e.EvaluatorModel} {
		if model != nil && *model != "" {
			s.Models[role] = *model
		}
	}
}

// resume takes back the failures of the tasks that are tried again.
func (r *Rollup) resume(ts string, e *record.SessionResume) {
	r.sum.Resumes++
	if r.sum.StartedAt == nil {
		r.sum.StartedAt = &ts
	}
	for _, id := range e.Retried {
		if t := r.sum.Tasks[id]; t != nil && t.Status == TaskFailed {
			t.Status, t.FailureReason, t.EndedAt = TaskPending, "", ""
		}
	}
}

func (r *Rollup) modelCall(t *taskSummary, e *record.ModelCall) {
	s := &r.sum
	s.Tokens.Prompt += e.PromptTokens
	s.Tokens.Eval += e.EvalTokens
	if e.TokensUsedTotal > 0 {
		r.mark.TotalSeen = true
		s.Tokens.Total = max(s.Tokens.Total, e.TokensUsedTotal)
	} else if !r.mark.TotalSeen {
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
	case "stop", "hook_run", "log_repaired", "repo_changed", "proposed_learnings", "agent_session":
		return false
	case "session_resume":
		resume, ok := l.Event().(*record.SessionResume)
		return !ok || !resume.FoundAllDone()
	}
	return true
}
