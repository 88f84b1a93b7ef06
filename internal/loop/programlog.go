package loop

import (
	"encoding/json"
	"sync"

	"github.com/git-tilth/git-tilth/internal/agent"
	"github.com/git-tilth/git-tilth/internal/model"
)

func usageOf(out agent.Outcome) model.Usage {
	return model.Usage{Prompt: out.Usage.Prompt, Eval: out.Usage.Eval, Cached: out.Usage.Cached, Reasoning: out.Usage.Reasoning, Cost: out.Usage.Cost, CostKnown: out.CostKnown}
}

// programCall is a turn of a program as a model_call.
func programCall(a *attempt, out agent.Outcome, more map[string]any) map[string]any {
	u := usageOf(out)
	payload := map[string]any{
		"prompt_tokens": u.Prompt, "eval_tokens": u.Eval, "cached_tokens": u.Cached, "reasoning_tokens": u.Reasoning,
		"cost": costOf(u), "tokens_used_total": a.Checkpoint.TokensUsed, "attempt": 1, "finish_reason": string(out.How),
		"turns": out.Turns, "conversation": out.Conversation, "health": "ok",
	}
	if out.How != agent.Completed {
		payload["health"], payload["error"] = string(out.How), out.Detail
	}
	if len(out.Denied) > 0 {
		payload["denied"] = out.Denied
	}
	putCapped(payload, "content", out.Text)
	for k, v := range more {
		payload[k] = v
	}
	return payload
}

// activityLog writes what a program says and does to the record as it happens.
type activityLog struct {
	emit func(string, map[string]any) error
	mu   sync.Mutex
	err  error
}

func (l *activityLog) write(e agent.Activity) {
	var typ string
	var payload map[string]any
	switch e.Kind {
	case "tool":
		typ, payload = "tool_call", map[string]any{"tool": e.Tool, "args": jsonOrText(e.Args)}
	case "tool_result":
		typ, payload = "tool_result", map[string]any{"tool": e.Tool, "result_preview": clip(e.Text, 2000), "result_chars": e.Chars, "is_error": e.IsError}
	default:
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.emit(typ, payload); err != nil && l.err == nil {
		l.err = err
	}
}

func jsonOrText(s string) any {
	if json.Valid([]byte(s)) {
		return json.RawMessage(s)
	}
	return s
}
