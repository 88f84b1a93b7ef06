package session

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/text"
)

// requestFile has the last known state of the session's pull or merge request.
const requestFile = "request.json"

// The states of a request.
const (
	RequestOpen   = "open"
	RequestMerged = "merged"
	RequestClosed = "closed"
)

// Request is the last known state of a session's pull or merge request.
type Request struct {
	Forge   string `json:"forge"` // gh or glab
	Number  int64  `json:"number"`
	URL     string `json:"url"`
	State   string `json:"state"`
	Base    string `json:"base"`
	Branch  string `json:"branch"`
	Head    string `json:"head"`          // the commit that the forge has
	Threads int    `json:"threads"`       // unresolved ones of people with write access
	Failed  int    `json:"failed_checks"` // without failures outside the change
	Round   int    `json:"round"`
	Rounds  int    `json:"rounds,omitempty"` // the most
	// Took is the commit that the forge had when the session's branch last had all of its commits.
	Took string `json:"took,omitempty"`
	// Task is the task of a request in a stack, and Below has the requests below the highest one, the lowest first.
	Task   string     `json:"task,omitempty"`
	Below  []*Request `json:"below,omitempty"`
	SeenAt string     `json:"seen_at"`
}

// Request returns the last known state of the session's request, nil for none.
func (s *Session) Request() *Request {
	data, err := jsonl.ReadFile(s.Path(requestFile))
	r := new(Request)
	if err != nil || json.Unmarshal(data, r) != nil || r.Number == 0 {
		return nil
	}
	return r
}

// SaveRequest stores a request that was seen now.
func (s *Session) SaveRequest(r *Request, now time.Time) error {
	r.SeenAt = now.UTC().Format(time.RFC3339)
	return save(s.Path(requestFile), r)
}

// Name returns the request's number as its forge writes it.
func (r *Request) Name() string {
	if r.Forge == "glab" {
		return fmt.Sprintf("MR !%d", r.Number)
	}
	return fmt.Sprintf("PR #%d", r.Number)
}

// Merged reports whether the request was merged with a commit, or with commits on top of a pushed one.
func (r *Request) Merged(tip string) bool {
	return r.State == RequestMerged && (r.Head == tip || r.Took == tip)
}

// All returns the requests of a stack, the lowest first, or the only request. It returns nil for a nil Request.
func (r *Request) All() []*Request {
	if r == nil {
		return nil
	}
	return append(slices.Clone(r.Below), r)
}

// Root returns the branch that the lowest request was opened for.
func (r *Request) Root() string { return r.All()[0].Base }

// Line returns the request and the requests below it in one line, with the time of the last look.
func (r *Request) Line() string {
	var all []string
	for _, one := range r.All() {
		parts := []string{one.Name() + " " + one.State}
		if one.State == RequestOpen {
			parts = append(parts, text.Plural(one.Threads, "thread"), text.Plural(one.Failed, "failed check"))
			if one.Round > 0 {
				parts = append(parts, fmt.Sprintf("round %d of %d", one.Round, one.Rounds))
			}
		}
		all = append(all, strings.Join(parts, ", "))
	}
	return strings.Join(all, "; ") + " (seen " + r.SeenAt + ")"
}
