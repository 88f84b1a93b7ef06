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

// Toolbox runs a model's tools.
type Toolbox interface {
	Call(ctx context.Context, name, args string) ToolAnswer
}

// Worker does a task, a review or an interview: a model with tools or an agent program, with the history of this one
// attempt, review or interview. All messages go verbatim to Transcript before they are used.
//
// Every tool call of an assistant message is answered before the next request, because endpoints refuse a history with
// an unanswered call. The message itself is sent back byte for byte, with its reasoning, because some endpoints refuse
// a changed one.
type Worker struct {
	// Ask makes one request and returns a healthy answer, or the error that ends the attempt, as Calls does.
	Ask   func(context.Context, model.Request) (*model.Reply, error)
	Tools json.RawMessage // JSON array of all tools, including Final
	// Final is the tool that ends the turn and that Answer answers; "" for none.
	Final      string
	Box        Toolbox
	Allow      func() error                                 // called before each tool call; nil is always
	Emit       func(record.Event) error                     // records an event of this iteration
	Transcript func(json.RawMessage) error                  // saves a message verbatim
	PostEdit   func(ctx context.Context, tool, path string) // called after a tool wrote a file

	history []json.RawMessage
	pending string       // id of the Final call to answer
	failing bytes.Buffer // this turn's calls and their results
	worked  bool         // one of them succeeded
}

// Said is the content of one answer: a case, tool calls, or only text. For an agent program, which runs its own tools,
// the text is the final message.
type Said struct {
	Case     string           // arguments of the Final call, or ""
	RawCalls []model.ToolCall // the message's tool calls as the model wrote them
	Text     string
	Failing  string // calls and errors, if all calls failed
}

// Start begins the history with a system message and a user message.
func (w *Worker) Start(system, user string) error {
	w.history = nil
	if err := w.say("system", system); err != nil {
		return err
	}
	return w.Say(user)
}

// Continue resumes the history of an earlier attempt. It answers open tool calls as interrupted and adds the user
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

// Reopen resumes an interrupted history, and runs the unanswered calls of its last message.
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

// Turn asks for one answer and runs its tool calls in order.
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
	// A resume answers an interrupted tool call as interrupted.
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

// Answer answers the pending Final call, or adds a user message if there is none.
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

// IsUser reports whether a message is from the user.
func IsUser(message json.RawMessage) bool {
	m, _ := event(message)
	return m.Get("role").Str == "user"
}

// Message returns a message of a conversation in the form of a request.
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

// argsForRecord returns arguments as JSON, or as text if they are not JSON.
func argsForRecord(args string) json.RawMessage {
	if t := []byte(strings.TrimSpace(args)); !jsonl.IsDeep(t) && jsonl.IsObject(t) {
		return t
	}
	return record.JSON(args)
}

// Continuable returns the reason why a stored conversation cannot be continued, or nil. Without a missing part it
// would lack the task, or its endpoint would refuse it.
func Continuable(history []json.RawMessage) error {
	_, fault := unanswered(history)
	return fault
}

// unanswered lists the unanswered tool calls of a history in order, and returns any other fault. Some models reuse the
// same ids in every turn, so an answer closes only the last call with its id.
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
			first(fmt.Errorf("message %d is not valid", i+1))
		}
		if i == 0 && role != "system" || i == 1 && role != "user" {
			first(errNoBeginning)
		}
		switch at := slices.Index(open, m.Get("tool_call_id").Str); {
		case role == "tool" && at < 0:
			first(fmt.Errorf("message %d answers a missing call", i+1))
		case role == "tool":
			open = slices.Delete(open, at, at+1)
		}
		for _, id := range m.Get("tool_calls.#.id").Array() {
			open = append(open, id.Str)
		}
	}
	if len(history) < 2 {
		first(errNoBeginning)
	}
	return open, fault
}

var errNoBeginning = errors.New("its beginning is lost: the system prompt and the task are missing")
