package model

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"github.com/tidwall/gjson"

	"github.com/git-tilth/git-tilth/internal/jsonl"
)

// streamed collects the chunks of one streamed answer.
type streamed struct {
	message node
	whole   gjson.Result // a choice's message where a server sends it whole instead of deltas
	finish  string
	failed  gjson.Result // the choice's error
	usage   Usage
	done    bool
}

// readStream reads a stream to its end. An error is the connection's, or io.ErrUnexpectedEOF if the stream ended
// without its end marker.
func readStream(r io.Reader) (*Reply, *Failure, error) {
	lines := bufio.NewReader(r)
	var s streamed
	for !s.done {
		data, err := nextEvent(lines)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, nil, err
		}
		if f := s.event(data); f != nil {
			f.Usage = s.usage
			return nil, f, nil
		}
	}
	if !s.done && s.finish == "" && !s.failed.Exists() {
		return nil, nil, io.ErrUnexpectedEOF
	}
	reply, failure := s.reply()
	return reply, failure, nil
}

// event takes one event's data. Servers that forget the blank line between events put several values into one.
func (s *streamed) event(data []byte) *Failure {
	for len(data) > 0 {
		data = bytes.TrimSpace(data)
		if bytes.HasPrefix(data, []byte("[DONE]")) {
			s.done = true
			return nil
		}
		if len(data) == 0 {
			return nil
		}
		raw, length, err := jsonl.First(data)
		if err != nil {
			return malformed(data, err)
		}
		if f := s.chunk(raw); f != nil {
			return f
		}
		data = data[length:]
	}
	return nil
}

func (s *streamed) chunk(raw json.RawMessage) *Failure {
	c := gjson.ParseBytes(raw)
	if !c.IsObject() {
		return malformed(raw, errors.New("a chunk is not an object"))
	}
	if u, known := readUsage(c.Get("usage")); known {
		s.usage = u
	}
	if e := parseErrorObject(c.Get("error")); e != nil {
		return e.failure()
	}
	first := c.Get("choices.0")
	if !first.IsObject() {
		if e := errorIn(raw); e != nil {
			return e.failure()
		}
		return nil
	}
	return s.choice(readChoice(first))
}

// choice takes one piece of the answer's first choice. A piece with too many tool calls, or one too many, ends it.
func (s *streamed) choice(c choice) *Failure {
	if c.index != 0 {
		return nil
	}
	if calls := s.message.object["tool_calls"]; tooManyCalls(c.delta) || calls != nil && len(calls.list) > maxCalls {
		return &Failure{Kind: Empty, Said: manyCalls}
	}
	if !isNull([]byte(c.delta.Raw)) {
		s.message.merge("", json.RawMessage(c.delta.Raw), 0)
	} else if !isNull([]byte(c.message.Raw)) {
		s.whole = c.message
	}
	if c.finish != "" {
		s.finish = c.finish
	}
	if parseErrorObject(c.failed) != nil {
		s.failed = c.failed
	}
	return nil
}

func (s *streamed) reply() (*Reply, *Failure) {
	reply, failure := classify(choice{message: s.assembled(), finish: s.finish, failed: s.failed})
	if failure != nil {
		failure.Usage = s.usage
		return nil, failure
	}
	reply.Usage = s.usage
	return reply, nil
}

// assembled is the message that the answer would have had without streaming.
func (s *streamed) assembled() gjson.Result {
	if s.message.object == nil {
		return s.whole
	}
	if calls := s.message.object["tool_calls"]; calls != nil {
		for _, call := range calls.list {
			call.drop("index") // deltas have it, messages do not
		}
		if s.message.object["content"] == nil {
			s.message.merge("", []byte(`{"content":null}`), 0)
		}
	}
	return gjson.ParseBytes(s.message.append(nil))
}

// nextEvent returns the data of the next server-sent event, its lines joined by newlines, and io.EOF after the last.
// It skips comments, ids and retry times. It also returns a last event without a blank line; the content shows whether
// the answer is complete.
func nextEvent(lines *bufio.Reader) ([]byte, error) {
	var data []byte
	seen := false
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil && err != io.EOF {
			return nil, err
		}
		line = bytes.TrimRight(line, "\r\n")
		if value, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			if seen {
				data = append(data, '\n')
			}
			data = append(data, bytes.TrimPrefix(value, []byte(" "))...)
			seen = true
		}
		if seen && (len(line) == 0 || err == io.EOF) {
			return data, nil
		}
		if err == io.EOF {
			return nil, io.EOF
		}
	}
}

// looksLikeSSE reports whether a body with another content type is a stream.
func looksLikeSSE(body []byte) bool {
	body = bytes.TrimSpace(body)
	begins := func(s string) bool { return bytes.HasPrefix(body, []byte(s)) }
	return begins("data:") || begins("event:") || begins(": ")
}
