package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
)

// Command is a suggested command with its purpose.
type Command struct {
	Line string `json:"command"`
	Why  string `json:"why"`
}

// Next returns the suggested commands for a session, the best one first. The end of a run, the status and the review
// print the same ones. onward is the only command that continues the work, or "". resume is the command that continues
// with the current caps.
func Next(o session.Overview, tasks []session.Task, st *record.State, resume string) (list []Command, onward string) {
	add := func(line, why string) { list = append(list, Command{line, why}) }
	goOn := func(line, why string) { onward = line; add(line, why) }
	var stop record.Stop
	if st != nil && st.Stopped != nil {
		stop = *st.Stopped
	}
	fix := oneLine(stop.Hint)
	if at := strings.Index(fix, "git tilth resume "); at >= 0 { // with flags that only that run knew
		fix, resume = strings.TrimSuffix(fix[:at], " && "), fix[at:]
	}
	failed := slices.IndexFunc(tasks, func(t session.Task) bool { return t.Status == session.TaskFailed })
	switch n := o.Tasks; {
	case o.Busy != nil:
		add("git tilth log -f "+o.ID, "follow it")
	case o.Cleansed:
		add("git tilth log "+o.ID, "show the record (the branch is deleted)")
		add("git tilth reset "+o.ID, "delete the record too")
		return list, ""
	case o.Status == session.Prepared && n.Pending > 0:
		if o.ForkedFrom != "" { // run takes no session
			goOn(resume, "start it")
			break
		}
		add("git tilth run", "start it")
	case stop.Reason == record.ReviewerFailed || failed >= 0 && failedReview(st, tasks[failed].ID):
		add(strings.Replace(resume, "resume", "resume --evaluator-model MODEL", 1), "with another reviewer model")
		add("git config tilth.evaluator.agent PROGRAM && "+resume, "with another reviewer program")
		goOn(resume, "ask the same reviewer again")
	case failed >= 0:
		help := helpIn(st, tasks[failed].ID)
		list = afterFailure(tasks[failed].ID, o.ID, help)
		goOn(resume, "continue")
		if help != "" {
			onward = help + " && " + resume
		}
	case n.Pending == 0:
	case n.Pending == n.Waiting:
		add("git tilth plan "+o.ID, "add tasks, or git tilth retry a skipped one")
		onward = list[0].Line + " && " + resume
	case stop.Reason == record.ClaimLost:
		goOn("git tilth list --remote", "show which machine works on it")
		add(resume, "continue once its claim ends")
	case text.IsCommand(fix) && !record.ReasonOf(stop.Reason).Task:
		goOn(fix+" && "+resume, "fix the cause and continue")
	case stop.Reason == record.PreflightFailed && stop.Hint == "":
		goOn(strings.Replace(resume, "resume", "resume --no-preflight", 1), "continue without preflight")
	case stop.Reason == record.UsageLimit && stop.Hint == "":
		goOn(resume+" --wait", "wait, then continue")
	default:
		goOn(resume, "continue")
	}
	if o.Taken {
		add("git tilth cleanse "+o.ID, "delete worktree and branch")
	} else if o.Tasks.Done > 0 && !o.NothingToTake {
		add("git tilth take "+o.ID, "take it into your branch")
	}
	if o.Tasks.Done > 0 {
		add("git tilth diff "+o.ID, "show the change")
	}
	if len(list) == 0 {
		add("git tilth show "+o.ID, "show its state")
	}
	return list, onward
}

// failedReview reports whether a task failed because its reviewer gave no verdict.
func failedReview(st *record.State, task string) bool {
	return st != nil && st.Tasks[task].Failure != nil && st.Tasks[task].Failure.Reason == record.ReviewerFailed
}

// helpIn is the command that helps against the last failure of a task, "" for none.
func helpIn(st *record.State, task string) string {
	if st == nil || st.Tasks[task].Failure == nil || !text.IsCommand(st.Tasks[task].Failure.Hint) {
		return ""
	}
	return oneLine(st.Tasks[task].Failure.Hint)
}

// afterFailure returns the commands for a failed task, first help, the command for this failure.
func afterFailure(task, id, help string) []Command {
	list := []Command{{"git tilth retry " + task + " " + id, "retry it (-m 'your note')"},
		{"git tilth skip " + task + " " + id, "skip it"}}
	why := "fix the cause"
	switch {
	case help == "":
		return list
	case strings.HasPrefix(help, "git tilth retry "):
		why, list = "retry it with your note", list[1:]
	case strings.HasPrefix(help, "git tilth done "):
		why = "it is already done"
	}
	return slices.Insert(list, 0, Command{help, why})
}

// Commands returns the commands, one a line, the first one after a head, each with its purpose if there is room. The
// terminal wraps a long command, because a cut one could not be run.
func (o Terminal) Commands(head string, list []Command) string {
	var b strings.Builder
	columns, longest := cmp.Or(o.Width, 80)-len(head)-3, 0
	for _, c := range list {
		if n := width(c.Line); columns-n >= 10 {
			longest = max(longest, n)
		}
	}
	for _, c := range list {
		line := text.VisibleLine(c.Line)
		if room := columns - longest; room >= 10 && width(c.Line) <= longest {
			line = fmt.Sprintf("%-*s   %s", longest, line, fit(text.VisibleLine(c.Why), room))
		}
		fmt.Fprintln(&b, head+line)
		head = strings.Repeat(" ", len(head))
	}
	return b.String()
}
