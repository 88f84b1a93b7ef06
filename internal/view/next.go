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

// Suggest sets the suggested commands, the best one first. resume is the command that continues with the current caps.
func (r *Report) Suggest(resume string) {
	o, st := r.Overview, r.Summary.State
	r.Commands = []Command{}
	add := func(line, why string) { r.Commands = append(r.Commands, Command{line, why}) }
	goOn := func(line, why string) { r.Onward = line; add(line, why) }
	defer func() {
		if len(r.Commands) == 0 {
			add("git tilth show "+o.ID, "show its state")
		}
		r.Next = r.Commands[0].Line
	}()
	var stop record.Stop
	if st != nil && st.Stopped != nil {
		stop = *st.Stopped
	}
	fix := oneLine(stop.Hint)
	if at := strings.Index(fix, "git tilth resume "); at >= 0 { // the flags of that run
		fix, resume = strings.TrimSuffix(fix[:at], " && "), fix[at:]
	}
	var failed *ReportTask
	if i := slices.IndexFunc(r.Tasks, func(t ReportTask) bool { return t.Status == session.TaskFailed }); i >= 0 {
		failed = &r.Tasks[i]
	}
	switch n := o.Tasks; {
	case o.Busy != nil:
		add("git tilth log -f "+o.ID, "follow it")
	case o.Cleansed:
		add("git tilth log "+o.ID, "show the record (the branch is deleted)")
		add("git tilth reset "+o.ID, "delete the record too")
		return
	case o.Status == session.Prepared && n.Pending > 0:
		if o.ForkedFrom != "" { // run takes no session
			goOn(resume, "start it")
			break
		}
		add("git tilth run", "start it")
	case stop.Reason == record.ReviewerFailed || failed != nil && failedReview(st, failed.ID):
		add(strings.Replace(resume, "resume", "resume --evaluator-model MODEL", 1), "with another reviewer model")
		add("git config tilth.evaluator.agent PROGRAM && "+resume, "with another reviewer program")
		goOn(resume, "ask the same reviewer again")
	case failed != nil:
		r.Commands = failed.afterFailure(o.ID)
		goOn(resume, "continue")
		if help := failed.help; help != "" && !editsHook(help) {
			r.Onward = help + " && " + resume
		}
	case n.Pending == n.Waiting && n.Pending > 0:
		add("git tilth plan "+o.ID, "add tasks, or git tilth retry a skipped one")
		r.Onward = r.Commands[0].Line + " && " + resume
	case stop.Reason == record.CommitRefused && editsHook(fix):
		retry := withNote(stop.TaskID, o.ID)
		goOn(retry.Line+" && "+resume, retry.Why)
		add(fix+" && "+resume, "edit the hook, then continue")
	case n.Pending == 0:
	case stop.Reason == record.ClaimLost:
		goOn("git tilth list --remote", "show which machine works on it")
		add(resume, "continue once its claim ends")
	case text.IsCommand(fix) && !record.ReasonOf(stop.Reason).Task:
		goOn(fix+" && "+resume, "fix the cause and continue")
	case stop.Reason == record.PreflightFailed && stop.Hint == "":
		goOn(strings.Replace(resume, "resume", "resume --no-preflight", 1), "continue without preflight")
	case stop.Reason == record.UsageLimit && stop.Hint == "":
		goOn(resume, "wait, then continue")
	default:
		goOn(resume, "continue")
	}
	if o.Proposed() {
		add("git tilth address "+o.ID, "work on threads and checks")
	} else if o.Taken {
		add("git tilth cleanse "+o.ID, "delete the worktree and branch")
	} else if o.Tasks.Done > 0 && !o.NothingToTake {
		add("git tilth take "+o.ID, "take it into your branch")
	}
	switch {
	case failed != nil && failed.changed():
		add("git tilth done "+failed.ID+" "+o.ID, "commit your own change as the task")
	case o.Tasks.Done > 0 && failed == nil:
		add("git tilth diff "+o.ID, "show the change")
	}
}

// failedReview reports whether a task failed because its reviewer gave no verdict.
func failedReview(st *record.State, task string) bool {
	return st != nil && st.Tasks[task].Failure != nil && st.Tasks[task].Failure.Reason == record.ReviewerFailed
}

// editsHook reports whether a fix is to edit a commit hook.
func editsHook(fix string) bool { return strings.HasPrefix(fix, "${EDITOR") }

// withNote returns the command that retries a task with the user's note.
func withNote(task, id string) Command {
	return Command{"git tilth retry -m 'what to do about it' " + task + " " + id, "retry it with your note"}
}

// changed reports whether the worker of a task that is not done left a change.
func (t *ReportTask) changed() bool { return t.Aside != nil || t.Commit != "" }

// afterFailure returns the commands for a failed task in the order of a careful user. The fix of this failure comes
// first, unless the fix is to edit a commit hook.
func (t *ReportTask) afterFailure(id string) []Command {
	retry := Command{"git tilth retry " + t.ID + " " + id, "retry it (-m 'your note')"}
	switch {
	case strings.HasPrefix(t.help, "git tilth retry "):
		retry = Command{t.help, "retry it with your note"}
	case editsHook(t.help):
		retry = withNote(t.ID, id)
	}
	list := []Command{retry}
	if t.changed() {
		list = append(list, Command{"git tilth diff " + t.ID + " " + id, "show its change"})
	}
	list = append(list, Command{"git tilth skip " + t.ID + " " + id, "skip it"})
	switch {
	case editsHook(t.help):
		return append(list, Command{t.help, "edit the hook"})
	case t.help != "" && t.help != retry.Line:
		return slices.Insert(list, 0, Command{t.help, "fix the cause"})
	}
	return list
}

// Commands returns the commands, one per line, the first one after a heading, each with its purpose if there is room.
// The terminal wraps a long command, because a shortened one could not be run.
func (o Terminal) Commands(head string, list []Command) string {
	var b strings.Builder
	columns, longest := cmp.Or(o.Width, 80)-len(head)-3, 0
	for _, c := range list {
		if n := Width(c.Line); columns-n >= 10 {
			longest = max(longest, n)
		}
	}
	for _, c := range list {
		line := text.VisibleLine(c.Line)
		if room := columns - longest; room >= 10 && Width(c.Line) <= longest {
			line = fmt.Sprintf("%-*s   %s", longest, line, Fit(text.VisibleLine(c.Why), room))
		}
		fmt.Fprintln(&b, head+line)
		head = strings.Repeat(" ", len(head))
	}
	return b.String()
}
