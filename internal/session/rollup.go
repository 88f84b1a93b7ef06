package session

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/git-tilth/git-tilth/internal/jsonl"
)

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

// fields are the payload members that the roll-up reads, found in one pass over the line. The strings are parts of it.
type fields struct {
	task, reason, phase, tool, hook, outcome, verdict, category, sha string
	iter, prompt, eval, cached, reasoning, total                     int64
	cost                                                             float64
	hasTotal, accept                                                 bool
	limits, retried, pending                                         string // JSON
	workerModel, evaluatorModel, lastStop                            string
}

func (f *fields) set(key, raw string) bool {
	switch key {
	case "task_id":
		f.task = jsonl.String(raw)
	case "iter":
		f.iter = gjson.Parse(raw).Int()
	case "reason":
		f.reason = jsonl.String(raw)
	case "phase":
		f.phase = jsonl.String(raw)
	case "tool":
		f.tool = jsonl.String(raw)
	case "hook":
		f.hook = jsonl.String(raw)
	case "outcome":
		f.outcome = jsonl.String(raw)
	case "verdict":
		f.verdict = jsonl.String(raw)
	case "accept":
		f.accept = raw == "true"
	case "rejection_category":
		f.category = jsonl.String(raw)
	case "sha":
		f.sha = jsonl.String(raw)
	case "prompt_tokens":
		f.prompt = gjson.Parse(raw).Int()
	case "eval_tokens":
		f.eval = gjson.Parse(raw).Int()
	case "cached_tokens":
		f.cached = gjson.Parse(raw).Int()
	case "reasoning_tokens":
		f.reasoning = gjson.Parse(raw).Int()
	case "tokens_used_total":
		v := gjson.Parse(raw)
		f.total, f.hasTotal = v.Int(), v.Type == gjson.Number
	case "cost":
		f.cost = gjson.Parse(raw).Float()
	case "limits":
		f.limits = raw
	case "retried":
		f.retried = raw
	case "pending":
		f.pending = raw
	case "last_stop":
		f.lastStop = jsonl.String(raw)
	case "worker_model":
		f.workerModel = jsonl.String(raw)
	case "evaluator_model":
		f.evaluatorModel = jsonl.String(raw)
	}
	return true
}

// envelope is an event line taken apart; its strings are parts of the line.
type envelope struct{ ts, typ, payload string }

func openEnvelope(line []byte) (e envelope) {
	jsonl.Members(jsonl.Text(line), func(key, raw string) bool {
		switch key {
		case "ts":
			e.ts = jsonl.String(raw)
		case "type":
			if raw[0] == '"' {
				e.typ = jsonl.Unquote(raw)
			}
		case "payload":
			e.payload = raw
		}
		return true
	})
	return e
}

// Feed counts one line of the record, as a scan hands it out. Lines that are no events count as skipped.
func (r *Rollup) Feed(line []byte) {
	e := openEnvelope(line)
	if e.typ == "" {
		r.sum.Skipped++
		return
	}
	var f fields
	jsonl.Members(e.payload, f.set)
	r.count(e.typ, strings.Clone(e.ts), &f)
}

// count is the table of what each type of event changes.
func (r *Rollup) count(typ, ts string, f *fields) {
	s := &r.sum
	s.Events++
	if ts != "" {
		s.LastEventAt = &ts
	}
	if s.Stop != nil && goesOn(typ, f) {
		s.Stop = nil
	}
	t := r.task(f.task)
	if f.iter > t.Iter {
		t.Iterations += f.iter - t.Iter
		t.Iter = f.iter
	}
	switch typ {
	case "session_start":
		r.start(ts, f)
	case "session_resume":
		r.resume(ts, f)
	case "seed_committed":
		s.SeedSHA = strings.Clone(f.sha)
	case "context_reset":
		t.Attempts++
		t.Iter, t.Status, t.FailureReason, t.EndedAt = 0, TaskRunning, "", ""
		if t.StartedAt == "" {
			t.StartedAt = ts
		}
	case "task_done":
		t.Status, t.FailureReason, t.EndedAt = TaskDone, "", ts
	case "task_failed":
		t.Status, t.FailureReason, t.EndedAt = TaskFailed, strings.Clone(f.reason), ts
	case "commit":
		t.Commit = strings.Clone(f.sha)
	case "stop":
		s.Stop = &Stop{Reason: strings.Clone(f.reason), TS: ts}
	case "model_call":
		r.modelCall(t, f)
	case "tool_call":
		bump(s.ToolHistogram, f.tool)
		bump(t.ToolCalls, f.tool)
	case "pre_tool_block":
		t.HookBlocks++
	case "hook_run":
		if f.hook != "" && f.outcome != "" {
			if s.HookOutcomes[f.hook] == nil {
				s.HookOutcomes[strings.Clone(f.hook)] = map[string]int64{}
			}
			bump(s.HookOutcomes[f.hook], f.outcome)
		}
	case "evaluator_verdict", "judge_verdict":
		accept := f.verdict == "accept" || f.accept
		s.Evaluator.count(accept, f.category)
		t.Evaluator.count(accept, f.category)
	}
}

// task is the entry of a task; an event without one gets an entry that nobody sees.
func (r *Rollup) task(id string) *taskSummary {
	t := r.sum.Tasks[id]
	if t == nil {
		t = &taskSummary{Status: TaskRunning, ToolCalls: map[string]int64{}}
		t.Evaluator.RejectionCategories = map[string]int64{}
		if id != "" {
			r.sum.Tasks[strings.Clone(id)] = t
		}
	}
	return t
}

func (r *Rollup) start(ts string, f *fields) {
	s := &r.sum
	if f.phase == "prep-feature" {
		s.PrepStartedAt = &ts
	} else {
		s.StartedAt = &ts
	}
	if strings.HasPrefix(f.limits, "{") {
		s.Limits = []byte(f.limits)
	}
	if f.workerModel != "" {
		s.Models[RoleWorker] = strings.Clone(f.workerModel)
	}
	if f.evaluatorModel != "" {
		s.Models[RoleEvaluator] = strings.Clone(f.evaluatorModel)
	}
}

// resume takes back the failures of the tasks that are tried again.
func (r *Rollup) resume(ts string, f *fields) {
	r.sum.Resumes++
	if r.sum.StartedAt == nil {
		r.sum.StartedAt = &ts
	}
	retried := gjson.Parse(f.retried)
	if !retried.IsArray() {
		return
	}
	retried.ForEach(func(_, id gjson.Result) bool {
		if t := r.sum.Tasks[id.String()]; t != nil && t.Status == TaskFailed {
			t.Status, t.FailureReason, t.EndedAt = TaskPending, "", ""
		}
		return true
	})
}

func (r *Rollup) modelCall(t *taskSummary, f *fields) {
	s := &r.sum
	s.Tokens.Prompt += f.prompt
	s.Tokens.Eval += f.eval
	if f.hasTotal {
		r.mark.TotalSeen = true
		s.Tokens.Total = max(s.Tokens.Total, f.total)
	} else if !r.mark.TotalSeen {
		s.Tokens.Total = s.Tokens.Prompt + s.Tokens.Eval
	}
	s.Cost += f.cost
	t.Tokens += f.prompt + f.eval
	t.Cost += f.cost
	s.Usage.Role(f.phase).Add(RoleUsage{Calls: 1, PromptTokens: f.prompt, EvalTokens: f.eval, CachedTokens: f.cached,
		ReasoningTokens: f.reasoning, Cost: f.cost})
}

func (v *verdictCounts) count(accept bool, category string) {
	if accept {
		v.Accepts++
		return
	}
	v.Rejects++
	bump(v.RejectionCategories, category)
}

// bump counts a key; the key may be a part of a line.
func bump(m map[string]int64, key string) {
	if key == "" {
		return
	}
	if n, ok := m[key]; ok {
		m[key] = n + 1
		return
	}
	m[strings.Clone(key)] = 1
}

// goesOn reports whether an event means that a session works, so that a stop before it is no longer its last word. What
// only tidies up after a stop is not work, and neither is a resume that found everything done.
func goesOn(typ string, f *fields) bool {
	switch typ {
	case "stop", "hook_run", "log_repaired", "proposed_learnings", "agent_session":
		return false
	case "session_resume":
		none := func(raw string) bool {
			v := gjson.Parse(raw)
			return v.Type == gjson.Null || v.IsArray() && len(v.Array()) == 0 || v.Type == gjson.Number && v.Int() == 0
		}
		return f.lastStop != "all_done" || !none(f.pending) || !none(f.retried)
	}
	return true
}
