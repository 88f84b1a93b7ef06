package session

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/tidwall/gjson"

	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/record"
)

// Transcript is a conversation file open for appending: every message, verbatim but for secrets.
type Transcript struct {
	out    *jsonl.File
	redact *record.Redactor
}

// OpenTranscript opens what a role says about a task, conversation/<task>.jsonl or <task>.evaluator.jsonl, or the
// interview, which has no task. The file is made if it is missing. Of a task, now begins another attempt, of which the
// file has a line.
func (s *Session) OpenTranscript(role string, attempt record.Scope, now time.Time,
	redact *record.Redactor) (*Transcript, error) {
	path, err := s.transcriptPath(role, attempt.TaskID, true)
	if err != nil {
		return nil, err
	}
	out, _, err := jsonl.Open(path, jsonl.IsObject)
	if err != nil {
		return nil, err
	}
	t := &Transcript{out: out, redact: redact}
	if role == record.RoleInterview {
		return t, nil
	}
	line := record.JSON(struct {
		TS      string       `json:"ts"`
		Type    string       `json:"type"`
		Payload record.Scope `json:"payload"`
	}{record.FormatTime(now), "context_reset", attempt})
	if err := t.AppendMessage(line); err != nil {
		out.Close()
		return nil, err
	}
	return t, nil
}

func (s *Session) transcriptPath(role, task string, create bool) (string, error) {
	switch role {
	case record.RoleInterview:
		return s.Path(InterviewFile), nil
	case record.RoleEvaluator:
		task += ".evaluator"
	}
	return s.taskPath(ConversationDir, task, create)
}

// AppendMessage adds one message, a JSON object.
func (t *Transcript) AppendMessage(message json.RawMessage) error {
	line := oneLine(t.redact.JSON(bytes.TrimSpace(message)))
	if !jsonl.IsObject(line) {
		return fmt.Errorf("transcript: the message %w", decode(line, &struct{}{}))
	}
	if len(line) >= jsonl.MaxLine {
		return fmt.Errorf("transcript: the message is %d bytes long, more than a line may be", len(line))
	}
	return t.out.Add(append(line[:len(line):len(line)], '\n'), false)
}

// oneLine takes the line breaks out of a JSON text. In JSON they can only stand between tokens, so this changes nothing
// that the text says.
func oneLine(raw []byte) []byte {
	if bytes.IndexByte(raw, '\n') < 0 && bytes.IndexByte(raw, '\r') < 0 {
		return raw
	}
	line := bytes.Clone(raw)
	for i, c := range line {
		if c == '\n' || c == '\r' {
			line[i] = ' '
		}
	}
	return line
}

// Close closes the file.
func (t *Transcript) Close() error { return t.out.Close() }

// ReadTranscript reads the messages of a role's conversation about a task since the last context_reset, or those of the
// interview, oldest first.
func (s *Session) ReadTranscript(role, task string) (messages []json.RawMessage, err error) {
	path, err := s.transcriptPath(role, task, false)
	if err != nil {
		return nil, err
	}
	_, err = jsonl.Tail(path, func(_ int64, line []byte) bool {
		if isReset(line) {
			return false
		}
		messages = append(messages, bytes.Clone(line))
		return true
	})
	slices.Reverse(messages)
	return messages, err
}

// isReset reports whether line begins an attempt. A message, unlike it, has a role.
func isReset(line []byte) bool {
	return record.Parse(line).Type == "context_reset" && !gjson.GetBytes(line, "role").Exists()
}
