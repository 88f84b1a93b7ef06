package view

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/tidwall/gjson"
)

// take turns one event into spans of its scope.
func (x *tracer) take(sc *scope, typ string, p gjson.Result, at time.Time) error {
	if err := x.iteration(sc, p, at); err != nil {
		return err
	}
	switch typ {
	case "session_start":
		x.sessionStart(sc, p)
	case "prompt_assembled":
		sc.prompts[roleName(p.Get("role").String())] = p.Get("content").String()
		if p.Get("role").String() == "evaluator" {
			sc.beginReview(at)
		}
		return nil
	case "model_call":
		return x.modelCall(sc, p, at)
	case "tool_call":
		return x.beginTool(sc, p, at)
	case "tool_result":
		return x.toolResult(sc, p, at)
	case "pre_tool_block":
		return x.blocked(sc, p, at)
	case "validator_run":
		return x.validators(sc, p, at)
	case "evaluator_verdict", "judge_verdict":
		return x.verdict(sc, p, at)
	case "task_done":
		sc.ok = true
		sc.attrs["tilth.task.outcome"] = "done"
	case "task_failed":
		sc.err = p.Get("reason").String()
		sc.attrs["tilth.task.outcome"] = "failed"
		sc.attrs["error.type"] = sc.err
	case "commit":
		sc.attrs["vcs.ref.head.revision"] = p.Get("sha").String()
	case "stop":
		sc.attrs["tilth.stop.reason"] = p.Get("reason").String()
	}
	sc.note(typ, p, at)
	return nil
}

// iteration begins the span of an iteration, which ends when the next one begins.
func (x *tracer) iteration(sc *scope, p gjson.Result, at time.Time) error {
	n := p.Get("iter").Int()
	if n <= 0 || sc.iter != nil && sc.iter.n == n {
		return nil
	}
	begin := sc.last // a call's event is written when it is over
	if err := x.endIteration(sc, begin); err != nil {
		return err
	}
	id, ok := spanID(p.Get("span_id").String())
	if !ok || sc.iters[id] || sc.trace != sc.recorded {
		id = sc.nextID()
	}
	sc.iters[id] = true
	sc.iter = &open{id: id, n: n, name: "iteration " + p.Get("iter").String(), begin: begin, attrs: map[string]any{
		"tilth.iteration": n, "gen_ai.operation.name": "invoke_agent", "openinference.span.kind": "AGENT",
	}}
	return nil
}

func (x *tracer) sessionStart(sc *scope, p gjson.Result) {
	for role, key := range map[string]string{"worker": "worker", "evaluator": "evaluator", "interview": "interviewer"} {
		if v := p.Get(key + "_model").String(); v != "" {
			x.models[role] = v
		}
		if v := p.Get(key + "_agent").String(); v != "" {
			x.agents[role] = v
		}
	}
	if v := p.Get("source").String(); v != "" {
		sc.attrs["tilth.source"] = v
	}
	if v := p.Get("branch").String(); v != "" {
		sc.attrs["vcs.ref.head.name"] = v
	}
}

func roleName(phase string) string {
	if phase == "" {
		return "worker"
	}
	return phase
}

// modelCall is a span from the event before the call to the call's own.
func (x *tracer) modelCall(sc *scope, p gjson.Result, at time.Time) error {
	role := roleName(p.Get("phase").String())
	begin := sc.last
	if sc.resumed.After(begin) && !sc.resumed.After(at) {
		begin = sc.resumed
	}
	sc.resumed = time.Time{}
	if w := p.Get("wait_seconds").Float(); w > 0 && w < 1e6 {
		sc.resumed = at.Add(time.Duration(w * float64(time.Second)))
	}
	model := x.models[role]
	if model == "" {
		model = x.models["worker"]
	}
	o := &open{id: sc.nextID(), name: strings.TrimSpace("chat " + model), begin: begin, attrs: map[string]any{
		"gen_ai.operation.name": "chat", "gen_ai.provider.name": x.provider(role), "gen_ai.request.model": model,
		"gen_ai.conversation.id": x.s.ID, "gen_ai.agent.name": role, "openinference.span.kind": "LLM",
		"gen_ai.usage.input_tokens": p.Get("prompt_tokens").Int(), "gen_ai.usage.output_tokens": p.Get("eval_tokens").Int(),
		"gen_ai.usage.cache_read.input_tokens": p.Get("cached_tokens").Int(), "gen_ai.usage.reasoning.output_tokens": p.Get("reasoning_tokens").Int(),
		"tilth.role": role, "tilth.attempt": p.Get("attempt").Int(),
	}}
	if c := p.Get("cost"); c.Type == gjson.Number {
		o.attrs["tilth.cost"] = c.Float()
	}
	if r := p.Get("finish_reason").String(); r != "" {
		o.attrs["gen_ai.response.finish_reasons"] = []string{r}
	}
	if text := sc.prompts[role]; text != "" {
		o.attrs["gen_ai.input.messages"] = message("user", text)
		delete(sc.prompts, role) // later calls of the conversation do not carry it anew
	}
	if text := p.Get("content").String(); text != "" {
		o.attrs["gen_ai.output.messages"] = message("assistant", text)
	}
	if h := p.Get("health").String(); h != "" && h != "ok" {
		o.err = h
		if said := p.Get("error").String(); said != "" {
			o.err += ": " + said
		}
		o.attrs["error.type"] = h
	}
	parent := sc.parent()
	if role == "evaluator" {
		sc.beginReview(begin)
		parent = sc.review.id
	}
	_, err := x.put(sc, o, parent, at)
	return err
}

// provider names the flavour of the API, as the conventions ask: the endpoints that
// are spoken to directly are compatible with OpenAI's.
func (x *tracer) provider(role string) string {
	if a := x.agents[role]; a != "" && a != "builtin" {
		return a
	}
	return "openai"
}

// message is one message in the form of the conventions.
func message(role, text string) string {
	data, err := json.Marshal([]map[string]any{{"role": role, "parts": []map[string]string{{"type": "text", "content": text}}}})
	if err != nil {
		return ""
	}
	return string(data)
}

// maxOpen bounds the calls that wait for their results.
const maxOpen = 256

func (x *tracer) beginTool(sc *scope, p gjson.Result, at time.Time) error {
	if len(sc.tools) >= maxOpen {
		oldest := sc.tools[0]
		sc.tools = sc.tools[1:]
		if _, err := x.put(sc, oldest, sc.parent(), at); err != nil {
			return err
		}
	}
	name := p.Get("tool").String()
	sc.tools = append(sc.tools, &open{id: sc.nextID(), name: strings.TrimSpace("execute_tool " + name), begin: at, attrs: map[string]any{
		"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name, "gen_ai.tool.type": "function",
		"gen_ai.tool.call.arguments": p.Get("args").String(), "openinference.span.kind": "TOOL",
	}})
	return nil
}

// toolResult ends the oldest open call of that tool. Programs may run several at once.
func (x *tracer) toolResult(sc *scope, p gjson.Result, at time.Time) error {
	t := sc.takeTool(p.Get("tool").String())
	if t == nil {
		sc.note("tool_result", p, at)
		return nil
	}
	t.attrs["gen_ai.tool.call.result"] = p.Get("result_preview").String()
	if n := p.Get("result_chars").Int(); n > 0 {
		t.attrs["tilth.result_chars"] = n
	}
	if p.Get("is_error").Bool() {
		t.err = "the tool reported an error"
	}
	_, err := x.put(sc, t, sc.parent(), at)
	return err
}

// blocked ends a call that was not let through.
func (x *tracer) blocked(sc *scope, p gjson.Result, at time.Time) error {
	t := sc.takeTool(p.Get("tool").String())
	if t == nil {
		sc.note("pre_tool_block", p, at)
		return nil
	}
	t.err = "blocked: " + p.Get("reason").String()
	t.attrs["error.type"] = "blocked"
	_, err := x.put(sc, t, sc.parent(), at)
	return err
}

// takeTool takes the oldest open call of a tool off the list; nil if there is none.
func (sc *scope) takeTool(name string) *open {
	for i, t := range sc.tools {
		if t.attrs["gen_ai.tool.name"] == name || name == "" {
			sc.tools = append(sc.tools[:i], sc.tools[i+1:]...)
			return t
		}
	}
	return nil
}

// validators is a span for the run and one for each validator. They run one after the
// other and their seconds are in the record, so that the last ends with the event.
func (x *tracer) validators(sc *scope, p gjson.Result, at time.Time) error {
	total := 0.0
	results := p.Get("results").Array()
	for _, r := range results {
		total += bounded(r.Get("seconds").Float())
	}
	begin := at.Add(-seconds(total))
	if begin.Before(sc.last) || len(results) == 0 {
		begin = sc.last
	}
	run := &open{id: sc.nextID(), name: "validators", begin: begin, attrs: map[string]any{
		"tilth.validators.passed": p.Get("passed").Bool(), "tilth.validators.count": int64(len(results)), "openinference.span.kind": "CHAIN",
	}}
	if !p.Get("passed").Bool() {
		run.err = "a validator failed"
	}
	next := begin
	for _, r := range results {
		o := &open{id: sc.nextID(), name: "validator " + r.Get("name").String(), begin: next, attrs: map[string]any{
			"tilth.validator.name": r.Get("name").String(), "tilth.validator.output": r.Get("output").String(), "openinference.span.kind": "EVALUATOR",
		}}
		if !r.Get("passed").Bool() {
			o.err = "failed"
		}
		if next = next.Add(seconds(bounded(r.Get("seconds").Float()))); next.After(at) {
			next = at
		}
		if _, err := x.put(sc, o, run.id, next); err != nil {
			return err
		}
	}
	_, err := x.put(sc, run, sc.parent(), at)
	return err
}

func bounded(s float64) float64 { return min(max(s, 0), 1e6) }

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// beginReview begins the evaluator's span, if it has not begun.
func (sc *scope) beginReview(at time.Time) {
	if sc.review == nil {
		sc.review = &open{id: sc.nextID(), name: "evaluator", begin: at, attrs: map[string]any{
			"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "evaluator", "openinference.span.kind": "EVALUATOR",
		}}
	}
}

func (x *tracer) verdict(sc *scope, p gjson.Result, at time.Time) error {
	sc.beginReview(sc.last) // an empty diff is rejected without a model
	o := sc.review
	o.attrs["gen_ai.evaluation.name"] = "verdict"
	o.attrs["gen_ai.evaluation.score.label"] = verdictOf(p)
	o.attrs["gen_ai.evaluation.explanation"] = p.Get("concern").String()
	o.attrs["tilth.rejection_category"] = p.Get("rejection_category").String()
	if t := sc.takeTool("submit_case"); t != nil { // the verdict is its answer
		if _, err := x.put(sc, t, sc.parent(), at); err != nil {
			return err
		}
	}
	return x.endReview(sc, at)
}

// note adds an event without a length of its own to the span that it happened in.
func (sc *scope) note(typ string, p gjson.Result, at time.Time) {
	e := spanEvent{at: at, name: typ, attrs: map[string]any{}}
	p.ForEach(func(k, v gjson.Result) bool {
		switch k.String() {
		case "task_id", "trace_id", "span_id", "iter":
			return true
		}
		switch v.Type {
		case gjson.True, gjson.False:
			e.attrs["tilth."+k.String()] = v.Bool()
		case gjson.Number:
			e.attrs["tilth."+k.String()] = v.Float()
		case gjson.Null:
		default:
			e.attrs["tilth."+k.String()] = fit(v.String(), 4096)
		}
		return len(e.attrs) < 64
	})
	if sc.iter != nil {
		if len(sc.iter.events) < maxNotes {
			sc.iter.events = append(sc.iter.events, e)
		}
		return
	}
	if len(sc.events) < maxNotes {
		sc.events = append(sc.events, e)
	}
}

// maxNotes bounds the events of one span, and with them the memory of an export.
const maxNotes = 256
