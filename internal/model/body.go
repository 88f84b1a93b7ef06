package model

import (
	"encoding/json"
	"net"
	"strconv"
)

// body is a request in pieces: its messages stay where they are, because a conversation is long and each turn sends
// all of it.
func (c *Client) body(r Request) net.Buffers {
	pieces := make(net.Buffers, 0, 2*len(r.Messages)+2)
	pieces = append(pieces, c.head(r))
	comma := []byte(",")
	for i, m := range r.Messages {
		if i > 0 {
			pieces = append(pieces, comma)
		}
		pieces = append(pieces, m)
	}
	return append(pieces, []byte(`]}`))
}

// head is a request up to and including the opening bracket of its messages. Everything but the messages comes first,
// so that what changes from turn to turn is at the end.
func (c *Client) head(r Request) []byte {
	b := make([]byte, 0, 256+len(r.Tools))
	b = append(b, `{"model":`...)
	b = append(b, c.model...)
	if c.options.Stream {
		b = append(b, `,"stream":true,"stream_options":{"include_usage":true}`...)
	}
	if r.MaxTokens > 0 {
		b = append(b, `,"`+c.maxTokens+`":`...)
		b = strconv.AppendInt(b, int64(r.MaxTokens), 10)
	}
	if len(r.Tools) > 0 {
		b = append(b, `,"tools":`...)
		b = append(b, r.Tools...)
		b = appendToolChoice(b, r.ToolChoice)
	}
	return append(b, `,"messages":[`...)
}

func appendToolChoice(b []byte, choice string) []byte {
	if choice == "" {
		return b
	}
	b = append(b, `,"tool_choice":`...)
	quoted, _ := json.Marshal(choice)
	switch choice {
	case "auto", "none", "required":
		return append(b, quoted...)
	}
	b = append(b, `{"type":"function","function":{"name":`...)
	b = append(b, quoted...)
	return append(b, `}}`...)
}
