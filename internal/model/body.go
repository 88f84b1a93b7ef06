package model

import (
	"bytes"
	"encoding/json"
	"io"
	"strconv"
	"sync"
)

// bodyTail closes the messages array and the request. It is no part of the kept bytes, so that the next request only
// appends to them.
const bodyTail = "]}"

// assembler builds request bodies. A conversation only ever grows, so the bytes of the last request, up to its last
// message, are the beginning of the next one: they are kept, and a turn costs what is new in it. Bytes once handed out
// are never overwritten, as a transport may still be reading them when the answer is there.
type assembler struct {
	mu   sync.Mutex
	head []byte
	buf  []byte
	sent []span
}

// span is a message's identity: where its bytes are. Holding the pointer keeps the memory from being used again.
type span struct {
	first *byte
	n     int
}

func spanOf(m json.RawMessage) span {
	if len(m) == 0 {
		return span{}
	}
	return span{&m[0], len(m)}
}

// body gives a reader over head, the messages and bodyTail.
func (a *assembler) body(head []byte, messages []json.RawMessage) *body {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.continues(head, messages) {
		a.restart(head, messages)
	}
	for _, m := range messages[len(a.sent):] {
		if len(a.sent) > 0 {
			a.buf = append(a.buf, ',')
		}
		a.buf = append(a.buf, m...)
		a.sent = append(a.sent, spanOf(m))
	}
	return &body{data: a.buf[:len(a.buf):len(a.buf)]}
}

func (a *assembler) continues(head []byte, messages []json.RawMessage) bool {
	if a.buf == nil || len(messages) < len(a.sent) || !bytes.Equal(a.head, head) {
		return false
	}
	for i, s := range a.sent {
		if spanOf(messages[i]) != s {
			return false
		}
	}
	return true
}

func (a *assembler) restart(head []byte, messages []json.RawMessage) {
	size := len(head)
	for _, m := range messages {
		size += len(m) + 1
	}
	a.head = append([]byte(nil), head...)
	a.buf = append(make([]byte, 0, size+size/4), head...)
	a.sent = a.sent[:0:0]
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

// body reads a request. It can be read again from the start through again, which lets the transport repeat a request
// that met a kept-alive connection the server had just closed.
type body struct {
	data []byte
	off  int
}

func (b *body) size() int64 { return int64(len(b.data) + len(bodyTail)) }

func (b *body) again() (io.ReadCloser, error) { return &body{data: b.data}, nil }

func (b *body) Read(p []byte) (int, error) {
	n := 0
	if b.off < len(b.data) {
		n = copy(p, b.data[b.off:])
		b.off += n
	}
	if n < len(p) && b.off >= len(b.data) {
		m := copy(p[n:], bodyTail[b.off-len(b.data):])
		b.off += m
		n += m
	}
	if n == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

func (b *body) Close() error { return nil }
