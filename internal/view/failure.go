package view

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/text"
)

// failure is the reason why the last run of a session failed, in the words of the objection. Each member is one line of
// untrusted text, or empty.
type failure struct {
	Task   string `json:"task,omitempty"`
	Reason string `json:"reason"`              // reason of the stop
	Detail string `json:"detail,omitempty"`    // the message of the endpoint, git or the harness
	Last   string `json:"objection,omitempty"` // the last one to the change: of a reviewer, or of a validator
	Hint   string `json:"hint,omitempty"`      // the stop's fix before a resume

	// Words are the full output lines of a commit hook that refused.
	Words []string `json:"hook_said,omitempty"`
}

// String returns the failure in one line: the stop's detail, else the last objection. With several tasks the detail
// names each.
func (f *failure) String() string {
	if f.Reason == record.TasksFailed && f.Detail != "" {
		return f.Detail
	}
	return joined(": ", f.Task, cmp.Or(f.Detail, f.Last, inWords(f.Reason)))
}

// failureIn returns the reason why the last run failed, by the record. It is nil if the last run is still running, was
// completed, was interrupted or reached a cap of the session.
func failureIn(st *record.State) *failure {
	if st == nil || st.Stopped == nil || record.ReasonOf(st.Stopped.Reason).Calm ||
		st.Tasks[st.Stopped.TaskID].Status == record.Skipped {
		return nil
	}
	stop := st.Stopped
	f := &failure{
		Task: oneLine(stop.TaskID), Reason: oneLine(stop.Reason), Detail: oneLine(joined(" ", stop.Detail, stop.Error)),
		Hint: oneLine(stop.Hint),
	}
	if stop.Reason == record.CommitRefused && !gitx.SaysUnsigned(stop.Detail) {
		f.Detail = oneLine("commit hook: " + cmp.Or(text.FailingLine(stop.Detail), "no output"))
		for line := range strings.Lines(text.HeadBytes(stop.Detail, maxLine)) {
			if line = strings.TrimRight(line, " \r\n"); line != "" {
				f.Words = append(f.Words, line)
			}
		}
	}
	if stop.Reason == record.TasksFailed && len(f.Detail) > 0 {
		if f.Detail = oneLine(stillFailed(stop, st)); f.Detail == "" {
			return nil
		}
	}
	task := cmp.Or(stop.TaskID, st.Head) // other tasks may have started after the one that stopped the run
	f.objections(task, st.Tasks[task].Attempt.Objected, st.Tasks[task].Failure)
	return f
}

// stillFailed returns the failed tasks of a run with --keep-going, as its stop names them, without tasks that the user
// has marked since.
func stillFailed(stop *record.Stop, st *record.State) string {
	var failed []string
	for _, id := range slices.Sorted(maps.Keys(stop.Failed)) {
		if status := st.Tasks[id].Status; status != record.Skipped && status != record.Pending {
			failed = append(failed, id+" "+stop.Failed[id])
		}
	}
	if len(failed) == len(stop.Failed) {
		return stop.Detail
	}
	return strings.Join(failed, "; ")
}

// lessCap returns a detail, or "" if it is only the number of the reached cap, because the reason names that.
func lessCap(detail string) string {
	if strings.Trim(detail, "0123456789") == "" {
		return ""
	}
	return detail
}

// objections adds the last objection to the change of an attempt. was is how the task failed last, nil if it never did:
// the repeated objection of a stuck task may be neither a verdict nor a validator's output.
func (f *failure) objections(task string, a record.Objected, was *record.Failure) {
	f.Detail = lessCap(f.Detail)
	if v := a.Verdict; v != nil && !v.Accepted() {
		f.Last = record.WithNext(joined(": ", oneLine(deref(v.RejectionCategory)), oneLine(deref(v.Concern))),
			oneLine(deref(v.NextStep)))
	}
	if r := a.Failing; r != nil && (a.FailedLast || f.Last == "") {
		f.Last = joined(": ", oneLine(r.Name), oneLine(r.Cause()))
	}
	if f.Last != "" {
		f.Task = cmp.Or(f.Task, oneLine(task))
	}
	if f.Reason != record.Stuck || was == nil {
		return
	}
	if said := oneLine(was.Objection); !strings.HasPrefix(f.Last, strings.TrimSuffix(said, "…")) {
		f.Last = said
	}
	f.Detail = joined(": ", f.Reason+inBrackets(f.Detail), f.Last)
}

// inWords returns a reason for people, with its word in parentheses.
func inWords(reason string) string {
	says := record.ReasonOf(reason).Says
	if reason == "" || says == reason {
		return reason
	}
	return says + " (" + reason + ")"
}

func oneLine(s string) string { return text.Clip(text.OneLine(text.HeadBytes(s, maxLine)), 600) }
