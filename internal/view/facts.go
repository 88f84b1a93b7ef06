package view

import (
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/text"
)

// facts are the fields of an event that the page's head needs before the page parses the event itself.
type facts struct {
	Prompt  int64   `json:"p,omitempty"` // tokens
	Eval    int64   `json:"e,omitempty"`
	Cached  int64   `json:"c,omitempty"`
	Cost    float64 `json:"$,omitempty"`
	Phase   string  `json:"ph,omitempty"` // or the role of a prompt
	Verdict string  `json:"v,omitempty"`
	Failed  bool    `json:"f,omitempty"` // for validators
	Reason  string  `json:"why,omitempty"`
	Back    int     `json:"b,omitempty"` // for a rewind or undo: from 1, the first event that it superseded
	Moved   string  `json:"m,omitempty"` // for a rewind or undo: the tasks that it changed
}

// factsOf returns the facts of an event, none for most types.
func factsOf(ev record.Event) (f facts) {
	short := func(s string) string { return text.Clip(s, maxFact) }
	switch ev := ev.(type) {
	case *record.SessionStart:
		f.Phase = short(ev.Phase)
	case *record.SessionResume:
		f.Reason = short(deref(ev.LastStop))
	case *record.PromptAssembled:
		f.Phase = short(ev.Role)
	case *record.ModelCall:
		f = facts{Prompt: ev.PromptTokens, Eval: ev.EvalTokens, Cached: ev.CachedTokens, Cost: deref(ev.Cost),
			Phase: short(ev.Phase)}
	case *record.ValidatorRun:
		f.Failed = !ev.Passed
	case *record.EvaluatorVerdict:
		f.Verdict = verdictOf(ev)
	case *record.TaskFailed:
		f.Reason = short(ev.Reason)
	case *record.Stop:
		f.Reason = short(ev.Reason)
	}
	return f
}
