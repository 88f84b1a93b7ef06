package view

import (
	"cmp"
	"os"
	"time"

	"github.com/git-tilth/git-tilth/internal/session"
)

// head is the part of the page above the conversation. No single event has it.
type head struct {
	Live     bool             `json:"live,omitempty"`
	Rendered int64            `json:"rendered"` // Unix milliseconds
	Running  bool             `json:"running"`
	Session  headSession      `json:"session"`
	Usage    *session.Usage   `json:"usage,omitempty"`
	Tasks    []session.Task   `json:"tasks,omitempty"`
	Summary  *session.Summary `json:"summary,omitempty"`
	Doing    []headDoing      `json:"doing,omitempty"` // while the session runs

	TLDR          string   `json:"tldr,omitempty"`
	OpenQuestions []string `json:"open_questions,omitempty"`
	Blockers      []string `json:"blockers,omitempty"`
	ScopeNotes    []string `json:"scope_notes,omitempty"`

	Unreadable int      `json:"unreadable,omitempty"` // lines of the record that are not JSON objects
	Problems   []string `json:"problems,omitempty"`   // files that could not be read
}

type headSession struct {
	ID         string `json:"id"`
	Branch     string `json:"branch,omitempty"`
	Source     string `json:"source,omitempty"`
	Status     string `json:"status,omitempty"`
	Label      string `json:"label,omitempty"`
	TokensUsed int64  `json:"tokens_used,omitempty"`
}

// headDoing is a worker's current activity.
type headDoing struct {
	Task  string `json:"task,omitempty"`
	What  string `json:"what"`
	Since int64  `json:"since"` // Unix milliseconds
}

// readHead gathers the head from the session's small files. A missing file is normal at some time of a session's life;
// a damaged one is named in the page.
func readHead(s *session.Session, now time.Time) head {
	h := head{Rendered: now.UnixMilli(), Session: headSession{ID: s.ID, Branch: s.Branch()}}
	if cp, err := s.Checkpoint(); err == nil {
		h.Session = headSession{s.ID, cmp.Or(cp.Branch, s.Branch()), cp.Source, cp.Status, cp.Label, cp.TokensUsed}
		h.Usage = &cp.Usage
	} else {
		h.problem(err)
	}
	if tasks, err := s.Tasks(); err == nil {
		h.Tasks = tasks
	} else {
		h.problem(err)
	}
	if m, err := s.SeedMeta(); err == nil {
		h.TLDR, h.OpenQuestions, h.Blockers, h.ScopeNotes = m.TLDR, m.OpenQuestions, m.Blockers, m.ScopeNotes
	} else {
		h.problem(err)
	}
	_, h.Running = s.Holder()
	return h
}

func (h *head) problem(err error) {
	if !os.IsNotExist(err) {
		h.Problems = append(h.Problems, err.Error())
	}
}
