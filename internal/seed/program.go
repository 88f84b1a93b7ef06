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

// makeTurn returns the turn of an agent program that replaces a model's answer: read-only, in a new conversation. Its
// prompt is the whole interview, so that nothing is lost with the process.
func (in *interview) makeTurn(_ context.Context, messages []json.RawMessage) (agent.Turn, error) {
	t := in.Turn
	t.System, t.Prompt = agent.Content(messages[0])+in.ending, transcriptText(messages[1:])
	t.ReadOnly, t.Emit, t.Conversation = true, in.looks, agent.Ref{ID: in.Program.NewID()}
	return t, nil
}

// turnEnded returns a failure for a turn without a message.
func (in *interview) turnEnded(_ context.Context, out agent.Outcome) (again bool, err error) {
	f := &model.Failure{Kind: model.Empty, FinishReason: string(out.How), RetryAfter: new(time.Duration),
		Message: in.Program.Name + ": " + out.Detail, Usage: out.Usage}
	if out.Unkept != nil {
		if err := in.Emit(&record.LogRepaired{What: out.Unkept.Error()}); err != nil {
			return false, err
		}
	}
	switch {
	case out.How == agent.Unfinished:
		if len(out.Denied) > 0 && !strings.HasSuffix(in.ending, agent.OnlyReading) {
			in.ending += agent.OnlyReading
		}
		return false, f
	case (out.How == agent.Completed || out.How == agent.TurnLimit) && strings.TrimSpace(out.Text) == "":
		f.Message = in.Program.Name + " ended without a final message"
		return false, f
	}
	return false, nil
}

// asCall turns a final message that is a JSON object into a call of ask_user or write_seed. n makes the call's id
// unique.
func asCall(r *model.Reply, n int) {
	object, ok := agent.FinalJSON(r.Content)
	if !ok {
		return
	}
	call := model.ToolCall{ID: fmt.Sprint("call-", n), Name: askTool, Arguments: string(object)}
	if gjson.GetBytes(object, "prd_entries").Exists() {
		call.Name = writeTool
	}
	r.ToolCalls, r.Content = []model.ToolCall{call}, ""
	r.Message = record.JSON(map[string]any{"role": "assistant", "content": nil, "tool_calls": []any{
		map[string]any{"id": call.ID, "type": "function",
			"function": map[string]string{"name": call.Name, "arguments": call.Arguments}}}})
}

// transcriptText returns the messages of an interview as one text, with the user's answers in full.
func transcriptText(messages []json.RawMessage) string {
	var b strings.Builder
	for _, raw := range messages {
		m := gjson.ParseBytes(raw)
		said := m.Get("content").Str
		switch {
		case m.Get("role").Str == "tool":
			fmt.Fprintf(&b, "## The answer\n\n%s\n\n", said)
		case m.Get("role").Str == "assistant":
			fmt.Fprintf(&b, "## Your message\n\n%s\n", said)
			for _, call := range m.Get("tool_calls").Array() {
				fmt.Fprintf(&b, "%s %s\n", call.Get("function.name").Str, call.Get("function.arguments").Str)
			}
			b.WriteString("\n")
		default:
			b.WriteString(said + "\n\n")
		}
	}
	return b.String()
}

// looks shows and records the reads of a program. Waits are only shown.
func (in *interview) looks(e record.Event) error {
	switch e := e.(type) {
	case *record.ToolCall:
		in.Terminal.step(strings.TrimSpace(e.Tool + " " + text.Clip(text.OneLine(string(e.Args)), 100)))
	case *record.AgentWaits:
		in.Terminal.warn(e.Who + " waits by itself: " + e.Detail)
		return nil
	}
	return in.emit(e)
}
