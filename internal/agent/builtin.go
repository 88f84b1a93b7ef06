package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/model"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/tool"
)

// Toolbox runs the builtin agent's tools.
type Toolbox interface {
	Call(ctx context.Context, name, args string) tool.Result
}

// Builtin is the agent that git-tilth brings itself: one model, its tools and the history of one attempt at one task,
// of one review or of one interview. What it says and is told goes verbatim to Transcript before it is used.
//
// Every tool call of an assistant message is answered before the next request, because endpoints refuse a history in
// which one is not; the message itself is echoed byte for byte, reasoning included, because some refuse one that was
// changed.
type Builtin struct {
	// Ask makes one request and returns a healthy answer, or the error that ends the attempt.
	Ask   func(context.Context, model.Request) (*model.Reply, error)
	Tools json.RawMessage // the JSON array of everything the model may call, Final included
	// Final is the tool whose call ends the turn and is answered by Answer; "" for none.
	Final      string
	Box        Toolbox
	Allow      func() error                                 // is asked before each tool call; nil for always
	Emit       func(record.Event) error                     // writes an event of this iteration to the record
	Transcript func(json.RawMessage) error                  // keeps a message verbatim
	PostEdit   func(ctx context.Context, tool, path string) // hears of a file that a tool wrote

	history []json.RawMessage
	pending string // id of the Final call that Answer will answer
	failing string // the calls of this turn and what they said
	worked  bool   // one of them did what it was asked
}

// BuiltinTurn is what one model call came to.
type BuiltinTurn struct {
	Case     string           // the arguments of the Final call, "" when there was none
	RawCalls []model.ToolCall // the message's tool calls as the model wrote them; none where it was silent
	Text     string
	Failing  string // its calls and what they said, where there were some and each of them failed
}

// Start begins the history with a system and a user message.
func (b *Builtin) Start(system, user string) error {
	b.history = nil
	if err := b.say("system", system); err != nil {
		return err
	}
	return b.Say(user)
}

// Continue takes up the history of an earlier attempt. Tool calls that were never answered are
// answered as interrupted, then the user message follows.
func (b *Builtin) Continue(history []json.RawMessage, user string) error {
	b.history = history
	open, _ := unanswered(history)
	for _, id := range open {
		const interrupted = "Interrupted: this call did not finish. Look at the working tree before you repeat it."
		if err := b.answer(id, interrupted); err != nil {
			return err
		}
	}
	return b.Say(user)
}

// Reopen takes up a history that was cut off, and runs those calls of its last message that have no answer.
func (b *Builtin) Reopen(ctx context.Context, history []json.RawMessage) error {
	b.history = history
	open, fault := unanswered(history)
	if fault != nil || len(open) == 0 {
		return fault
	}
	for _, raw := range slices.Backward(history) {
		m, _ := event(raw)
		calls := m.Get("tool_calls").Array()
		if len(calls) == 0 {
			continue
		}
		for _, c := range calls[max(len(calls)-len(open), 0):] {
			call := model.ToolCall{ID: c.Get("id").Str, Name: c.Get("function.name").Str,
				Arguments: c.Get("function.arguments").Str}
			if err := errors.Join(ctx.Err(), b.use(ctx, call)); err != nil {
				return err
			}
		}
		return nil
	}
	return nil
}

// maxCalls is how many tools one answer may call: a model that repeats itself would keep its worker busy for hours.
const maxCalls = 64

// Turn makes one model call and runs the tools it asks for, in order.
func (b *Builtin) Turn(ctx context.Context) (BuiltinTurn, error) {
	reply, err := b.Ask(ctx, model.Request{Messages: b.history, Tools: b.Tools})
	if err != nil {
		return BuiltinTurn{}, err
	}
	if err := b.keep(reply.Message); err != nil {
		return BuiltinTurn{}, err
	}
	turn := BuiltinTurn{RawCalls: reply.ToolCalls, Text: reply.Content}
	b.pending = ""
	b.failing, b.worked = "", false
	for i, call := range reply.ToolCalls {
		if err := ctx.Err(); err != nil {
			return turn, err
		}
		isFinal := b.Final != "" && call.Name == b.Final
		switch {
		case i >= maxCalls:
			err = b.answer(call.ID,
				fmt.Sprintf("Not run: one answer may call %d tools. Call it again in the next.", maxCalls))
		case isFinal && b.pending == "":
			b.pending, turn.Case = call.ID, call.Arguments
			if turn.Case == "" {
				turn.Case = "{}"
			}
			err = b.Emit(&record.ToolCall{Tool: call.Name, Args: argsForRecord(call.Arguments)})
		case isFinal:
			err = b.answer(call.ID, "Not judged: one case at a time. The first one of this message is being judged.")
		case b.pending != "":
			err = b.answer(call.ID, "Not run: it came after the case. Call it again if the case is sent back.")
		default:
			err = b.use(ctx, call)
		}
		if err != nil {
			return turn, err
		}
	}
	if !b.worked && turn.Case == "" {
		turn.Failing = b.failing
	}
	return turn, nil
}

// use runs one tool call and answers it.
func (b *Builtin) use(ctx context.Context, call model.ToolCall) error {
	if b.Allow != nil {
		if err := b.Allow(); err != nil {
			return err
		}
	}
	if err := b.Emit(&record.ToolCall{Tool: call.Name, Args: argsForRecord(call.Arguments)}); err != nil {
		return err
	}
	res := b.Box.Call(ctx, call.Name, call.Arguments)
	b.worked = b.worked || res.Blocked == "" && !res.IsError
	b.failing += call.Name + " " + call.Arguments + "\n" + res.Blocked + res.Output + "\n"
	// A tool that a signal cut short is answered on resume, as interrupted.
	if err := cmp.Or(res.Err, ctx.Err()); err != nil {
		return err
	}
	if res.Blocked != "" {
		if err := b.Emit(&record.PreToolBlock{Tool: call.Name, Reason: res.Blocked}); err != nil {
			return err
		}
		return b.answer(call.ID, "Blocked: "+res.Blocked)
	}
	if err := b.Emit(toolResult(call.Name, res.Output, res.Chars, res.IsError)); err != nil {
		return err
	}
	if res.Edited != "" && b.PostEdit != nil {
		b.PostEdit(ctx, call.Name, res.Edited)
	}
	return b.answer(call.ID, res.Output)
}

func toolResult(name, text string, chars int, isError bool) *record.ToolResult {
	res := &record.ToolResult{Tool: name, Preview: preview(text), Chars: chars}
	if isError {
		res.IsError = &isError
	}
	return res
}

// Answer answers the pending Final call; without one it is a user message.
func (b *Builtin) Answer(text string) error {
	if b.pending == "" {
		return b.Say(text)
	}
	id := b.pending
	b.pending = ""
	if err := b.Emit(toolResult(b.Final, text, len(text), false)); err != nil {
		return err
	}
	return b.answer(id, text)
}

// Say adds a user message.
func (b *Builtin) Say(text string) error { return b.say("user", text) }

func (b *Builtin) say(role, text string) error {
	return b.keep(Message(role, text))
}

// Message is a message of a conversation as a request has it.
func Message(role, text string) json.RawMessage {
	return record.JSON(map[string]string{"role": role, "content": text})
}

func (b *Builtin) answer(callID, text string) error {
	return b.keep(record.JSON(map[string]string{"role": "tool", "tool_call_id": callID, "content": text}))
}

func (b *Builtin) keep(m json.RawMessage) error {
	b.history = append(b.history, m)
	if b.Transcript == nil {
		return nil
	}
	return b.Transcript(m)
}

// argsForRecord keeps arguments as JSON where they are, as text where a model garbled them.
func argsForRecord(args string) json.RawMessage {
	if t := strings.TrimSpace(args); strings.HasPrefix(t, "{") && json.Valid([]byte(t)) {
		return json.RawMessage(t)
	}
	return record.JSON(args)
}

// previewChars bounds what of a tool's result the record shows; the transcript has all of it.
const previewChars = 2000

func preview(s string) string {
	if len(s) <= previewChars {
		return s
	}
	return fmt.Sprintf("%s\n[... %d more]", strings.ToValidUTF8(s[:previewChars], ""), len(s)-previewChars)
}

// Continuable tells why a conversation that was read back cannot be taken up, nil if it can be: one that has lost a
// part would be a request that makes no sense to the model, without its task, or that its endpoint refuses.
func Continuable(history []json.RawMessage) error {
	_, fault := unanswered(history)
	return fault
}

// unanswered lists the tool calls of a history that have no answer, in order, and tells what is missing besides. Some
// models give every turn's calls the same ids, so an answer closes the call that came before it, not all calls of that
// name.
func unanswered(history []json.RawMessage) (open []string, fault error) {
	first := func(err error) {
		if fault == nil {
			fault = err
		}
	}
	for i, raw := range history {
		m, ok := event(raw)
		role := m.Get("role").Str
		if !ok || role == "" {
			first(fmt.Errorf("its message %d is none", i+1))
		}
		if i == 0 && role != "system" || i == 1 && role != "user" {
			first(errBeheaded)
		}
		switch at := slices.Index(open, m.Get("tool_call_id").Str); {
		case role == "tool" && at < 0:
			first(fmt.Errorf("the call that its message %d answers is lost", i+1))
		case role == "tool":
			open = slices.Delete(open, at, at+1)
		}
		for _, id := range m.Get("tool_calls.#.id").Array() {
			open = append(open, id.Str)
		}
	}
	if len(history) < 2 {
		first(errBeheaded)
	}
	return open, fault
}

var errBeheaded = errors.New("its beginning is lost: it does not start with the system prompt and the task")
