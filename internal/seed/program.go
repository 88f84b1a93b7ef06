package seed

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/tidwall/gjson"

	"github.com/git-tilth/git-tilth/internal/agent"
	"github.com/git-tilth/git-tilth/internal/model"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/text"
)

const (
	programTries   = 3    // of one turn
	maxToolAnswers = 4000 // characters of what a tool of an endpoint's part of the interview said
)

// Program is an agent program in the place of the model: one turn of it, read-only and in a conversation of its own, is
// one answer. It is told the whole interview each time, so that nothing is lost with its process, and its final message
// becomes the call of ask_user or write_seed that it stands for.
type Program struct {
	*agent.Program
	Turn agent.Turn // what all turns have in common

	ending string
	emit   func(record.Event) error
	say    func(sayKind, string)
}

// ChatRetry plays one turn, and a failed one again.
func (p *Program) ChatRetry(ctx context.Context, r model.Request, retry model.Retry) (*model.Reply, int, error) {
	for try := 1; ; try++ {
		t, looks := p.Turn, activity{Program: p}
		t.System, t.Prompt = gjson.GetBytes(r.Messages[0], "content").Str+p.ending, transcriptText(r.Messages[1:])
		t.ReadOnly, t.OnEvent, t.Conversation = true, looks.write, agent.Ref{ID: p.NewID()}
		t.OnConversation = func(string) error { return nil }
		out, err := p.Run(ctx, t)
		if err == nil {
			err = looks.err
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, try, err
		}
		f := p.failure(out)
		switch {
		case f == nil:
			return replyOf(out, len(r.Messages)), try, nil
		case !f.Retryable() || try == programTries:
			return nil, try, f
		case retry.Before != nil:
			retry.Before(try, f, 0)
		}
	}
}

// failure is what kept a turn from being an answer, nil for nothing.
func (p *Program) failure(out agent.Outcome) *model.Failure {
	f := &model.Failure{Message: p.Name + ": " + out.Detail, Said: out.Detail, FinishReason: string(out.How),
		Usage: out.Usage, Kind: model.FinishError}
	switch {
	case out.How == agent.Refused:
		f.Kind = model.Fatal
		if p.Login != "" {
			f.Message += " (log in: " + p.Login + ")"
		}
	case out.How == agent.UsageLimit:
		f.Kind, f.LimitReset = model.UsageLimit, out.LimitReset
	case out.How == agent.TimedOut:
		f.Kind = model.Timeout
	case out.How != agent.Completed && out.How != agent.TurnLimit:
	case strings.TrimSpace(out.Text) == "":
		f.Kind, f.Message = model.Empty, p.Name+" ended without a final message"
	default:
		return nil
	}
	return f
}

// replyOf is a final message as the answer of a model that has the two tools. n makes the call's id another one than
// those before it.
func replyOf(out agent.Outcome, n int) *model.Reply {
	r := &model.Reply{FinishReason: string(out.How), Usage: out.Usage, Content: out.Text}
	message := map[string]any{"role": "assistant", "content": out.Text}
	if object, ok := agent.FinalJSON(out.Text); ok {
		name := askTool
		if gjson.GetBytes(object, "prd_entries").Exists() {
			name = writeTool
		}
		call := model.ToolCall{ID: fmt.Sprint("call-", n), Name: name, Arguments: string(object)}
		r.ToolCalls, r.Content = []model.ToolCall{call}, ""
		message["content"] = nil
		message["tool_calls"] = []any{map[string]any{"id": call.ID, "type": "function",
			"function": map[string]string{"name": name, "arguments": call.Arguments}}}
	}
	r.Message, _ = json.Marshal(message) // strings and maps of them
	return r
}

// transcriptText is the messages of an interview as one text.
func transcriptText(messages []json.RawMessage) string {
	var b strings.Builder
	for _, raw := range messages {
		m := gjson.ParseBytes(raw)
		said := m.Get("content").Str
		switch {
		case m.Get("role").Str == "tool":
			fmt.Fprintf(&b, "## The answer\n\n%s\n\n", text.Clip(said, maxToolAnswers))
		case m.Get("role").Str == "assistant":
			fmt.Fprintf(&b, "## Your message\n\n%s\n", said)
			for _, call := range m.Get("tool_calls.#.function").Array() {
				fmt.Fprintf(&b, "%s %s\n", call.Get("name").Str, call.Get("arguments").Str)
			}
			b.WriteString("\n")
		default:
			b.WriteString(said + "\n\n")
		}
	}
	return b.String()
}

// activity shows and records what a program looks at.
type activity struct {
	*Program
	mu  sync.Mutex
	err error
}

func (a *activity) write(e agent.Activity) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var ev record.Event
	switch e.Kind {
	case "tool":
		args := json.RawMessage(e.Args)
		if !json.Valid(args) {
			args = record.JSON(e.Args)
		}
		a.say(sayStep, strings.TrimSpace(e.Tool+" "+text.Clip(text.OneLine(e.Args), 100)))
		ev = &record.ToolCall{Tool: e.Tool, Args: args}
	case "tool_result":
		ev = &record.ToolResult{Tool: e.Tool, Preview: text.Clip(e.Text, 2000), Chars: e.Chars, IsError: &e.IsError}
	case "waits":
		a.say(sayWarn, a.Name+" waits by itself: "+e.Text)
	}
	if ev != nil && a.err == nil {
		a.err = a.emit(ev)
	}
}
