package loop

import (
	"encoding/json"
	"sync"

	"github.com/git-tilth/git-tilth/internal/agent"
	"github.com/git-tilth/git-tilth/internal/record"
)

// programCall is a turn of a program as a model_call.
func programCall(a *attempt, out agent.Outcome) *record.ModelCall {
	call := out.Call()
	call.TokensUsedTotal = a.Checkpoint.TokensUsed
	return call
}

// activityLog writes what a program says and does to the record as it happens.
type activityLog struct {
	emit func(record.Event) error
	mu   sync.Mutex
	err  error
}

func (l *activityLog) write(e agent.Activity) {
	var ev record.Event
	switch e.Kind {
	case "tool":
		ev = &record.ToolCall{Tool: e.Tool, Args: jsonOrText(e.Args)}
	case "tool_result":
		ev = &record.ToolResult{Tool: e.Tool, Preview: clip(e.Text, 2000), Chars: e.Chars, IsError: &e.IsError}
	default:
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.emit(ev); err != nil && l.err == nil {
		l.err = err
	}
}

func jsonOrText(s string) json.RawMessage {
	if json.Valid([]byte(s)) {
		return json.RawMessage(s)
	}
	return record.JSON(s)
}
