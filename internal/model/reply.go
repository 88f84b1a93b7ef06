package model

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"
)

// parseReply judges the body of an answer with status 200: a Reply if it is a turn, else a Failure without its
// endpoint's name, which the client adds.
func parseReply(body []byte) (*Reply, *Failure) {
	trimmed := bytes.TrimSpace(body)
	if len(trimmed) == 0 {
		return nil, &Failure{Kind: Empty, Said: "an empty answer"}
	}
	var whole completion
	if err := json.Unmarshal(trimmed, &whole); err != nil {
		if e := errorIn(trimmed); e != nil {
			return nil, e.failure()
		}
		return nil, malformed(trimmed, err)
	}
	if e := parseErrorObject(whole.Error); e != nil {
		return nil, withUsage(e.failure(), whole.Usage.usage())
	}
	if len(whole.Choices) == 0 {
		return nil, withUsage(noChoices(trimmed, whole), whole.Usage.usage())
	}
	reply, failure := judge(whole.Choices[0])
	if failure != nil {
		return nil, withUsage(failure, whole.Usage.usage())
	}
	reply.Usage = whole.Usage.usage()
	reply.Raw = body
	return reply, nil
}

func withUsage(f *Failure, u Usage) *Failure {
	f.Usage = u
	return f
}

// judge is the health of one choice.
func judge(c choice) (*Reply, *Failure) {
	if e := parseErrorObject(c.Error); e != nil {
		f := e.failure()
		f.FinishReason = string(c.FinishReason)
		return nil, f
	}
	if c.FinishReason == "error" {
		return nil, &Failure{Kind: FinishError, FinishReason: "error", Said: `finish_reason "error"`}
	}
	var m message
	if !isNull(c.Message) {
		if err := json.Unmarshal(c.Message, &m); err != nil {
			return nil, &Failure{Kind: Malformed, FinishReason: string(c.FinishReason), Said: "the message is no object"}
		}
	}
	calls, named := toolCalls(m.ToolCalls)
	raw := c.Message
	if named {
		raw = withCallIDs(raw, calls)
	}
	reply := &Reply{
		Message:      withRole(raw, m.Role != ""),
		Content:      string(m.Content),
		Reasoning:    string(m.Reasoning),
		ToolCalls:    calls,
		FinishReason: string(c.FinishReason),
	}
	if reply.Content == "" {
		reply.Content = string(m.Refusal)
	}
	if reply.Reasoning == "" {
		reply.Reasoning = string(m.ReasoningContent)
	}
	if !isNull(m.ReasoningDetails) {
		reply.ReasoningDetails = m.ReasoningDetails
	}
	// Only blanks count as nothing too: endpoints refuse such a message when it comes back to them.
	if strings.TrimSpace(reply.Content) == "" && len(reply.ToolCalls) == 0 {
		said := "neither content nor tool calls"
		if reply.Reasoning != "" {
			said = "reasoning, but neither content nor tool calls"
		}
		if c.FinishReason != "" {
			said += fmt.Sprintf(" (finish_reason %q)", string(c.FinishReason))
		}
		return nil, &Failure{Kind: Empty, FinishReason: string(c.FinishReason), Said: said}
	}
	return reply, nil
}

// withRole adds the role to a message that came without: sent back like that it would be refused.
func withRole(raw json.RawMessage, hasRole bool) json.RawMessage {
	trimmed := bytes.TrimSpace(raw)
	if hasRole || len(trimmed) < 2 || trimmed[0] != '{' {
		return raw
	}
	rest := bytes.TrimSpace(trimmed[1:])
	if rest[0] == '}' {
		return json.RawMessage(`{"role":"assistant"}`)
	}
	return append([]byte(`{"role":"assistant",`), rest...)
}

// toolCalls reads the calls of a message. One without an id, or with the id of another, is given its own: the answer to a call names
// it. named says that this was done.
func toolCalls(calls []wireCall) (out []ToolCall, named bool) {
	seen := map[string]bool{}
	for _, c := range calls {
		id := string(c.ID)
		if id == "" || seen[id] {
			// Unlike any of the conversation, not of this message alone: endpoints refuse an id that comes twice.
			id, named = "call_"+strings.ToLower(rand.Text()[:16]), true
		}
		seen[id] = true
		out = append(out, ToolCall{ID: id, Name: string(c.Function.Name), Arguments: string(c.Function.Arguments)})
	}
	return out, named
}

// withCallIDs writes into a message the ids that its calls were given: sent back without them, it would not have made the calls
// that the answers name, and be refused. Everything else stays as it came.
func withCallIDs(raw json.RawMessage, calls []ToolCall) json.RawMessage {
	var message map[string]json.RawMessage
	var entries []json.RawMessage
	if json.Unmarshal(raw, &message) != nil || json.Unmarshal(message["tool_calls"], &entries) != nil || len(entries) != len(calls) {
		return raw
	}
	for i, entry := range entries {
		var call map[string]json.RawMessage
		if json.Unmarshal(entry, &call) != nil || call == nil {
			call = map[string]json.RawMessage{}
		}
		call["id"] = quoted(calls[i].ID)
		if isNull(call["type"]) {
			call["type"] = quoted("function")
		}
		if isNull(call["function"]) {
			call["function"] = json.RawMessage(`{"name":"","arguments":"{}"}`)
		}
		entries[i] = object(call)
	}
	list, err := json.Marshal(entries)
	if err != nil {
		return raw
	}
	message["tool_calls"] = list
	return object(message)
}

func quoted(s string) json.RawMessage {
	b, _ := json.Marshal(s) // a string always has a form
	return b
}

func object(m map[string]json.RawMessage) json.RawMessage {
	b, _ := json.Marshal(m) // its values were read from JSON
	return b
}

func noChoices(body []byte, whole completion) *Failure {
	if e := errorIn(body); e != nil {
		return e.failure()
	}
	if whole.Choices != nil {
		return &Failure{Kind: Empty, Said: "an answer with no choices in it"}
	}
	return &Failure{Kind: Malformed, Said: "no chat completion: " + oneLine(body)}
}

func malformed(body []byte, err error) *Failure {
	if looksLikeHTML(body) {
		return &Failure{Kind: Malformed, Said: "a page of HTML, no chat completion", cause: err}
	}
	return &Failure{Kind: Malformed, Said: fmt.Sprintf("no valid chat completion (%v): %s", err, oneLine(body)), cause: err}
}

func looksLikeHTML(body []byte) bool {
	start := bytes.ToLower(body[:min(len(body), 64)])
	return bytes.HasPrefix(start, []byte("<!doctype")) || bytes.HasPrefix(start, []byte("<html"))
}

// oneLine is the beginning of a text as an error can hold it.
func oneLine[T ~string | ~[]byte](b T) string {
	const most = 300
	s := string(b[:min(len(b), 4*most)])
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "�")), " ")
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return -1
		}
		return r
	}, s)
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
