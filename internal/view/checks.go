package view

import (
	"fmt"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
)

// seeChecks reads the last run of the validators over the task's change.
func (t *ReportTask) seeChecks(run *record.ValidatorRun) {
	var by, not []string
	for _, r := range run.Results {
		words, checks := resultWords(r)
		if !r.Passed && !r.Skipped && !r.Known && t.Output == nil {
			lines := strings.Split(strings.TrimSpace(deref(r.Output)), "\n")
			t.Output = lines[max(len(lines)-shownOutput, 0):]
		}
		if checks {
			by = append(by, words)
		} else {
			not = append(not, words)
		}
	}
	t.Unchecked = len(by) == 0
	switch {
	case len(by) > 0:
		t.Checks = []string{"checked by " + strings.Join(by, ", ")}
	case len(not) > 0:
		t.Checks = []string{notChecked + "no validator ran"}
	case strings.HasPrefix(run.Note, notChecked):
		t.Checks = []string{oneLine(run.Note)}
	default:
		t.Checks = []string{notChecked + "no validators"}
	}
	if len(not) > 0 {
		t.Checks = append(t.Checks, "NOT run: "+strings.Join(not, ", "))
	}
	for _, s := range run.Doubts() {
		t.Doubts = append(t.Doubts, oneLine(s))
	}
}

// shownOutput is the number of lines of a failed validator's output in the review of a task.
const shownOutput = 20

const notChecked = "NOT checked: "

// resultWords returns the result of a validator, and reports whether it checked anything.
func resultWords(r record.ValidatorResult) (words string, checks bool) {
	counts := []string{}
	if r.Tests != nil && r.Tests.Passed > 0 {
		counts = append(counts, fmt.Sprintf("%d passed", r.Tests.Passed))
	}
	failed := 1
	if r.Tests != nil {
		failed = max(r.Tests.Failed, len(r.Tests.Names), 1)
	}
	switch {
	case r.Skipped:
		why := strings.TrimPrefix(strings.TrimPrefix(oneLine(deref(r.Output)), oneLine(r.Name)+" is "), "it is ")
		return oneLine(r.Name) + inBrackets(why), false
	case r.Passed && r.Tests != nil && r.Tests.Ran == 0:
		return oneLine(r.Name) + " (no tests)", false
	case r.Known:
		counts = append(counts, text.Plural(failed, "known failure"))
	case !r.Passed && r.Tests != nil:
		counts = append(counts, fmt.Sprintf("%d FAILED", failed))
	case !r.Passed:
		counts = append(counts, "FAILED")
	}
	return joined(" ", oneLine(r.Name), strings.Join(counts, ", ")), true
}

// lastAgent returns the last program in a role with its model. program and model are the session's first ones.
func lastAgent(programs []string, program, model string) string {
	if n := len(programs); n > 0 && programs[n-1] != program {
		return programs[n-1]
	}
	switch program {
	case "builtin":
		return oneLine(model)
	case model:
		model = ""
	}
	return oneLine(joined(" ", program, model))
}

// reviewedBy names the reviewer of an accepted task.
func (t *ReportTask) reviewedBy() {
	start := t.agents
	if t.Verdict != "accept" || t.By != "" || start == nil {
		return
	}
	t.Reviewer = lastAgent(t.Reviewers, start.EvaluatorAgent, deref(start.EvaluatorModel))
	if t.Reviewer == lastAgent(t.Workers, start.WorkerAgent, deref(start.WorkerModel)) && t.Reviewer != "" {
		t.Reviewer += ", also the worker"
	}
}

// checked returns the checks of a finished task's change in one line. With all it includes the doubts about its tests,
// which a list of points to check has already.
func (t *ReportTask) checked(all bool) string {
	if t.Status != session.TaskDone {
		return ""
	}
	lines := slices.Clone(t.Checks)
	if all {
		lines = append(lines, t.Doubts...)
	}
	if t.Reviewer != "" {
		lines = append(lines, "reviewer: "+joined(": ", t.Reviewer, t.Acceptance))
	}
	return strings.Join(lines, "; ")
}

// CheckLines returns a line for each finished task with its checks, unchecked tasks first. Tasks with the same checks
// share a line.
func (r *Report) CheckLines(all bool) (lines []string) {
	by := map[string][]*ReportTask{}
	var order []string
	for _, t := range r.done() {
		says := t.checked(all)
		if by[says] == nil && says != "" {
			order = append(order, says)
		}
		by[says] = append(by[says], t)
	}
	slices.SortStableFunc(order, func(a, b string) int {
		return len(strings.TrimPrefix(a, notChecked)) - len(a) - len(strings.TrimPrefix(b, notChecked)) + len(b)
	})
	for _, says := range order {
		lines = append(lines, r.idsOf(by[says])+"  "+says)
	}
	return lines
}
