package session

import (
	"math"

	"github.com/git-tilth/git-tilth/internal/record"
)

// RoleUsage is the usage of one role. Cached tokens are part of the prompt's, reasoning tokens of eval's; Cost is in
// dollars.
type RoleUsage struct {
	Calls           int64   `json:"calls"`
	PromptTokens    int64   `json:"prompt"`
	EvalTokens      int64   `json:"eval"`
	CachedTokens    int64   `json:"cached"`
	ReasoningTokens int64   `json:"reasoning"`
	Cost            float64 `json:"cost"`

	others extra
}

func (r RoleUsage) MarshalJSON() ([]byte, error) { return encode(&r, r.others) }

// UnmarshalJSON never fails: totals are rewritten from the record.
func (r *RoleUsage) UnmarshalJSON(data []byte) error {
	_ = decode(data, r, &r.others)
	return nil
}

// Total returns the tokens that count against the token cap: all but those that a provider read from its cache.
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

	others extra
}

func (u Usage) MarshalJSON() ([]byte, error) { return encode(&u, u.others) }

// UnmarshalJSON never fails: totals are rewritten from the record.
func (u *Usage) UnmarshalJSON(data []byte) error {
	_ = decode(data, u, &u.others)
	return nil
}

// Sum returns the usage of all roles together.
func (u Usage) Sum() (sum RoleUsage) {
	for _, r := range []RoleUsage{u.Worker, u.Evaluator, u.Interview, u.SelfImprove} {
		sum.Add(r)
	}
	return sum
}

// Role is the account of a role, or of a model_call's phase (where empty is the worker). An unknown name is the
// worker's.
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
