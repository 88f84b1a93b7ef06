package session

import (
	"encoding/json"
	"math"

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
	TokensUsed   int64  `json:"tokens_used"` // of all roles, without cached tokens
	Usage        Usage  `json:"usage"`
	GitCommonDir string `json:"git_common_dir,omitempty"` // common directory of the source repository, absolute
	Label        string `json:"label,omitempty"`
	Recreate     string `json:"anew,omitempty"`        // command that creates the session again; "" if it has a seed
	ForkedFrom   string `json:"forked_from,omitempty"` // the session that this one is a fork of
	ForkedAt     string `json:"forked_at,omitempty"`   // the last shared commit
	// Statuses are the statuses that git-tilth last wrote to prd.json. If prd.json has another one, the user set it.
	Statuses  map[string]string `json:"statuses,omitempty"`
	Preflight string            `json:"preflight,omitempty"` // hash of the inputs of the last preflight that passed
	// KnownFailures are the validators that failed before any work, with the failed tests if known by name. They are
	// ignored until they have passed.
	KnownFailures map[string][]string `json:"known_failures,omitempty"`

	StartedAt string `json:"started_at"` // start of the wall-clock cap, RFC 3339
	// Conversations are the conversations with agent programs by task, as JSON texts.
	Conversations map[string]json.RawMessage `json:"conversations"`
}

// Checkpoint returns checkpoint.json; once there is a seed, with the record's status and totals. Errors name the file
// and its fault. For a missing file errors.Is(err, fs.ErrNotExist) is true.
func (s *Session) Checkpoint() (*Checkpoint, error) {
	c, err := s.StoredCheckpoint()
	if err != nil {
		return c, err
	}
	// Readers of the record report its fault.
	_ = s.follow(c.follow)
	return c, nil
}

// StoredCheckpoint returns the checkpoint in the file.
func (s *Session) StoredCheckpoint() (*Checkpoint, error) {
	return readJSON(s.Path(CheckpointFile), decodeCheckpoint)
}

// follow copies the record's status and totals once there is a seed.
func (c *Checkpoint) follow(sum *Summary) {
	if sum.State.Seed == nil {
		return
	}
	c.Status, c.TokensUsed, c.Usage = sum.State.SessionStatus(), sum.Tokens.Total, sum.Usage
}

// SaveCheckpoint replaces checkpoint.json. Before Sync a power cut may bring the old one back.
func (s *Session) SaveCheckpoint(cp *Checkpoint) error {
	if cp.Conversations == nil {
		cp.Conversations = map[string]json.RawMessage{}
	}
	return save(s.Path(CheckpointFile), cp)
}

// onlyWritten are the members that are written from the record or derived again. A value that does not fit is ignored.
var onlyWritten = []string{"status", "tokens_used", "statuses", "preflight", "label", "started_at", "usage"}

func decodeCheckpoint(data []byte) (*Checkpoint, error) {
	c := &Checkpoint{}
	return c, decode(data, c, onlyWritten...)
}

// RoleUsage is the usage of one role. Cached tokens are part of the prompt's, reasoning tokens of eval's; Cost is in
// dollars.
type RoleUsage struct {
	Calls           int64   `json:"calls"`
	PromptTokens    int64   `json:"prompt"`
	EvalTokens      int64   `json:"eval"`
	CachedTokens    int64   `json:"cached"`
	ReasoningTokens int64   `json:"reasoning"`
	Cost            float64 `json:"cost"`
}

// Total returns the tokens that count against the token cap: all except cached input.
func (r RoleUsage) Total() int64 { return max(0, r.PromptTokens-r.CachedTokens) + r.EvalTokens }

// Add adds more to r.
func (r *RoleUsage) Add(more RoleUsage) {
	r.Calls += more.Calls
	r.PromptTokens += more.PromptTokens
	r.EvalTokens += more.EvalTokens
	r.CachedTokens += more.CachedTokens
	r.ReasoningTokens += more.ReasoningTokens
	r.Cost = min(r.Cost+more.Cost, math.MaxFloat64)
}

// Usage is a session's usage by role.
type Usage struct {
	Worker      RoleUsage `json:"worker"`
	Evaluator   RoleUsage `json:"evaluator"`
	Interview   RoleUsage `json:"interview"`
	SelfImprove RoleUsage `json:"self_improve"`
}

// Sum returns the usage of all roles together.
func (u Usage) Sum() (sum RoleUsage) {
	for _, r := range []RoleUsage{u.Worker, u.Evaluator, u.Interview, u.SelfImprove} {
		sum.Add(r)
	}
	return sum
}

// Role returns the account of a role, or of a model_call's phase. An empty or unknown name is the worker's.
func (u *Usage) Role(name string) *RoleUsage {
	switch name {
	case record.RoleEvaluator:
		return &u.Evaluator
	case record.RoleInterview:
		return &u.Interview
	case record.RoleSelfImprove:
		return &u.SelfImprove
	}
	return &u.Worker
}
