package scripted

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// stream is the answer as server-sent events: every text in pieces, tool calls by index, usage in the last event.
func (t *turn) stream() []byte {
	var out bytes.Buffer
	var m map[string]json.RawMessage
	json.Unmarshal(t.step.message(t.request.N), &m) // ours, or checked when the script was read
	t.event(&out, []byte(`{"role":"assistant","content":null}`), "")
	for _, field := range []string{"reasoning", "reasoning_content", "content", "refusal"} {
		t.textEvents(&out, field, m[field])
	}
	t.detailEvents(&out, m["reasoning_details"])
	t.callEvents(&out, m["tool_calls"])
	t.otherEvent(&out, m)
	t.event(&out, []byte(`{}`), t.step.finish())
	fmt.Fprintf(&out, `data: {"id":"scripted-%d","object":"chat.completion.chunk","created":0,"model":%s,`+
		`"choices":[],"usage":%s}`+"\n\n",
		t.request.N, t.modelName(), t.step.usage())
	out.WriteString("data: [DONE]\n\n")
	return out.Bytes()
}

func (t *turn) event(out *bytes.Buffer, delta []byte, finish string) {
	reason, choiceError := []byte("null"), []byte(nil)
	if finish != "" {
		reason = quote(finish)
		if len(t.step.ChoiceError) > 0 {
			choiceError = wrap(`,"error":`, t.step.ChoiceError, "")
		}
	}
	fmt.Fprintf(out, `data: {"id":"scripted-%d","object":"chat.completion.chunk","created":0,"model":%s,`,
		t.request.N, t.modelName())
	fmt.Fprintf(out, `"choices":[{"index":0,"delta":%s,"finish_reason":%s%s}]}`+"\n\n",
		oneLine(delta), reason, choiceError)
}

// oneLine: an event's data ends at a newline.
func oneLine(raw []byte) []byte {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return raw
	}
	return b.Bytes()
}

func (t *turn) textEvents(out *bytes.Buffer, field string, raw json.RawMessage) {
	var text string
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return
	case json.Unmarshal(raw, &text) != nil:
		t.event(out, fmt.Appendf(nil, "{%q:%s}", field, raw), "") // a list of parts
		return
	}
	for _, piece := range pieces(text) {
		t.event(out, fmt.Appendf(nil, "{%q:%s}", field, quote(piece)), "")
	}
}

// detailEvents sends each entry on its own, a text in it in pieces that share the entry's index.
func (t *turn) detailEvents(out *bytes.Buffer, raw json.RawMessage) {
	for _, entry := range elements(raw) {
		var v map[string]json.RawMessage
		var text string
		if json.Unmarshal(entry, &v) != nil || json.Unmarshal(v["text"], &text) != nil || v["index"] == nil {
			t.event(out, wrap(`{"reasoning_details":[`, entry, `]}`), "")
			continue
		}
		for _, piece := range pieces(text) {
			v["text"] = quote(piece)
			part, _ := json.Marshal(v)
			t.event(out, wrap(`{"reasoning_details":[`, part, `]}`), "")
		}
	}
}

func (t *turn) callEvents(out *bytes.Buffer, raw json.RawMessage) {
	for i, call := range elements(raw) {
		var c struct {
			ID       string `json:"id"`
			Function struct {
				Name      string `json:"name"`
				Arguments string `json:"arguments"`
			} `json:"function"`
		}
		if json.Unmarshal(call, &c) != nil {
			t.event(out, wrap(`{"tool_calls":[`, call, `]}`), "")
			continue
		}
		t.event(out, fmt.Appendf(nil, `{"tool_calls":[{"index":%d,"id":%s,"type":"function","function":{"name":%s,"arguments":""}}]}`,
			i, quote(c.ID), quote(c.Function.Name)), "")
		for _, piece := range pieces(c.Function.Arguments) {
			t.event(out, fmt.Appendf(nil, `{"tool_calls":[{"index":%d,"function":{"arguments":%s}}]}`, i, quote(piece)), "")
		}
	}
}

// otherEvent sends the fields of a verbatim message that none of the others did.
func (t *turn) otherEvent(out *bytes.Buffer, m map[string]json.RawMessage) {
	rest := map[string]json.RawMessage{}
	for name, raw := range m {
		switch name {
		case "role", "reasoning", "reasoning_content", "content", "refusal", "reasoning_details", "tool_calls":
		default:
			rest[name] = raw
		}
	}
	if len(rest) > 0 {
		delta, _ := json.Marshal(rest)
		t.event(out, delta, "")
	}
}

// pieces cuts a text into parts of a few runes: small enough that words and escapes are torn apart.
func pieces(text string) []string {
	const size = 7
	var out []string
	runes := []rune(text)
	for len(runes) > size && len(out) < 1000 {
		out = append(out, string(runes[:size]))
		runes = runes[size:]
	}
	if len(runes) > 0 {
		out = append(out, string(runes))
	}
	return out
}
