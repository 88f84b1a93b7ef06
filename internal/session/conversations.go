package session

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/git-tilth/git-tilth/internal/jsonl"
)

// Conversation is a task's conversation with an agent program.
type Conversation struct {
	Agent    string    `json:"agent"`
	ID       string    `json:"id"`
	Cwd      string    `json:"cwd"`
	Model    string    `json:"model"`
	Created  string    `json:"created"`
	LastUsed string    `json:"last_used"`
	Over     bool      `json:"over,omitempty"` // a person wants the task begun afresh
	Attempts []Attempt `json:"attempts"`
	// Total is the program's running total after the last attempt, where it reports one.
	Total *RoleUsage `json:"total,omitempty"`
	// ResumeBy is how an agent by ACP takes it up: "load", "resume" or "none"; "" for another program.
	ResumeBy string `json:"resume_by,omitempty"`
	// Uncounted says that the agent reported a turn without its usage.
	Uncounted bool `json:"uncounted,omitempty"`
	// Others are those of other programs that worked on the task, by their names.
	Others map[string]*Conversation `json:"others,omitempty"`

	others extra
}

func (c Conversation) MarshalJSON() ([]byte, error)     { return encode(&c, c.others) }
func (c *Conversation) UnmarshalJSON(data []byte) error { return decode(data, c, &c.others) }

// Attempt is one start of the program on a conversation.
type Attempt struct {
	Started     string  `json:"started"`
	Ended       string  `json:"ended"`
	How         string  `json:"how"` // how it ended
	Turns       int     `json:"turns"`
	Tokens      int64   `json:"tokens"`       // spent by this attempt
	Cost        float64 `json:"cost"`         // spent by this attempt, dollars
	TotalTokens int64   `json:"total_tokens"` // the program's running total after it, where it reports one

	others extra
}

func (a Attempt) MarshalJSON() ([]byte, error)     { return encode(&a, a.others) }
func (a *Attempt) UnmarshalJSON(data []byte) error { return decode(data, a, &a.others) }

// Conversation returns a task's conversation, or nil. SetConversation stores a changed one.
func (c *Checkpoint) Conversation(task string) *Conversation {
	raw, ok := c.Conversations[task]
	if !ok {
		return nil
	}
	conv := &Conversation{}
	_ = conv.UnmarshalJSON(raw) // decodeConversations has seen to it that it can be read
	return conv
}

// ConversationOf is a task's conversation with one program, among those of others too. Where it had none with that one
// it is that in use, and nil if there is none.
func (c *Checkpoint) ConversationOf(task, agent string) *Conversation {
	conv := c.Conversation(task)
	if conv != nil && conv.Agent != agent && conv.Others[agent] != nil {
		return conv.Others[agent]
	}
	return conv
}

// SetConversation stores a task's conversation as the one in use. One with another program is kept beside it.
func (c *Checkpoint) SetConversation(task string, conv *Conversation) error {
	if was := c.Conversation(task); was != nil {
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
	raw, err := jsonl.Encode(conv)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if err := json.Indent(&text, raw, "    ", "  "); err != nil {
		return err
	}
	if c.Conversations == nil {
		c.Conversations = map[string]json.RawMessage{}
	}
	c.Conversations[task] = text.Bytes()
	return nil
}

// decodeConversations refuses a conversation that cannot be read, so that Conversation need not; null is none.
func decodeConversations(data []byte) (c map[string]json.RawMessage, err error) {
	if err := json.Unmarshal(data, &c); err != nil {
		return nil, jsonError(data, err)
	}
	for task, raw := range c {
		if string(raw) == "null" {
			delete(c, task)
		} else if err := new(Conversation).UnmarshalJSON(raw); err != nil {
			return nil, fmt.Errorf("of %s: %w", task, err)
		}
	}
	return c, nil
}

// appendConversations appends their JSON object to text, sorted by task, as a member of an indented file.
func appendConversations(text []byte, c map[string]json.RawMessage) []byte {
	if len(c) == 0 {
		return append(text, "{}"...)
	}
	size := 0
	for _, raw := range c {
		size += len(raw) + 32
	}
	text = slices.Grow(text, size)
	for i, task := range slices.Sorted(maps.Keys(c)) {
		open := ","
		if i == 0 {
			open = "{"
		}
		name, _ := jsonl.Encode(task) // a string always has a JSON text
		text = append(append(append(text, open+"\n    "...), name...), ": "...)
		text = append(text, c[task]...)
	}
	return append(text, "\n  }"...)
}
