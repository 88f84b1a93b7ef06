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

// Conversation is a task's conversation with an agent program.
type Conversation struct {
	Agent    string    `json:"agent"`
	ID       string    `json:"id"`
	Cwd      string    `json:"cwd"`
	Model    string    `json:"model"`
	Created  string    `json:"created"`
	LastUsed string    `json:"last_used"`
	Over     bool      `json:"over,omitempty"` // the user wants a new conversation for the task
	Attempts []Attempt `json:"attempts"`
	// Total is the program's running total after the last attempt, if it reports one.
	Total *RoleUsage `json:"total,omitempty"`
	// ResumeBy is how an agent by ACP takes it up: "load", "resume" or "none"; "" for another program.
	ResumeBy string `json:"resume_by,omitempty"`
	// Uncounted means that the agent reported a turn without its usage.
	Uncounted bool `json:"uncounted,omitempty"`
	// Others are the conversations of other programs that worked on the task, by name.
	Others map[string]*Conversation `json:"others,omitempty"`
}

// Attempt is one start of the program on a conversation.
type Attempt struct {
	Started     string  `json:"started"`
	Ended       string  `json:"ended"`
	How         string  `json:"how"` // how the turn ended
	Turns       int     `json:"turns"`
	Tokens      int64   `json:"tokens"`       // spent by this attempt
	Cost        float64 `json:"cost"`         // spent by this attempt, dollars
	TotalTokens int64   `json:"total_tokens"` // the program's running total after it, if it reports one
}

// Conversation returns a task's conversation, or nil. SetConversation stores a changed one.
func (c *Checkpoint) Conversation(task string) *Conversation {
	conv := &Conversation{}
	if json.Unmarshal(c.Conversations[task], conv) != nil || string(c.Conversations[task]) == "null" {
		return nil
	}
	return conv
}

// ConversationOf returns a task's conversation with one program, else the conversation in use, else nil.
func (c *Checkpoint) ConversationOf(task, agent string) *Conversation {
	conv := c.Conversation(task)
	if conv != nil && conv.Agent != agent && conv.Others[agent] != nil {
		return conv.Others[agent]
	}
	return conv
}

// SetConversation stores a task's conversation as the one in use. It keeps the conversation with another program.
func (c *Checkpoint) SetConversation(task string, conv *Conversation) error {
	var old []byte
	if was := c.Conversation(task); was != nil {
		if was.Agent == conv.Agent {
			old = c.Conversations[task]
		}
		others := was.Others
		was.Others = nil
		if others == nil {
			others = map[string]*Conversation{}
		}
		if was.Agent != conv.Agent && was.Agent != "" {
			others[was.Agent] = was
		}
		delete(others, conv.Agent)
		conv.Others = others
	}
	text, err := encode(conv, old)
	if c.Conversations == nil {
		c.Conversations = map[string]json.RawMessage{}
	}
	c.Conversations[task] = text
	return err
}

// OpenTranscript opens the transcript of a role: conversation/<task>.jsonl, <task>.evaluator.jsonl, or the interview,
// which has no task. It creates the file if it is missing, and for a task it adds a line that starts a new attempt at
// time now. add adds one message, a JSON object, with secrets redacted.
func (s *Session) OpenTranscript(role string, attempt record.Scope, now time.Time,
	redact *record.Redactor) (add func(message json.RawMessage) error, closeFile func() error, err error) {
	path, err := s.transcriptPath(role, attempt.TaskID, true)
	if err != nil {
		return nil, nil, err
	}
	out, _, err := jsonl.Open(path)
	if err != nil {
		return nil, nil, err
	}
	add = func(message json.RawMessage) error { return appendMessage(out, redact.JSON(bytes.TrimSpace(message))) }
	if role == record.RoleInterview {
		return add, out.Close, nil
	}
	err = add(record.JSON(struct {
		TS      string       `json:"ts"`
		Type    string       `json:"type"`
		Payload record.Scope `json:"payload"`
	}{record.FormatTime(now), "context_reset", attempt}))
	if err != nil {
		out.Close()
	}
	return add, out.Close, err
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

func appendMessage(out *jsonl.File, message []byte) error {
	line := oneLine(message)
	if !jsonl.IsObject(line) {
		return fmt.Errorf("transcript: the message %w", decode(line, &struct{}{}))
	}
	if len(line) >= jsonl.MaxLine {
		return fmt.Errorf("transcript: the message has %d bytes, and a line at most %d", len(line), jsonl.MaxLine)
	}
	return out.Add(append(line[:len(line):len(line)], '\n'), false)
}

// oneLine removes the line breaks of a JSON text. They are only between tokens, so the value stays the same.
func oneLine(raw []byte) []byte {
	if bytes.ContainsAny(raw, "\r\n") {
		raw = bytes.ReplaceAll(bytes.ReplaceAll(raw, []byte("\n"), []byte(" ")), []byte("\r"), []byte(" "))
	}
	return raw
}

// ReadTranscript reads the messages of a role's conversation about a task since the last context_reset, or the
// interview's, oldest first.
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
