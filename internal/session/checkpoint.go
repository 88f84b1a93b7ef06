package session

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/git-tilth/git-tilth/internal/record"
)

// Statuses of a session.
const (
	Prepared = "prepared" // the seed is committed, nothing has run
	Running  = "running"  // running, or stopped in a way that says nothing against the work
	AllDone  = "all_done" // every task is done
	Failed   = "failed"   // a task failed, or the interview ended without a seed
)

// Checkpoint is the data that a resume starts from.
type Checkpoint struct {
	SessionID    string `json:"session_id"`
	Source       string `json:"source"`    // the source repo's work tree, or its common directory if bare
	Workspace    string `json:"workspace"` // the worktree, absolute
	Branch       string `json:"branch"`
	Status       string `json:"status"`
	TokensUsed   int64  `json:"tokens_used"` // of all roles, less what was read from a cache
	Usage        Usage  `json:"usage"`
	GitCommonDir string `json:"git_common_dir,omitempty"` // of the source repo, absolute
	Label        string `json:"label,omitempty"`
	Anew         string `json:"anew,omitempty"`        // until there is a seed: the command that reads its tasks again
	ForkedFrom   string `json:"forked_from,omitempty"` // the session that this one is a fork of
	ForkedAt     string `json:"forked_at,omitempty"`   // the commit up to which the two share theirs
	// Statuses are those with which prd.json was written last: another one in it is a person's.
	Statuses  map[string]string `json:"statuses,omitempty"`
	Preflight string            `json:"preflight,omitempty"` // names what the last preflight that passed had looked at
	// KnownFailures are the validators that failed before any work and bar nothing until they have passed, with the
	// tests that failed where those are known by name; nil where no person went on with any.
	KnownFailures map[string][]string `json:"known_failures,omitempty"`

	StartedAt string `json:"started_at"` // what the wall-clock cap counts from, RFC 3339
	// Conversations are those with agent programs, by task, each as its JSON text: SetConversation encodes only the one
	// that it changes.
	Conversations map[string]json.RawMessage `json:"-"`

	others extra
}

// Checkpoint returns checkpoint.json, with the status and totals of the record once there is a seed. Errors name the
// file and the fault in it; errors.Is(err, fs.ErrNotExist) holds for a missing file.
func (s *Session) Checkpoint() (*Checkpoint, error) {
	c, err := s.StoredCheckpoint()
	if err != nil {
		return c, err
	}
	sum, unread := s.Summarize()
	if unread != nil || sum.State.Seed == nil {
		return c, nil // who needs the record says what is the matter with it
	}
	c.Status = sum.State.SessionStatus()
	c.SetTotals(sum)
	return c, nil
}

// StoredCheckpoint is Checkpoint as the file has it.
func (s *Session) StoredCheckpoint() (*Checkpoint, error) {
	return readJSON(s.Path(CheckpointFile), decodeCheckpoint)
}

// SetTotals makes the totals those of the record.
func (c *Checkpoint) SetTotals(sum *Summary) {
	c.TokensUsed = sum.Tokens.Total
	for _, role := range []string{"", record.RoleEvaluator, record.RoleInterview, record.RoleSelfImprove} {
		r := c.Usage.Role(role)
		*r = RoleUsage{others: r.others}
		r.Add(*sum.Usage.Role(role))
	}
}

// SaveCheckpoint replaces checkpoint.json; unknown members of the file that cp was read from stay. Before Sync a power
// cut may bring the old one back.
func (s *Session) SaveCheckpoint(cp *Checkpoint) error {
	data, err := cp.encode()
	return save(s.Path(CheckpointFile), data, err, true)
}

// onlyWritten are the members that are written from the record or derived again. A value that does not fit is ignored.
var onlyWritten = []string{"status", "tokens_used", "statuses", "preflight", "label", "started_at"}

func decodeCheckpoint(data []byte) (*Checkpoint, error) {
	c := &Checkpoint{}
	if err := decode(data, c, &c.others, onlyWritten...); err != nil {
		return nil, err
	}
	raw, ok := c.others["conversations"]
	if !ok {
		return c, nil
	}
	delete(c.others, "conversations")
	var err error
	if c.Conversations, err = decodeConversations(raw); err != nil {
		err = fmt.Errorf("\"conversations\" %w", err)
	}
	return c, err
}

// encode is the file's text. The conversations stand last and are taken as they were encoded, so that a checkpoint
// costs the same however many there are.
func (c *Checkpoint) encode() ([]byte, error) {
	text, err := indent(encode(c, c.others))
	if err != nil {
		return nil, err
	}
	text = append(bytes.TrimSuffix(text, []byte("\n}\n")), ",\n  \"conversations\": "...)
	return append(appendConversations(text, c.Conversations), "\n}\n"...), nil
}
