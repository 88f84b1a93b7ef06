package session

import (
	"maps"

	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/record"
)

// NewSummary is the roll-up of an empty record.
func NewSummary(sessionID string) *Summary {
	s := &Summary{Version: summaryVersion, SessionID: sessionID, others: extra{},
		State: &record.State{}}
	s.complete()
	return s
}

// clone is a copy that no Feed changes.
func (s *Summary) clone() *Summary {
	c := *s
	c.State, c.Evaluator = s.State.Clone(), s.Evaluator.clone()
	c.Tasks, c.HookOutcomes = make(map[string]*taskSummary, len(s.Tasks)), make(map[string]map[string]int64)
	for id, t := range s.Tasks {
		own := *t
		own.ToolCalls, own.Evaluator = maps.Clone(t.ToolCalls), t.Evaluator.clone()
		c.Tasks[id] = &own
	}
	for hook, outcomes := range s.HookOutcomes {
		c.HookOutcomes[hook] = maps.Clone(outcomes)
	}
	c.ToolHistogram, c.Models, c.others = maps.Clone(s.ToolHistogram), maps.Clone(s.Models), maps.Clone(s.others)
	return &c
}

func (v verdictCounts) clone() verdictCounts {
	v.RejectionCategories = maps.Clone(v.RejectionCategories)
	return v
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
	e := l.Brief()
	s.State.Apply(l, e)
	s.count(l.TS, e)
	s.Stop, s.SeedSHA = s.State.Stop, ""
	if s.State.Seed != nil {
		s.SeedSHA = s.State.Seed.SHA
	}
}

// count adds an event to the counts. The statuses of tasks come from the record's State.
func (s *Summary) count(ts string, e record.Event) {
	t := s.task(e.Common().TaskID, int64(e.Common().Iter))
	switch e := e.(type) {
	case *record.SessionStart:
		s.start(ts, e)
	case *record.SessionResume:
		s.Resumes++
		if s.StartedAt == nil {
			s.StartedAt = &ts
		}
	case *record.ContextReset:
		t.Attempts++
		t.Iter = 0
		if t.StartedAt == "" {
			t.StartedAt = ts
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
	switch e := e.(type) {
	case *record.SessionStart, *record.SessionResume, *record.SessionRewound, *record.SessionUndone:
		for id := range s.State.Tasks {
			s.task(id, 0).stands(s.State.Tasks[id], ts)
		}
	case *record.TaskMarked:
		if e.Mark == "removed" {
			delete(s.Tasks, e.TaskID)
			return
		}
	}
	t.stands(s.State.Tasks[e.Common().TaskID], ts)
}

// stands writes down how the task stands since then.
func (t *taskSummary) stands(now record.Task, since string) {
	switch {
	case now.Status == record.Working || now.Status == record.Pending:
		t.EndedAt = ""
	case t.Status != now.Status:
		t.EndedAt = since
	}
	t.Status, t.FailureReason, t.Commit = now.Status, now.FailureReason, now.Commit
}

// task returns the entry of an event's task, updated to its iteration. An event without a task gets an unused entry.
func (s *Summary) task(id string, iter int64) *taskSummary {
	t := s.Tasks[id]
	if t == nil {
		t = &taskSummary{Status: record.Working, ToolCalls: map[string]int64{}}
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

func (s *Summary) modelCall(t *taskSummary, e *record.ModelCall) {
	call := RoleUsage{Calls: 1, PromptTokens: jsonl.Tokens(e.PromptTokens), EvalTokens: jsonl.Tokens(e.EvalTokens),
		CachedTokens: jsonl.Tokens(e.CachedTokens), ReasoningTokens: jsonl.Tokens(e.ReasoningTokens)}
	s.Tokens.Prompt += call.PromptTokens
	s.Tokens.Eval += call.EvalTokens
	s.Tokens.Cached += call.CachedTokens
	if e.TokensUsedTotal > 0 {
		s.TotalSeen = true
		s.Tokens.Total = max(s.Tokens.Total, e.TokensUsedTotal)
	} else if !s.TotalSeen {
		s.Tokens.Total = max(0, s.Tokens.Prompt-s.Tokens.Cached) + s.Tokens.Eval
	}
	if e.Cost != nil {
		call.Cost, _ = jsonl.Dollars(*e.Cost)
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
