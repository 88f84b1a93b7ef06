package session

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/record"
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
	Statuses map[string]string `json:"statuses,omitempty"`
	// TakenOver is set where the record of another tool's session says since how its tasks stand.
	TakenOver bool   `json:"taken_over,omitempty"`
	Preflight string `json:"preflight,omitempty"` // names what the last preflight that passed had looked at
	// KnownFailures are the validators that failed before any work and bar nothing until they have passed, with the
	// tests that failed where those are known by name; nil where no person went on with any.
	KnownFailures map[string][]string `json:"known_failures,omitempty"`

	// StartedAt is what the wall-clock cap counts from, RFC 3339. Its text in the file is one of the others: a float
	// of Python Tilth stays one until the session is woken.
	StartedAt string `json:"-"`
	// Conversations are those with agent programs, by task, each in the text that goes into the file: only the one that
	// SetConversation changes is encoded again.
	Conversations map[string]json.RawMessage `json:"-"`

	others extra
}

// Checkpoint is checkpoint.json with the status and the totals that the record says, once there is a seed. A session of
// another tool is read as it is. Errors name the file and what is wrong in it; errors.Is(err, fs.ErrNotExist) holds for
// a missing one. Members that older or other writers do not have are zero.
func (s *Session) Checkpoint() (*Checkpoint, error) {
	c, err := s.StoredCheckpoint()
	if err != nil {
		return c, err
	}
	sum, unread := s.Summarize()
	if unread != nil || sum.State.Seed == nil {
		return c, nil // who needs the record says what is the matter with it
	}
	if c.GitCommonDir == "" {
		if sum.State.Base == "" {
			return c, nil
		}
		c.GitCommonDir = cmp.Or(c.Source, sum.State.Source) // somebody took it away: another tool's record has no base
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

// onlyWritten are the members that are written from the record, or found out again: what does not fit there is nothing.
var onlyWritten = []string{"status", "tokens_used", "statuses", "taken_over", "preflight", "label"}

// decodeCheckpoint reads a checkpoint of this program or of Python Tilth.
func decodeCheckpoint(data []byte) (*Checkpoint, error) {
	c := &Checkpoint{}
	if err := decode(data, c, &c.others, onlyWritten...); err != nil {
		return nil, err
	}
	c.StartedAt = momentText(c.others["started_at"])
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
	others := c.others
	if raw, ok := others["started_at"]; !ok || momentText(raw) != c.StartedAt {
		others = extra{}
		maps.Copy(others, c.others)
		others["started_at"], _ = jsonl.Encode(c.StartedAt) // a string always has a JSON text
	}
	text, err := indent(encode(c, others))
	if err != nil {
		return nil, err
	}
	text = append(bytes.TrimSuffix(text, []byte("\n}\n")), ",\n  \"conversations\": "...)
	return append(appendConversations(text, c.Conversations), "\n}\n"...), nil
}

// momentText makes a time in words of what started_at holds: a string as it is, seconds since 1970 as RFC 3339.
func momentText(raw json.RawMessage) string {
	if v := gjson.ParseBytes(raw); v.Type == gjson.String {
		return strings.ToValidUTF8(v.Str, "\uFFFD")
	}
	secs, err := strconv.ParseFloat(string(raw), 64)
	const year9999 = 253402300800
	if err != nil || secs <= 0 || secs >= year9999 {
		return ""
	}
	whole, frac := math.Modf(secs)
	return record.FormatTime(time.Unix(int64(whole), int64(frac*1e9)))
}
