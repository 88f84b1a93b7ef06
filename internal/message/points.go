package message

import (
	"slices"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/session"
)

// DoneAt are the tasks that have their commit at or below the one with an index, which is -1 for the seed. One that is
// done without a commit counts where it comes before the task of the point in the plan.
func (a Author) DoneAt(tasks []session.Task, commits []gitx.Commit, at, task int) (done []string) {
	for i, t := range tasks {
		c := slices.IndexFunc(commits, func(c gitx.Commit) bool { id, ok := a.Done(c); return ok && id == t.ID })
		if c >= 0 && at >= 0 && c >= at || c < 0 && i < task && t.Status == session.TaskDone {
			done = append(done, t.ID)
		}
	}
	return done
}

// BaseOf is the parent of the first commit that was made for a task, "" if there is none.
func (a Author) BaseOf(task string, commits []gitx.Commit) string {
	for _, c := range slices.Backward(commits) {
		id, ok := a.Done(c)
		if !ok {
			id, ok = a.Placeholder(c)
		}
		if ok && id == task && len(c.Parents) > 0 {
			return c.Parents[0]
		}
	}
	return ""
}
