package session

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"
)

// Statuses of a session.
const (
	Prepared = "prepared" // the seed is committed, nothing has run
	Running  = "running"  // running, or stopped in a way that says nothing against the work
	AllDone  = "all_done" // every task is done
	Failed   = "failed"   // a task failed, or the interview ended without a seed
)

// Checkpoint is what a session needs to be woken.
type Checkpoint struct {
	SessionID     string                   `json:"session_id"`
	Source        string                   `json:"source"`    // the source repo's work tree, or its common directory if bare
	Workspace     string                   `json:"workspace"` // the worktree, absolute
	Branch        string                   `json:"branch"`
	Status        string                   `json:"status"`
	TokensUsed    int64                    `json:"tokens_used"` // prompt and eval tokens, all roles
	Usage         Usage                    `json:"usage"`
	StartedAt     string                   `json:"started_at"` // RFC 3339; what the wall-clock cap counts from
	Conversations map[string]*Conversation `json:"conversations"`
	GitCommonDir  string                   `json:"git_common_dir,omitempty"` // of the source repo, absolute
	Label         string                   `json:"label,omitempty"`
	Rewind        *Rewind                  `json:"rewind,omitempty"` // a rewind that has begun and not ended

	extra   *Object
	started string // what StartedAt was made from extra's started_at
}

// Conversation is a task's conversation with an agent program.
type Conversation struct {
	Agent    string    `json:"agent"`
	ID       string    `json:"id"`
	Cwd      string    `json:"cwd"`
	Model    string    `json:"model"`
	Created  string    `json:"created"`
	LastUsed string    `json:"last_used"`
	Attempts []Attempt `json:"attempts"`
	// Total is the program's running total after the last attempt, where it reports one.
	Total *RoleUsage `json:"total,omitempty"`

	extra *Object
}

// Attempt is one start of the program on a conversation.
type Attempt struct {
	Started     string  `json:"started"`
	Ended       string  `json:"ended"`
	How         string  `json:"how"` // how it ended
	Turns       int     `json:"turns"`
	Tokens      int64   `json:"tokens"`       // spent by this attempt
	Cost        float64 `json:"cost"`         // spent by this attempt, dollars
	TotalTokens int64   `json:"total_tokens"` // the program's running total after it, where it reports one

	extra *Object
}

// Rewind is the journal of a rewind in progress: what the session is being taken back to.
type Rewind struct {
	SHA        string          `json:"sha"`
	Branch     string          `json:"branch"`
	RecordLen  int64           `json:"record_len"` // bytes of events.jsonl that stay
	TokensUsed int64           `json:"tokens_used"`
	Usage      json.RawMessage `json:"usage"`
	StartedAt  string          `json:"started_at,omitempty"` // the checkpoint's own, as it was when prep ended
	Started    string          `json:"started"`              // when the rewind began
	// Keep are the paths that were ignored when the rewind began and stay, relative to the worktree. Bytes, because names need not be UTF-8.
	Keep [][]byte `json:"keep,omitempty"`

	extra *Object
}

// Checkpoint reads checkpoint.json. Errors name the file and what is wrong in it; errors.Is(err, fs.ErrNotExist) tells
// a missing one. Members that older or other writers do not have are zero.
func (s *Session) Checkpoint() (*Checkpoint, error) {
	path := s.Path(CheckpointFile)
	data, err := ReadFile(path)
	if err != nil {
		return nil, err
	}
	cp := &Checkpoint{}
	if err := cp.UnmarshalJSON(data); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return cp, nil
}

// SaveCheckpoint replaces checkpoint.json; unknown members of the file that cp was read from stay.
func (s *Session) SaveCheckpoint(cp *Checkpoint) error {
	data, err := indentJSON(cp)
	if err != nil {
		return fmt.Errorf("%s: %w", s.Path(CheckpointFile), err)
	}
	return WriteFileAtomic(s.Path(CheckpointFile), data)
}

// UnmarshalJSON reads a checkpoint of this program or of Python Tilth.
func (c *Checkpoint) UnmarshalJSON(data []byte) error {
	o, err := ParseObject(data)
	if err != nil {
		return err
	}
	*c = Checkpoint{}
	known := o.clone()
	if raw, ok := known.Get("started_at"); ok {
		c.started = momentText(raw)
		if err := known.Set("started_at", c.started); err != nil {
			return err
		}
	}
	started := c.started
	if err := known.bind(c); err != nil {
		return err
	}
	c.extra, c.started = o, started
	for task, conv := range c.Conversations {
		if conv == nil {
			delete(c.Conversations, task)
		}
	}
	return nil
}

// MarshalJSON writes the checkpoint over what it was read from.
func (c *Checkpoint) MarshalJSON() ([]byte, error) {
	o := c.extra.clone()
	oldStart, hadStart := o.Get("started_at")
	conversations, err := c.conversations(o)
	if err != nil {
		return nil, err
	}
	if err := o.overlay(c); err != nil {
		return nil, err
	}
	if hadStart && c.StartedAt == c.started {
		o.SetRaw("started_at", oldStart) // a float of Python Tilth stays one until the session is woken
	}
	if conversations != nil {
		o.SetRaw("conversations", conversations)
	}
	return o.MarshalJSON()
}

// conversations keeps the order in which tasks came to have one; a Go map would sort them. nil means that overlay's own
// text will do.
func (c *Checkpoint) conversations(o *Object) (json.RawMessage, error) {
	if len(c.Conversations) == 0 {
		return nil, nil
	}
	old := &Object{}
	if raw, ok := o.Get("conversations"); ok && string(raw) != "null" {
		if err := old.UnmarshalJSON(raw); err != nil {
			return nil, fmt.Errorf("\"conversations\" %w", err)
		}
	}
	for _, task := range slices.Clone(old.Keys()) {
		if c.Conversations[task] == nil {
			old.Delete(task)
		}
	}
	tasks := make([]string, 0, len(c.Conversations))
	for task := range c.Conversations {
		tasks = append(tasks, task)
	}
	slices.Sort(tasks)
	for _, task := range tasks {
		if conv := c.Conversations[task]; conv != nil {
			if err := old.Set(task, conv); err != nil {
				return nil, err
			}
		}
	}
	return old.MarshalJSON()
}

// StartTime is StartedAt as a time; zero when it is empty or unreadable.
func (c *Checkpoint) StartTime() time.Time { return ParseTime(c.StartedAt) }

// ParseTime reads the times of a session's files: RFC 3339, with or without a zone (then UTC). Anything else is the
// zero time.
func ParseTime(s string) time.Time {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999"} {
		if t, err := time.Parse(layout, s); err == nil {
			return t.UTC()
		}
	}
	return time.Time{}
}

// FormatTime is how times are written: RFC 3339 in UTC with milliseconds.
func FormatTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// momentText makes a time in words of what started_at holds: a string as it is, seconds since 1970 as RFC 3339.
func momentText(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	secs, err := strconv.ParseFloat(string(raw), 64)
	const year9999 = 253402300800
	if err != nil || secs <= 0 || secs >= year9999 {
		return ""
	}
	whole, frac := math.Modf(secs)
	return FormatTime(time.Unix(int64(whole), int64(frac*1e9)))
}

// UnmarshalJSON and MarshalJSON of the parts keep what they do not know, like the whole.

// UnmarshalJSON reads a conversation.
func (c *Conversation) UnmarshalJSON(data []byte) error {
	return keep(data, c, func(o *Object) { c.extra = o })
}

// MarshalJSON writes the conversation over what it was read from.
func (c *Conversation) MarshalJSON() ([]byte, error) { return over(c.extra, c) }

// UnmarshalJSON reads an attempt.
func (a *Attempt) UnmarshalJSON(data []byte) error {
	return keep(data, a, func(o *Object) { a.extra = o })
}

// MarshalJSON writes the attempt over what it was read from.
func (a Attempt) MarshalJSON() ([]byte, error) { return over(a.extra, a) }

// UnmarshalJSON reads a rewind's journal.
func (r *Rewind) UnmarshalJSON(data []byte) error {
	return keep(data, r, func(o *Object) { r.extra = o })
}

// MarshalJSON writes the journal over what it was read from.
func (r *Rewind) MarshalJSON() ([]byte, error) { return over(r.extra, r) }

// keep binds data to dst and hands the whole object to set.
func keep(data []byte, dst any, set func(*Object)) error {
	o, err := ParseObject(data)
	if err != nil {
		return err
	}
	if err := o.bind(dst); err != nil {
		return err
	}
	set(o)
	return nil
}

// over writes src over a copy of extra.
func over(extra *Object, src any) ([]byte, error) {
	o := extra.clone()
	if err := o.overlay(src); err != nil {
		return nil, err
	}
	return o.MarshalJSON()
}
