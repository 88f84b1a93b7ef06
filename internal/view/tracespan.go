package view

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/tidwall/gjson"

	"github.com/git-tilth/git-tilth/internal/record"
)

// take turns one event into spans of its scope. What has no length of its own is noted on the span that it happened in.
func (x *tracer) take(sc *scope, ev record.Event, e record.Line, at moment) {
	switch ev := ev.(type) {
	case *record.SessionStart:
		x.sessionStart(sc, ev)
	case *record.PromptAssembled:
		sc.prompts[cmp.Or(ev.Role, "worker")] = ev.Content
		if ev.Role == "evaluator" {
			sc.beginReview(at)
		}
		return
	case *record.ModelCall:
		x.modelCall(sc, ev, at)
		return
	case *record.ToolCall:
		x.beginTool(sc, ev, at)
		return
	case *record.ToolResult:
		if t := sc.endTool(ev.Tool); t != nil {
			t.attrs["gen_ai.tool.call.result"] = ev.Preview
			if ev.Chars > 0 {
				t.attrs["tilth.result_chars"] = int64(ev.Chars)
			}
			if deref(ev.IsError) {
				t.fail("the tool reported an error")
			}
			x.put(t, sc.parent(), at)
			return
		}
	case *record.PreToolBlock:
		if t := sc.endTool(ev.Tool); t != nil {
			t.fail("blocked: " + ev.Reason)
			t.attrs["error.type"] = "blocked"
			x.put(t, sc.parent(), at)
			return
		}
	case *record.ValidatorRun:
		x.validators(sc, ev, at)
		return
	case *record.EvaluatorVerdict:
		x.verdict(sc, ev, at)
		return
	case *record.TaskDone:
		sc.root.Status.Code = statusOK
		sc.root.attrs["tilth.task.outcome"] = "done"
	case *record.TaskFailed:
		sc.root.fail(ev.Reason)
		sc.root.attrs["tilth.task.outcome"] = "failed"
		sc.root.attrs["error.type"] = ev.Reason
	case *record.Commit:
		sc.root.attrs["vcs.ref.head.revision"] = ev.SHA
	case *record.Stop:
		sc.root.attrs["tilth.stop.reason"] = ev.Reason
	}
	sc.note(e, at)
}

// iteration begins the span of an iteration, which ends when the next one begins. A call's event is written when the
// call is over, so that the iteration began with the event before.
func (x *tracer) iteration(sc *scope, common record.Scope) {
	n := common.Iter
	if n <= 0 || sc.iter != nil && sc.n == n {
		return
	}
	x.endIteration(sc)
	sc.n = n
	sc.iter = sc.begin("iteration "+strconv.Itoa(n), sc.last, attributes{
		"tilth.iteration": int64(n), "gen_ai.operation.name": "invoke_agent", "openinference.span.kind": "AGENT",
	})
	var id spanID
	if readID(id[:], common.SpanID) && !sc.iters[id] && sc.root.TraceID == sc.recorded {
		sc.iter.ID = id
	}
	sc.iters[sc.iter.ID] = true
}

func (x *tracer) sessionStart(sc *scope, ev *record.SessionStart) {
	set := func(m map[string]string, role string, value *string) {
		if value != nil && *value != "" {
			m[role] = *value
		}
	}
	set(x.models, "worker", ev.WorkerModel)
	set(x.models, "evaluator", ev.EvaluatorModel)
	set(x.models, "interview", &ev.InterviewerModel)
	set(x.agents, "worker", &ev.WorkerAgent)
	set(x.agents, "evaluator", &ev.EvaluatorAgent)
	if ev.Source != "" {
		sc.root.attrs["tilth.source"] = ev.Source
	}
	if ev.Branch != "" {
		sc.root.attrs["vcs.ref.head.name"] = ev.Branch
	}
}

// modelCall is a span from the event before the call to the call's own.
func (x *tracer) modelCall(sc *scope, ev *record.ModelCall, at moment) {
	role := cmp.Or(ev.Phase, "worker")
	begin := sc.last
	if sc.resumed > begin && sc.resumed <= at {
		begin = sc.resumed
	}
	sc.resumed = 0
	if w := ev.WaitSeconds; w != nil && *w > 0 {
		sc.resumed = at + seconds(*w)
	}
	model := cmp.Or(x.models[role], x.models["worker"])
	s := sc.begin("chat "+model, begin, attributes{
		"gen_ai.operation.name": "chat", "gen_ai.provider.name": x.provider(role), "gen_ai.request.model": model,
		"gen_ai.conversation.id": x.s.ID, "gen_ai.agent.name": role, "openinference.span.kind": "LLM",
		"gen_ai.usage.input_tokens": ev.PromptTokens, "gen_ai.usage.output_tokens": ev.EvalTokens,
		"gen_ai.usage.cache_read.input_tokens": ev.CachedTokens,
		"gen_ai.usage.reasoning.output_tokens": ev.ReasoningTokens,
		"gen_ai.output.messages":               message("assistant", ev.Content),
		// later calls of the conversation do not carry the prompt anew
		"gen_ai.input.messages": message("user", sc.prompts[role]),
		"tilth.role":            role, "tilth.attempt": int64(ev.Attempt),
	})
	s.Kind = kindClient
	delete(sc.prompts, role)
	if ev.Cost != nil {
		s.attrs["tilth.cost"] = *ev.Cost
	}
	if ev.FinishReason != "" {
		s.attrs["gen_ai.response.finish_reasons"] = []string{ev.FinishReason}
	}
	if h := ev.Health; h != "" && h != "ok" {
		s.fail(joined(": ", h, ev.Error))
		s.attrs["error.type"] = h
	}
	parent := sc.parent()
	if role == "evaluator" {
		sc.beginReview(begin)
		parent = sc.review.ID
	}
	x.put(s, parent, at)
}

// provider names the flavour of the API, as the conventions ask: the endpoints that are spoken to directly are
// compatible with OpenAI's.
func (x *tracer) provider(role string) string {
	if a := x.agents[role]; a != "" && a != "builtin" {
		return a
	}
	return "openai"
}

// message is one message in the form of the conventions; none where there is no text.
func message(role, text string) string {
	if text == "" {
		return ""
	}
	content, _ := json.Marshal(text) // a string always has a form
	return fmt.Sprintf(`[{"parts":[{"type":"text","content":%s}],"role":%q}]`, content, role)
}

// maxOpen bounds the calls that wait for their results, and the runs of tasks that go on.
const maxOpen = 256

func (x *tracer) beginTool(sc *scope, ev *record.ToolCall, at moment) {
	if len(sc.tools) >= maxOpen {
		x.put(sc.tools[0], sc.parent(), at)
		sc.tools = sc.tools[1:]
	}
	sc.tools = append(sc.tools, sc.begin("execute_tool "+ev.Tool, at, attributes{
		"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": ev.Tool, "gen_ai.tool.type": "function",
		"gen_ai.tool.call.arguments": gjson.ParseBytes(ev.Args).String(), "openinference.span.kind": "TOOL",
	}))
}

// endTool takes the oldest open call of a tool, of any with "", nil for none. Programs may run several at once.
func (sc *scope) endTool(name string) *span {
	i := slices.IndexFunc(sc.tools, func(t *span) bool { return name == "" || t.attrs["gen_ai.tool.name"] == name })
	if i < 0 {
		return nil
	}
	t := sc.tools[i]
	sc.tools = slices.Delete(sc.tools, i, i+1)
	return t
}

// validators is a span for the run and one for each validator. They run one after the other and their seconds are in
// the record, so that the last ends with the event.
func (x *tracer) validators(sc *scope, ev *record.ValidatorRun, at moment) {
	total := moment(0)
	for _, r := range ev.Results {
		total += seconds(r.Seconds)
	}
	begin := sc.last
	if total > 0 {
		begin = max(begin, at-min(at, total))
	}
	run := sc.begin("validators", begin, attributes{
		"tilth.validators.passed": ev.Passed, "tilth.validators.count": int64(len(ev.Results)),
		"openinference.span.kind": "CHAIN",
	})
	if !ev.Passed {
		run.fail("a validator failed")
	}
	for _, r := range ev.Results {
		s := sc.begin("validator "+r.Name, begin, attributes{
			"tilth.validator.name": r.Name, "tilth.validator.output": deref(r.Output),
			"tilth.validator.skipped": r.Skipped,
			"openinference.span.kind": "EVALUATOR",
		})
		if !r.Passed && !r.Skipped {
			s.fail("failed")
		}
		begin = min(begin+seconds(r.Seconds), at)
		x.put(s, run.ID, begin)
	}
	x.put(run, sc.parent(), at)
}

// seconds is a length of time that a record tells, kept within reason.
func seconds(s float64) moment { return moment(min(max(s, 0), 1e6) * float64(time.Second)) }

// beginReview begins the evaluator's span, if it has not begun.
func (sc *scope) beginReview(at moment) {
	if sc.review == nil {
		sc.review = sc.begin("evaluator", at, attributes{
			"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "evaluator",
			"openinference.span.kind": "EVALUATOR",
		})
	}
}

func (x *tracer) verdict(sc *scope, ev *record.EvaluatorVerdict, at moment) {
	sc.beginReview(sc.last) // an empty diff is rejected without a model
	a := sc.review.attrs
	a["gen_ai.evaluation.name"] = "verdict"
	a["gen_ai.evaluation.score.label"] = verdictOf(ev)
	a["gen_ai.evaluation.explanation"] = deref(ev.Concern)
	a["tilth.rejection_category"] = deref(ev.RejectionCategory)
	if t := sc.endTool("submit_case"); t != nil { // the verdict is its answer
		x.put(t, sc.parent(), at)
	}
	x.endReview(sc, at)
}

// maxNotes bounds the events of one span, and with them the memory of an export.
const maxNotes = 256

// note adds an event without a length of its own to the span that it happened in.
func (sc *scope) note(e record.Line, at moment) {
	into := sc.root
	if sc.iter != nil {
		into = sc.iter
	}
	if len(into.Events) >= maxNotes {
		return
	}
	a := attributes{}
	eachMember(e.Payload, func(key string, v gjson.Result) bool {
		switch v.Type {
		case gjson.True, gjson.False:
			a["tilth."+key] = v.Bool()
		case gjson.Number:
			a["tilth."+key] = v.Float()
		case gjson.Null:
		default:
			a["tilth."+key] = fit(v.String(), 4096)
		}
		return len(a) < 64
	})
	into.Events = append(into.Events, spanEvent{at, e.Type, a.list()})
}
