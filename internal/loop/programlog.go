package loop

import (
	"encoding/json"
	"sync"

	"github.com/git-tilth/git-tilth/internal/agent"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
)

// activityLog writes what a program says and does to the record as it happens.
type activityLog struct {
	emit   func(record.Event) error
	agent  string
	judges bool // an evaluator's tools are not on the record
	mu     sync.Mutex
	err    error
}

func (l *activityLog) write(e agent.Activity) {
	if l.judges && e.Kind != "waits" && e.Kind != "quiet" {
		return
	}
	var ev record.Event
	switch e.Kind {
	case "tool":
		ev = &record.ToolCall{Tool: e.Tool, Args: jsonOrText(e.Args)}
	case "tool_result":
		ev = &record.ToolResult{Tool: e.Tool, Preview: clip(e.Text, 2000), Chars: e.Chars, IsError: &e.IsError}
	case "waits":
		ev = &record.AgentWaits{Agent: l.agent, Said: text.HeadBytes(text.VisibleLine(e.Text), 300)}
	case "quiet":
		ev = &record.AgentWaits{Agent: l.agent, Since: session.FormatTime(e.Since)}
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
