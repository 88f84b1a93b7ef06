package scripted

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// historyMessage has the fields of a message that the checks read.
type historyMessage struct {
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"`
	ToolCallID string          `json:"tool_call_id"`
	ToolCalls  []struct {
		ID string `json:"id"`
	} `json:"tool_calls"`
}

// checkHistory reports the first problem that a strict endpoint refuses, or "": no messages, an unknown role, a tool
// call without an answer, an answer without a call, an empty assistant message.
func (s *Server) checkHistory(body []byte, top map[string][]byte) string {
	if s.script.Lenient {
		return ""
	}
	if !json.Valid(body) {
		return "the request is no valid JSON"
	}
	if len(top["model"]) == 0 {
		return "the request names no model"
	}
	raw := elements(top["messages"])
	if len(raw) == 0 {
		return "the request has no messages"
	}
	open := map[string]bool{}
	for i, r := range raw {
		var m historyMessage
		if err := json.Unmarshal(r, &m); err != nil {
			return fmt.Sprintf("messages[%d]: %v", i, err)
		}
		if problem := s.checkMessage(m, r, open); problem != "" {
			return fmt.Sprintf("messages[%d]: %s", i, problem)
		}
	}
	return unanswered(open)
}

func (s *Server) checkMessage(m historyMessage, raw []byte, open map[string]bool) string {
	if m.Role != "tool" {
		if problem := unanswered(open); problem != "" {
			return problem
		}
	}
	switch m.Role {
	case "system", "developer", "user":
		if len(m.Content) == 0 || bytes.Equal(m.Content, []byte("null")) {
			return "a " + m.Role + " message without content"
		}
	case "assistant":
		return s.checkAssistant(m, raw, open)
	case "tool":
		if !open[m.ToolCallID] {
			return fmt.Sprintf("a tool message for %q, which is no open tool call", m.ToolCallID)
		}
		delete(open, m.ToolCallID)
	default:
		return fmt.Sprintf("unknown role %q", m.Role)
	}
	return ""
}

func (s *Server) checkAssistant(m historyMessage, raw []byte, open map[string]bool) string {
	if s.script.VerifyEcho && !s.echoes[canonical(raw)] {
		return "an assistant message that this endpoint did not write like that"
	}
	nothing := len(m.Content) == 0 || bytes.Equal(m.Content, []byte("null")) || bytes.Equal(m.Content, []byte(`""`))
	if nothing && len(m.ToolCalls) == 0 {
		return "an assistant message with neither content nor tool calls"
	}
	for _, c := range m.ToolCalls {
		open[c.ID] = true
	}
	return ""
}

func unanswered(open map[string]bool) string {
	if len(open) == 0 {
		return ""
	}
	return fmt.Sprintf("%d tool call(s) of the assistant message before were not answered", len(open))
}

// canonical returns a message without the differences that mean nothing: space, and the order of fields.
func canonical(raw []byte) string {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return string(raw)
	}
	b, _ := json.Marshal(v)
	return string(b)
}
