package model

import (
	"bytes"
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
	reply := &Reply{
		Message:      withRole(c.Message, m.Role != ""),
		Content:      string(m.Content),
		Reasoning:    string(m.Reasoning),
		ToolCalls:    toolCalls(m.ToolCalls),
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

func toolCalls(calls []wireCall) []ToolCall {
	if len(calls) == 0 {
		return nil
	}
	out := make([]ToolCall, len(calls))
	for i, c := range calls {
		out[i] = ToolCall{ID: string(c.ID), Name: string(c.Function.Name), Arguments: string(c.Function.Arguments)}
		if out[i].ID == "" {
			out[i].ID = fmt.Sprintf("call_%d", i)
		}
	}
	return out
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
