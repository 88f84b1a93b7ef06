package view

import (
	"cmp"
	"strings"

	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/text"
)

// failure is why the last run of a session failed, in the words of whoever objected. Each member is one line of foreign
// text, empty where nobody said it.
type failure struct {
	Task   string `json:"task,omitempty"`
	Reason string `json:"reason"`           // of the stop
	Detail string `json:"detail,omitempty"` // what the endpoint, git or the harness said
	// The last rejection of the last attempt.
	Category string `json:"category,omitempty"`
	Concern  string `json:"concern,omitempty"`
	NextStep string `json:"next_step,omitempty"`
	// The validator that failed last in it, and the line of its output that says why.
	Validator string `json:"validator,omitempty"`
	Said      string `json:"validator_said,omitempty"`

	Hint string `json:"hint,omitempty"` // what the stop said is to be done before a resume

	// Words are those of a commit hook that refused, whole, a line each.
	Words []string `json:"hook_said,omitempty"`

	last string // what objected last, in one line
}

// String is the failure in one line: what stopped the run, else what objected last. Of several tasks the detail names
// each.
func (f *failure) String() string {
	if f.Reason == record.TasksFailed && f.Detail != "" {
		return f.Detail
	}
	return joined(": ", f.Task, cmp.Or(f.Detail, f.last, inWords(f.Reason)))
}

// readFailure reads the record at path backwards, at most as many lines as most and no further than to where its last
// attempt at a task began. It is nil for a session whose last run is going on, came to its end, was interrupted or
// reached a cap of the session.
func readFailure(path string, most int) (f *failure) {
	// What of a record cannot be read, list and show say elsewhere.
	_, _ = record.Tail(path, func(e record.Line) bool {
		if most--; most < 0 {
			return false
		}
		switch e.Type {
		case "stop":
			if f != nil {
				return false
			}
			f = failureOf(e.Event())
			return f != nil
		case "evaluator_verdict", "judge_verdict", "validator_run":
			return f.objection(e.Event())
		}
		return !e.GoesOn() || f != nil && e.Type != "context_reset"
	})
	return f
}

func failureOf(stop record.Event) *failure {
	ev, ok := stop.(*record.Stop)
	if !ok || record.ReasonOf(ev.Reason).Calm {
		return nil
	}
	f := &failure{
		Task: oneLine(ev.TaskID), Reason: oneLine(ev.Reason), Detail: oneLine(joined(" ", ev.Detail, ev.Error)),
		Hint: oneLine(ev.Hint),
	}
	if ev.Reason == record.CommitRefused {
		f.Detail = oneLine("commit hook: " + cmp.Or(text.FailingLine(ev.Detail), "it says nothing"))
		for line := range strings.Lines(text.HeadBytes(ev.Detail, maxLine)) {
			if line = strings.TrimRight(line, " \r\n"); line != "" {
				f.Words = append(f.Words, line)
			}
		}
	}
	if strings.Trim(f.Detail, "0123456789") == "" {
		f.Detail = "" // the cap that was reached, which the reason names
	}
	return f
}

// objection takes in what was said against a change. It reports whether what was said before may matter too.
func (f *failure) objection(ev record.Event) (more bool) {
	if f == nil {
		return false
	}
	if v, ok := ev.(*record.EvaluatorVerdict); ok {
		if v.Accepted() {
			return false
		}
		if f.Category+f.Concern == "" {
			f.Category, f.Concern = oneLine(deref(v.RejectionCategory)), oneLine(deref(v.Concern))
			f.NextStep = oneLine(deref(v.NextStep))
			f.objects(v.TaskID, withNext(joined(": ", f.Category, f.Concern), f.NextStep))
		}
	}
	if v, ok := ev.(*record.ValidatorRun); ok && !v.Passed && f.Validator == "" {
		for _, r := range v.Results {
			if !r.Passed && !r.Skipped {
				f.Validator, f.Said = oneLine(r.Name), oneLine(text.FailingLine(deref(r.Output)))
				f.objects(v.TaskID, joined(": ", f.Validator, f.Said))
				break
			}
		}
	}
	return f.Validator == "" || f.Category+f.Concern == ""
}

func (f *failure) objects(task, says string) {
	if f.Task == "" {
		f.Task = oneLine(task)
	}
	if f.last == "" {
		f.last = says
	}
}

// withNext adds to an objection what is to be done about it.
func withNext(says, next string) string {
	if next != "" {
		says += " Next: " + next
	}
	return says
}

// inWords is a reason for people, with its word in parentheses.
func inWords(reason string) string {
	says := record.ReasonOf(reason).Says
	if reason == "" || says == reason {
		return reason
	}
	return says + " (" + reason + ")"
}

func oneLine(s string) string { return text.Clip(text.OneLine(text.HeadBytes(s, maxLine)), 600) }
