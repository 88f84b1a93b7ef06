package session

import "encoding/json"

// Roles that spend tokens; also the names of the members of usage. The phase of a model_call is empty for the worker.
const (
	RoleWorker      = "worker"
	RoleEvaluator   = "evaluator"
	RoleInterview   = "interview"
	RoleSelfImprove = "self_improve"
)

// RoleUsage is what one role has spent. Cached tokens are part of the prompt's, reasoning tokens of eval's; Cost is
// in dollars.
type RoleUsage struct {
	Calls           int64   `json:"calls"`
	PromptTokens    int64   `json:"prompt"`
	EvalTokens      int64   `json:"eval"`
	CachedTokens    int64   `json:"cached"`
	ReasoningTokens int64   `json:"reasoning"`
	Cost            float64 `json:"cost"`

	extra *Object
}

// Total is what counts against the token cap.
func (r RoleUsage) Total() int64 { return r.PromptTokens + r.EvalTokens }

// Add adds what more says to r.
func (r *RoleUsage) Add(more RoleUsage) {
	r.Calls += more.Calls
	r.PromptTokens += more.PromptTokens
	r.EvalTokens += more.EvalTokens
	r.CachedTokens += more.CachedTokens
	r.ReasoningTokens += more.ReasoningTokens
	r.Cost += more.Cost
}

// zero tells whether nothing was spent.
func (r RoleUsage) zero() bool {
	r.extra = nil
	return r == RoleUsage{}
}

// UnmarshalJSON takes what it can read of a role's usage and never fails: other tools count other things.
func (r *RoleUsage) UnmarshalJSON(data []byte) error {
	*r = RoleUsage{}
	o, err := ParseObject(data)
	if err != nil {
		return nil
	}
	r.extra = o
	return lenient(o, map[string]any{
		"calls": &r.Calls, "prompt": &r.PromptTokens, "eval": &r.EvalTokens, "cached": &r.CachedTokens,
		"reasoning": &r.ReasoningTokens, "cost": &r.Cost,
	})
}

// MarshalJSON writes the counts, and their total where the file has one (Python Tilth's does).
func (r RoleUsage) MarshalJSON() ([]byte, error) {
	o := r.extra.clone()
	if err := o.overlay(r); err != nil {
		return nil, err
	}
	if old, ok := o.Get("total"); ok {
		if n, whole := wholeNumber(old); !whole || n != r.Total() {
			if err := o.Set("total", r.Total()); err != nil {
				return nil, err
			}
		}
	}
	return o.MarshalJSON()
}

// Usage is what a session has spent, by role.
type Usage struct {
	Worker      RoleUsage `json:"worker"`
	Evaluator   RoleUsage `json:"evaluator"`
	Interview   RoleUsage `json:"interview"`
	SelfImprove RoleUsage `json:"self_improve"`

	extra   *Object         // the object as it was read
	foreign json.RawMessage // what was read, where it was no object
}

// Cost is the sum over the roles, in dollars.
func (u Usage) Cost() float64 {
	return u.Worker.Cost + u.Evaluator.Cost + u.Interview.Cost + u.SelfImprove.Cost
}

// Total is the sum of prompt and eval tokens over the roles.
func (u Usage) Total() int64 {
	return u.Worker.Total() + u.Evaluator.Total() + u.Interview.Total() + u.SelfImprove.Total()
}

// Role is the account of a role, or of a model_call's phase (where empty is the worker). An unknown name is the worker's.
func (u *Usage) Role(name string) *RoleUsage {
	switch name {
	case RoleEvaluator:
		return &u.Evaluator
	case RoleInterview:
		return &u.Interview
	case RoleSelfImprove:
		return &u.SelfImprove
	}
	return &u.Worker
}

// UnmarshalJSON never fails; a value of an unknown shape is kept as it is.
func (u *Usage) UnmarshalJSON(data []byte) error {
	*u = Usage{}
	o, err := ParseObject(data)
	if err != nil {
		u.foreign = append(json.RawMessage(nil), data...)
		return nil
	}
	u.extra = o
	return lenient(o, map[string]any{
		RoleWorker: &u.Worker, RoleEvaluator: &u.Evaluator, RoleInterview: &u.Interview, RoleSelfImprove: &u.SelfImprove,
	})
}

// MarshalJSON writes all roles, but leaves out one that neither spent anything nor was in the file.
func (u Usage) MarshalJSON() ([]byte, error) {
	if u.foreign != nil && u.Worker.zero() && u.Evaluator.zero() && u.Interview.zero() && u.SelfImprove.zero() {
		return u.foreign, nil
	}
	o := u.extra.clone()
	if u.foreign != nil {
		o.SetRaw("other", u.foreign)
	}
	for _, role := range []string{RoleWorker, RoleEvaluator, RoleInterview, RoleSelfImprove} {
		r := u.Role(role)
		old, had := o.Get(role)
		if r.zero() && (had && r.extra == nil || !had && u.extra != nil) {
			continue
		}
		raw, err := r.MarshalJSON()
		if err != nil {
			return nil, err
		}
		if !had || !sameJSON(old, raw) {
			o.SetRaw(role, raw)
		}
	}
	return o.MarshalJSON()
}

// lenient fills what has the right shape and leaves the rest at zero. It returns nil so that an UnmarshalJSON can
// return it.
func lenient(o *Object, into map[string]any) error {
	for name, dst := range into {
		raw, ok := o.Get(name)
		if !ok {
			continue
		}
		if n, isInt := dst.(*int64); isInt {
			if v, whole := wholeNumber(raw); whole {
				*n = v
			}
			continue
		}
		_ = json.Unmarshal(raw, dst)
	}
	return nil
}
