package model

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"strings"
)

// The types in this file read what endpoints send. They take a value of another type than expected for an absent one:
// a usage field that is a string must not cost a good answer.

type completion struct {
	Choices []choice        `json:"choices"`
	Usage   wireUsage       `json:"usage"`
	Error   json.RawMessage `json:"error"`
}

type choice struct {
	Index        number          `json:"index"`
	Message      json.RawMessage `json:"message"`
	Delta        json.RawMessage `json:"delta"`
	FinishReason text            `json:"finish_reason"`
	Error        json.RawMessage `json:"error"`
}

type message struct {
	Role             text            `json:"role"`
	Content          content         `json:"content"`
	Refusal          text            `json:"refusal"`
	Reasoning        text            `json:"reasoning"`
	ReasoningContent text            `json:"reasoning_content"`
	ReasoningDetails json.RawMessage `json:"reasoning_details"`
	ToolCalls        list[wireCall]  `json:"tool_calls"`
}

type wireCall struct {
	ID       text     `json:"id"`
	Function function `json:"function"`
}

type function struct {
	Name      text      `json:"name"`
	Arguments arguments `json:"arguments"`
}

func (f *function) UnmarshalJSON(b []byte) error {
	type plain function
	var p plain
	if json.Unmarshal(b, &p) == nil {
		*f = function(p)
	}
	return nil
}

type wireUsage struct {
	Prompt           number `json:"prompt_tokens"`
	Completion       number `json:"completion_tokens"`
	Total            number `json:"total_tokens"`
	Cost             number `json:"cost"`
	TotalCost        number `json:"total_cost"`
	CacheHits        number `json:"prompt_cache_hit_tokens"` // DeepSeek's name for cached tokens
	PromptDetails    detail `json:"prompt_tokens_details"`
	CompletionDetail detail `json:"completion_tokens_details"`
}

type detail struct {
	Cached    number `json:"cached_tokens"`
	Reasoning number `json:"reasoning_tokens"`
}

func (u *wireUsage) UnmarshalJSON(b []byte) error {
	type plain wireUsage
	var p plain
	if json.Unmarshal(b, &p) == nil {
		*u = wireUsage(p)
	}
	return nil
}

func (d *detail) UnmarshalJSON(b []byte) error {
	type plain detail
	var p plain
	if json.Unmarshal(b, &p) == nil {
		*d = detail(p)
	}
	return nil
}

func (u wireUsage) usage() Usage {
	out := Usage{
		Prompt:    u.Prompt.count(),
		Eval:      u.Completion.count(),
		Cached:    u.PromptDetails.Cached.count(),
		Reasoning: u.CompletionDetail.Reasoning.count(),
	}
	if !u.Prompt.known && !u.Completion.known {
		out.Prompt = u.Total.count() // all that is said: a cap must still be reached
	}
	if !u.PromptDetails.Cached.known {
		out.Cached = u.CacheHits.count()
	}
	for _, cost := range []number{u.Cost, u.TotalCost} {
		if cost.known && cost.value >= 0 {
			out.Cost, out.CostKnown = cost.value, true
			break
		}
	}
	return out
}

// number is a JSON number, or one in a string.
type number struct {
	value float64
	known bool
}

func (n *number) UnmarshalJSON(b []byte) error {
	v, err := strconv.ParseFloat(strings.Trim(string(b), `"`), 64)
	if err == nil && !math.IsNaN(v) && !math.IsInf(v, 0) {
		n.value, n.known = v, true
	}
	return nil
}

// count is the number as one of tokens: whole, and never so large or negative that a sum of them overflows.
func (n number) count() int64 {
	const most = 1 << 50
	return int64(max(0, min(n.value, most)))
}

// text is a JSON string, or "".
type text string

func (t *text) UnmarshalJSON(b []byte) error {
	var s string
	if len(b) > 0 && b[0] == '"' && json.Unmarshal(b, &s) == nil {
		*t = text(s)
	}
	return nil
}

// content is a message's content: a string, or the text parts of a list joined.
type content string

func (c *content) UnmarshalJSON(b []byte) error {
	var t text
	if err := t.UnmarshalJSON(b); err != nil || t != "" {
		*c = content(t)
		return err
	}
	var parts list[struct {
		Type text `json:"type"`
		Text text `json:"text"`
	}]
	if len(b) == 0 || b[0] != '[' || json.Unmarshal(b, &parts) != nil {
		return nil
	}
	var s strings.Builder
	for _, p := range parts {
		if p.Type == "text" || p.Type == "output_text" {
			s.WriteString(string(p.Text))
		}
	}
	*c = content(s.String())
	return nil
}

// arguments is a tool call's arguments: the text in a string or, from servers that send it so, a JSON value as text.
type arguments string

func (a *arguments) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		var s string
		err := json.Unmarshal(b, &s)
		*a = arguments(s)
		return err
	}
	if !bytes.Equal(b, []byte("null")) {
		*a = arguments(b)
	}
	return nil
}

// list is a JSON array; whatever else stands there is an empty one. An element of the wrong type is T's zero value, so
// that every element keeps its place.
type list[T any] []T

func (l *list[T]) UnmarshalJSON(b []byte) error {
	var raw []json.RawMessage
	if len(b) == 0 || b[0] != '[' || json.Unmarshal(b, &raw) != nil {
		return nil
	}
	out := make([]T, 0, len(raw))
	for _, r := range raw {
		var v T
		if json.Unmarshal(r, &v) != nil {
			v = *new(T)
		}
		out = append(out, v)
	}
	*l = out
	return nil
}

func isNull(b []byte) bool { return len(b) == 0 || bytes.Equal(b, []byte("null")) }
