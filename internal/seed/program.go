package seed

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

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

// playTurn asks an agent program in the model's place: one turn of it, read-only and in a conversation of its own, is
// one answer. It is told the whole interview each time, so that nothing is lost with its process, and its final message
// becomes the call of ask_user or write_seed that it stands for.
func (in *interview) playTurn(ctx context.Context, r model.Request) (*model.Reply, error) {
	p, t := in.Program, in.Turn
	t.System, t.Prompt = gjson.GetBytes(r.Messages[0], "content").Str+in.ending, transcriptText(r.Messages[1:])
	t.ReadOnly, t.Emit, t.Conversation = true, in.looks, agent.Ref{ID: p.NewID()}
	out, err := p.Run(ctx, t)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	if out.How == agent.Unfinished && len(out.Denied) > 0 && !strings.HasSuffix(in.ending, agent.OnlyReading) {
		in.ending += agent.OnlyReading
	}
	if f := failure(p, out); f != nil {
		return nil, f
	}
	return replyOf(out, len(r.Messages)), nil
}

// failure is what kept a turn from being an answer, nil for nothing. The next one is asked for at once.
func failure(p *agent.Program, out agent.Outcome) *model.Failure {
	f := &model.Failure{Message: p.Name + ": " + out.Detail, Said: out.Detail, FinishReason: string(out.How),
		Usage: out.Usage, Kind: model.FinishError, RetryAfter: new(time.Duration)}
	switch {
	case out.How == agent.Refused:
		f.Kind = model.Fatal
		if p.Login != "" {
			f.Message += " (log in: " + p.Login + ")"
		}
		if out.Hint != "" {
			f.Message += " (" + out.Hint + ")"
		}
	case out.How == agent.UsageLimit:
		f.Kind, f.LimitReset = model.UsageLimit, out.LimitReset
	case out.How == agent.TimedOut:
		f.Kind = model.Timeout
	case out.How == agent.Unfinished:
		f.Kind = model.Empty
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

// transcriptText is the messages of an interview as one text. What a person answered stands in it whole.
func transcriptText(messages []json.RawMessage) string {
	var b strings.Builder
	called := map[string]string{} // tools by the ids of their calls
	for _, raw := range messages {
		m := gjson.ParseBytes(raw)
		said := m.Get("content").Str
		switch {
		case m.Get("role").Str == "tool":
			if tool := called[m.Get("tool_call_id").Str]; tool != askTool && tool != writeTool {
				said = text.Clip(said, maxToolAnswers)
			}
			fmt.Fprintf(&b, "## The answer\n\n%s\n\n", said)
		case m.Get("role").Str == "assistant":
			fmt.Fprintf(&b, "## Your message\n\n%s\n", said)
			for _, call := range m.Get("tool_calls").Array() {
				name := call.Get("function.name").Str
				called[call.Get("id").Str] = name
				fmt.Fprintf(&b, "%s %s\n", name, call.Get("function.arguments").Str)
			}
			b.WriteString("\n")
		default:
			b.WriteString(said + "\n\n")
		}
	}
	return b.String()
}

// looks shows and records what a program looks at. That it waits is only shown.
func (in *interview) looks(e record.Event) error {
	switch e := e.(type) {
	case *record.ToolCall:
		in.Terminal.step(strings.TrimSpace(e.Tool + " " + text.Clip(text.OneLine(string(e.Args)), 100)))
	case *record.AgentWaits:
		if e.Said != "" {
			in.Terminal.warn(e.Agent + " waits by itself: " + e.Said)
		}
		return nil
	}
	return in.emit(e)
}
