package model

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/text"
)

// parseReply reads the body of an answer with status 200. It returns a Reply for a turn, else a Failure, to which the
// client adds the endpoint's name.
func parseReply(body []byte) (*Reply, *Failure) {
	trimmed := bytes.TrimSpace(body)
	if len(trimmed) == 0 {
		return nil, &Failure{Kind: Empty, Said: "an empty answer"}
	}
	whole, err := jsonl.Parse(trimmed)
	if err != nil {
		return nil, malformed(trimmed, err)
	}
	usage, _ := readUsage(whole.Get("usage"))
	choices := whole.Get("choices")
	first := choices.Get("0")
	var reply *Reply
	var failure *Failure
	if e := parseErrorObject(whole.Get("error")); e != nil {
		failure = e.failure()
	} else if !choices.IsArray() || !first.IsObject() {
		failure = noChoices(trimmed, choices)
	} else {
		reply, failure = classify(first)
	}
	if failure != nil {
		failure.Usage = usage
		return nil, failure
	}
	reply.Usage = usage
	return reply, nil
}

// classify returns the health of one choice.
func classify(choice gjson.Result) (*Reply, *Failure) {
	finish, m := textOf(choice.Get("finish_reason")), choice.Get("message")
	fail := func(f *Failure) (*Reply, *Failure) {
		f.FinishReason = finish
		return nil, f
	}
	if e := parseErrorObject(choice.Get("error")); e != nil {
		return fail(e.failure())
	}
	if finish == "error" {
		return fail(&Failure{Kind: FinishError, Said: `finish_reason "error"`})
	}
	if !isNull([]byte(m.Raw)) && !m.IsObject() {
		return fail(&Failure{Kind: Malformed, Said: "the message is not an object"})
	}
	raw := json.RawMessage(m.Raw)
	if m.Get("tool_calls.#").Num > maxCalls {
		return fail(&Failure{Kind: Empty, Said: "more than 1,000 tool calls in one answer"})
	}
	calls, named := toolCalls(m.Get("tool_calls"))
	if slices.ContainsFunc(calls, func(c ToolCall) bool { return jsonl.IsDeep(c.Arguments) }) {
		return fail(&Failure{Kind: Empty, Said: "tool arguments: " + jsonl.ErrDeep.Error()})
	}
	if named || textOf(m.Get("role")) == "" {
		raw = repaired(raw, calls)
	}
	reply := &Reply{
		Message:      raw,
		Content:      cmp.Or(contentOf(m.Get("content")), textOf(m.Get("refusal"))),
		Reasoning:    cmp.Or(textOf(m.Get("reasoning")), textOf(m.Get("reasoning_content"))),
		ToolCalls:    calls,
		FinishReason: finish,
	}
	if details := m.Get("reasoning_details"); !isNull([]byte(details.Raw)) {
		reply.ReasoningDetails = json.RawMessage(details.Raw)
	}
	// Blanks count as empty too, because endpoints refuse such a message in the next request.
	if strings.TrimSpace(reply.Content) == "" && len(reply.ToolCalls) == 0 {
		said := "neither content nor tool calls"
		if reply.Reasoning != "" {
			said = "reasoning, but neither content nor tool calls"
		}
		if finish != "" {
			said += fmt.Sprintf(" (finish_reason %q)", finish)
		}
		return fail(&Failure{Kind: Empty, Said: said})
	}
	return reply, nil
}

// maxCalls limits the tool calls of one answer.
const maxCalls = 1000

// toolCalls reads the calls of a message. A call without an id, or with another call's id, gets a new id, because the
// answer names the call by its id. named reports such a change. Arguments are a text; some servers send JSON.
func toolCalls(list gjson.Result) (out []ToolCall, named bool) {
	if !list.IsArray() {
		return nil, false
	}
	seen := map[string]bool{}
	for _, c := range list.Array() {
		id := textOf(c.Get("id"))
		if id == "" || seen[id] {
			// The id is new in the whole conversation, because endpoints refuse a repeated id.
			id, named = "call_"+strings.ToLower(rand.Text()[:16]), true
		}
		seen[id] = true
		out = append(out, ToolCall{
			ID: id, Name: textOf(c.Get("function.name")), Arguments: scalar(c.Get("function.arguments")),
		})
	}
	return out, named
}

// repaired adds a missing role to a message, and missing ids to its calls, because the endpoint would refuse the
// message in the next request. Everything else stays the same.
func repaired(raw json.RawMessage, calls []ToolCall) json.RawMessage {
	message := map[string]json.RawMessage{}
	var entries []json.RawMessage
	_ = json.Unmarshal(raw, &message)
	if isNull(message["role"]) {
		message["role"] = marshal("assistant")
	}
	_ = json.Unmarshal(message["tool_calls"], &entries)
	for i := range min(len(calls), len(entries)) {
		call := map[string]json.RawMessage{}
		if json.Unmarshal(entries[i], &call) != nil || call == nil {
			call = map[string]json.RawMessage{}
		}
		call["id"] = marshal(calls[i].ID)
		if isNull(call["type"]) {
			call["type"] = marshal("function")
		}
		if isNull(call["function"]) {
			call["function"] = json.RawMessage(`{"name":"","arguments":"{}"}`)
		}
		entries[i] = marshal(call)
	}
	if len(entries) > 0 {
		message["tool_calls"] = marshal(entries)
	}
	return marshal(message)
}

// marshal encodes values that cannot fail: strings, and values read from JSON.
func marshal(v any) json.RawMessage {
	b, _ := json.Marshal(v)
	return b
}

func noChoices(body []byte, choices gjson.Result) *Failure {
	if e := errorIn(body); e != nil {
		return e.failure()
	}
	if choices.IsArray() && !choices.Get("0").Exists() {
		return &Failure{Kind: Empty, Said: "an answer with no choices in it"}
	}
	return &Failure{Kind: Malformed, Said: "not a chat completion: " + oneLine(body)}
}

// malformed returns the failure of an unreadable answer.
func malformed(body []byte, err error) *Failure {
	if looksLikeHTML(body) {
		return &Failure{Kind: Malformed, Said: "a page of HTML, not a chat completion", cause: err}
	}
	if errors.Is(err, jsonl.ErrDeep) {
		return &Failure{Kind: Empty, Said: err.Error(), cause: err}
	}
	said := fmt.Sprintf("not a valid chat completion (%v): %s", err, oneLine(body))
	return &Failure{Kind: Malformed, Said: said, cause: err}
}

func looksLikeHTML(body []byte) bool {
	start := bytes.ToLower(body[:min(len(body), 64)])
	return bytes.HasPrefix(start, []byte("<!doctype")) || bytes.HasPrefix(start, []byte("<html"))
}

// oneLine returns the beginning of a text for an error, with visible control characters.
func oneLine[T ~string | ~[]byte](b T) string {
	const most = 300
	return text.Clip(text.VisibleLine(text.OneLine(string(b[:min(len(b), 4*most)]))), most)
}
