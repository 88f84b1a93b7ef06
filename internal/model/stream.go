package model

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// streamed collects the chunks of one streamed answer.
type streamed struct {
	message node
	whole   json.RawMessage // a choice's message where a server sends it whole instead of deltas
	finish  text
	failed  json.RawMessage // the choice's error
	usage   wireUsage
	id      json.RawMessage
	model   json.RawMessage
	raw     json.RawMessage // usage as it came
	done    bool
}

type chunk struct {
	completion
	ID    json.RawMessage `json:"id"`
	Model json.RawMessage `json:"model"`
}

// readStream reads a stream to its end. An error is the connection's, or io.ErrUnexpectedEOF when the stream ended
// without having said that it was at its end.
func readStream(r io.Reader) (*Reply, *Failure, error) {
	events := sseReader{bufio.NewReader(r)}
	var s streamed
	for !s.done {
		data, err := events.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, nil, err
		}
		if f := s.event(data); f != nil {
			return nil, withUsage(f, s.usage.usage()), nil
		}
	}
	if !s.done && s.finish == "" && s.failed == nil {
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
		dec := json.NewDecoder(bytes.NewReader(data))
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return malformed(data, err)
		}
		if f := s.chunk(raw); f != nil {
			return f
		}
		data = data[dec.InputOffset():]
	}
	return nil
}

func (s *streamed) chunk(raw json.RawMessage) *Failure {
	var c chunk
	if err := json.Unmarshal(raw, &c); err != nil {
		return malformed(raw, err)
	}
	if u := c.Usage; u.Prompt.known || u.Completion.known || u.Cost.known {
		var w struct {
			Usage json.RawMessage `json:"usage"`
		}
		json.Unmarshal(raw, &w) // it was decoded a moment ago
		s.usage, s.raw = u, w.Usage
	}
	if s.id == nil {
		s.id, s.model = c.ID, c.Model
	}
	if e := parseErrorObject(c.Error); e != nil {
		return e.failure()
	}
	if len(c.Choices) == 0 {
		if e := errorIn(raw); e != nil {
			return e.failure()
		}
		return nil
	}
	s.choice(c.Choices[0])
	return nil
}

func (s *streamed) choice(c choice) {
	if c.Index.value != 0 {
		return
	}
	if !isNull(c.Delta) {
		s.message.merge("", c.Delta, 0)
	} else if !isNull(c.Message) {
		s.whole = c.Message
	}
	if c.FinishReason != "" {
		s.finish = c.FinishReason
	}
	if parseErrorObject(c.Error) != nil {
		s.failed = c.Error
	}
}

func (s *streamed) reply() (*Reply, *Failure) {
	c := choice{Message: s.assembled(), FinishReason: s.finish, Error: s.failed}
	reply, failure := judge(c)
	if failure != nil {
		return nil, withUsage(failure, s.usage.usage())
	}
	reply.Usage = s.usage.usage()
	reply.Raw = s.completion(c)
	return reply, nil
}

// assembled is the message that the answer would have had without streaming.
func (s *streamed) assembled() json.RawMessage {
	if s.message.object == nil {
		return s.whole
	}
	for _, call := range s.message.member("tool_calls").list {
		call.drop("index") // deltas have it, messages do not
	}
	if s.message.member("content") == absent && s.message.member("tool_calls") != absent {
		s.message.merge("", []byte(`{"content":null}`), 0)
	}
	return s.message.append(nil)
}

func (s *streamed) completion(c choice) json.RawMessage {
	finish, _ := json.Marshal(string(c.FinishReason))
	return fmt.Appendf(nil, `{"id":%s,"object":"chat.completion","model":%s,"choices":[{"index":0,"message":%s,"finish_reason":%s}],"usage":%s}`,
		orNull(s.id), orNull(s.model), c.Message, finish, orNull(s.raw))
}

func orNull(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("null")
	}
	return raw
}
