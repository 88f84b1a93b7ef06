package agent

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/model"
	"github.com/git-tilth/git-tilth/internal/record"
)

// Toolbox runs the tools of a model.
type Toolbox interface {
	Call(ctx context.Context, name, args string) ToolAnswer
}

// Worker does a task, a review or an interview: a model with its tools or an agent program, with the history of this
// one attempt, review or interview. All messages go verbatim to Transcript before they are used.
//
// Every tool call of an assistant message is answered before the next request, because endpoints refuse a history with
// an unanswered call. The message itself is echoed byte for byte, reasoning included, because some endpoints refuse a
// changed one.
type Worker struct {
	// Ask makes one request and returns a healthy answer, or the error that ends the attempt, as Calls do.
	Ask   func(context.Context, model.Request) (*model.Reply, error)
	Tools json.RawMessage // the JSON array of everything the model may call, Final included
	// Final is the tool that ends the turn and is answered by Answer; "" for none.
	Final      string
	Box        Toolbox
	Allow      func() error                                 // is asked before each tool call; nil for always
	Emit       func(record.Event) error                     // writes an event of this iteration to the record
	Transcript func(json.RawMessage) error                  // keeps a message verbatim
	PostEdit   func(ctx context.Context, tool, path string) // hears of a file that a tool wrote

	history []json.RawMessage
	pending string       // id of the Final call that Answer will answer
	failing bytes.Buffer // the calls of this turn and their results
	worked  bool         // one of them succeeded
}

// Said is the content of one answer: a case, tool calls, or text alone. For an agent program, which runs its tools
// itself, the text is its final message.
type Said struct {
	Case     string           // the arguments of the Final call, "" when there was none
	RawCalls []model.ToolCall // the message's tool calls as the model wrote them; none where it was silent
	Text     string
	Failing  string // its calls and their errors, if all of them failed
}

// Start begins the history with a system and a user message.
func (w *Worker) Start(system, user string) error {
	w.history = nil
	if err := w.say("system", system); err != nil {
		return err
	}
	return w.Say(user)
}

// Continue resumes the history of an earlier attempt. It answers open tool calls as interrupted, and adds the user
// message.
func (w *Worker) Continue(history []json.RawMessage, user string) error {
	w.history = history
	open, _ := unanswered(history)
	for _, id := range open {
		const interrupted = "Interrupted: this call did not finish. Look at the working tree before you repeat it."
		if err := w.answer(id, interrupted); err != nil {
			return err
		}
	}
	return w.Say(user)
}

// Reopen resumes a history that was cut off, and runs the unanswered calls of its last message.
func (w *Worker) Reopen(ctx context.Context, history []json.RawMessage) error {
	w.history = history
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
			if err := errors.Join(ctx.Err(), w.use(ctx, call)); err != nil {
				return err
			}
		}
		return nil
	}
	return nil
}

// Turn asks for one answer and runs the tools that it calls, in order.
func (w *Worker) Turn(ctx context.Context) (Said, error) {
	reply, err := w.Ask(ctx, model.Request{Messages: w.history, Tools: w.Tools})
	if err != nil {
		return Said{}, err
	}
	if err := w.keep(reply.Message); err != nil {
		return Said{}, err
	}
	turn := Said{RawCalls: reply.ToolCalls, Text: reply.Content}
	w.pending = ""
	w.failing.Reset()
	w.worked = false
	for _, call := range reply.ToolCalls {
		if err := ctx.Err(); err != nil {
			return turn, err
		}
		isFinal := w.Final != "" && call.Name == w.Final
		switch {
		case isFinal && w.pending == "":
			w.pending, turn.Case = call.ID, call.Arguments
			if turn.Case == "" {
				turn.Case = "{}"
			}
			err = w.Emit(&record.ToolCall{Tool: call.Name, Args: argsForRecord(call.Arguments)})
		case isFinal:
			err = w.answer(call.ID, "Not judged: one case at a time. The first one of this message is being judged.")
		case w.pending != "":
			err = w.answer(call.ID, "Not run: it came after the case. Call it again if the case is sent back.")
		default:
			err = w.use(ctx, call)
		}
		if err != nil {
			return turn, err
		}
	}
	if !w.worked && turn.Case == "" {
		turn.Failing = w.failing.String()
	}
	return turn, nil
}

// use runs one tool call and answers it.
func (w *Worker) use(ctx context.Context, call model.ToolCall) error {
	if w.Allow != nil {
		if err := w.Allow(); err != nil {
			return err
		}
	}
	if err := w.Emit(&record.ToolCall{Tool: call.Name, Args: argsForRecord(call.Arguments)}); err != nil {
		return err
	}
	res := w.Box.Call(ctx, call.Name, call.Arguments)
	w.worked = w.worked || res.Blocked == "" && !res.IsError
	w.failing.WriteString(call.Name + " " + call.Arguments + "\n" + res.Blocked + res.Output + "\n")
	// A tool that a signal cut short is answered on resume, as interrupted.
	if err := cmp.Or(res.Err, ctx.Err()); err != nil {
		return err
	}
	if res.Blocked != "" {
		if err := w.Emit(&record.PreToolBlock{Tool: call.Name, Reason: res.Blocked}); err != nil {
			return err
		}
		return w.answer(call.ID, "Blocked: "+res.Blocked)
	}
	if err := w.Emit(toolResult(call.Name, res.Output, res.Chars, res.IsError)); err != nil {
		return err
	}
	if res.Edited != "" && w.PostEdit != nil {
		w.PostEdit(ctx, call.Name, res.Edited)
	}
	return w.answer(call.ID, res.Output)
}

func toolResult(name, text string, chars int, isError bool) *record.ToolResult {
	res := &record.ToolResult{Tool: name, Preview: text, Chars: chars}
	if isError {
		res.IsError = &isError
	}
	return res
}

// Answer answers the pending Final call; without one it is a user message.
func (w *Worker) Answer(text string) error {
	if w.pending == "" {
		return w.Say(text)
	}
	id := w.pending
	w.pending = ""
	if err := w.Emit(toolResult(w.Final, text, len(text), false)); err != nil {
		return err
	}
	return w.answer(id, text)
}

// Say adds a user message.
func (w *Worker) Say(text string) error { return w.say("user", text) }

func (w *Worker) say(role, text string) error {
	return w.keep(Message(role, text))
}

// Content returns the text of a message.
func Content(message json.RawMessage) string {
	m, _ := event(message)
	return m.Get("content").Str
}

// IsUser reports whether a message is from the user, not from the model or a tool.
func IsUser(message json.RawMessage) bool {
	m, _ := event(message)
	return m.Get("role").Str == "user"
}

// Message returns a message of a conversation as a request has it.
func Message(role, text string) json.RawMessage {
	return record.JSON(map[string]string{"role": role, "content": text})
}

func (w *Worker) answer(callID, text string) error {
	return w.keep(record.JSON(map[string]string{"role": "tool", "tool_call_id": callID, "content": text}))
}

func (w *Worker) keep(m json.RawMessage) error {
	w.history = append(w.history, m)
	if w.Transcript == nil {
		return nil
	}
	return w.Transcript(m)
}

// argsForRecord keeps arguments as JSON where they are, as text where a model garbled them.
func argsForRecord(args string) json.RawMessage {
	if t := []byte(strings.TrimSpace(args)); !jsonl.IsDeep(t) && jsonl.IsObject(t) {
		return t
	}
	return record.JSON(args)
}

// Continuable returns the reason why a stored conversation cannot be continued, or nil: with a missing part it would
// lack the task, or its endpoint would refuse it.
func Continuable(history []json.RawMessage) error {
	_, fault := unanswered(history)
	return fault
}

// unanswered lists the tool calls of a history without an answer, in order, and returns another fault in it. Some
// models give every turn's calls the same ids, so an answer closes the last call before it, not all calls with that id.
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
			first(fmt.Errorf("its message %d is not a message", i+1))
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
