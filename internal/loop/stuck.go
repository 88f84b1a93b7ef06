package loop

import (
	"fmt"
	"strings"

	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/text"
)

// stuckAfter is the number of equal objections in a row that fail a task.
const stuckAfter = 3

// streak is an objection or failure with the number of times in a row.
type streak struct {
	what  string
	times int
}

// countObjection counts an objection: a line for people, its words, and its subject, which is its kind and, if the same
// words can apply to another tree, the tree. After three equal objections in a row, the error ends the task. help
// suggests a command.
func (a *attempt) countObjection(line, about, words string, help func() string) error {
	a.objection = text.Clip(text.OneLine(a.run.Redact.String(line)), 300)
	if what := about + "\n" + text.Gist(words); what != a.lastObjection.what {
		a.lastObjection = streak{what: what}
	}
	if a.lastObjection.times++; a.lastObjection.times < stuckAfter {
		return nil
	}
	return Stop{Reason: record.Stuck, Detail: fmt.Sprintf("%d times in a row", stuckAfter), Objection: a.objection,
		Hint: help()}
}

// failsAgain ends the task if the worker's tools failed the same way in three turns in a row.
func (a *attempt) failsAgain(t turn) error {
	if what := text.Gist(t.failing); t.failing == "" || what != a.failing.what {
		a.failing = streak{what: what}
	}
	if a.failing.times++; t.failing == "" || a.failing.times < stuckAfter {
		return nil
	}
	call, said, _ := strings.Cut(strings.TrimSpace(t.failing), "\n")
	a.objection = text.Clip(text.OneLine(a.run.Redact.String(call+": "+text.FailingLine(said))), 300)
	return Stop{Reason: record.Stuck, Detail: fmt.Sprintf("%d times in a row", stuckAfter), Objection: a.objection,
		Hint: a.retryHint()}
}

// retryHint returns the command that retries the task with a note.
func (a *attempt) retryHint() string {
	return "git tilth retry -m 'what to do about it' " + a.task.ID + " " + a.run.S.ID
}
