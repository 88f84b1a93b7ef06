package lifecycle

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/lanes"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
)

// settleLanes prepares lanes for the next run: it removes unfinished lanes and lanes of tasks that are done or not run,
// and resets the session's worktree to the branch's tip.
func (x *execution) settleLanes(ctx context.Context) error {
	if x.Git.IsDryRun() || len(lanes.All(x.S, x.Common)) == 0 && !held.Exists(x.S.Path(session.LanesDir)) {
		return nil
	}
	if err := lanes.RemoveHalfMade(ctx, x.Handle); err != nil {
		return err
	}
	if x.out.Begun == "" {
		if err := x.cleanWorktree(ctx); err != nil {
			return err
		}
	}
	tasks, err := x.S.Tasks()
	if err != nil {
		return err
	}
	for _, task := range lanes.Of(x.S) {
		i := session.IndexOf(tasks, task)
		switch {
		case i >= 0 && tasks[i].Status == session.TaskDone:
			err = lanes.Remove(ctx, x.Handle, task)
		case i < 0 || tasks[i].Status == session.TaskSkipped:
			err = lanes.SetAside(ctx, x.Handle, task, x.out.Record.Tasks[task].Attempt)
		default:
			_, err = lanes.Resume(ctx, x.Handle, task, x.out.Record.Tasks[task].Attempt)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// cleanWorktree resets the worktree after a killed commit: the accepted tree is also in a lane.
func (x *execution) cleanWorktree(ctx context.Context) error {
	_, err := lanes.CleanWorktree(ctx, x.Handle, func(tree string) bool {
		for _, task := range lanes.Of(x.S) {
			if slices.Contains(x.out.Record.Tasks[task].Trees, tree) {
				return true
			}
		}
		return false
	})
	return err
}

// adoptEdits puts the statuses that the user set in prd.json manually on record. Those of done are done all the same:
// the branch has their commits.
func adoptEdits(h *held.Handle, done map[string]string) error {
	if h.Git.IsDryRun() {
		return nil
	}
	byHand, err := h.S.ByHand()
	if err != nil {
		return err
	}
	for _, task := range slices.Sorted(maps.Keys(byHand)) {
		if done[task] != "" {
			continue
		}
		status := byHand[task]
		e := &record.TaskMarked{Scope: record.Scope{TaskID: task}, Mark: status, Status: status}
		if err := h.Append(e); err != nil {
			return err
		}
	}
	return nil
}

// settleTasks rewrites prd.json and progress.txt if they differ from record and branch: done are tasks with their
// commits, retried are failed tasks that become pending with the following session_resume. The caller saves the
// checkpoint, which has the statuses that prd.json was written with.
func settleTasks(h *held.Handle, done map[string]string, retried []string) error {
	stored, err := h.S.StoredTasks()
	if err != nil {
		return err
	}
	tasks, err := h.S.Tasks()
	if err != nil {
		return err
	}
	for i := range tasks {
		switch t := &tasks[i]; {
		case done[t.ID] != "":
			t.Status = session.TaskDone
		case slices.Contains(retried, t.ID):
			t.Status = session.TaskPending
		}
	}
	same := slices.EqualFunc(stored, tasks, func(a, b session.Task) bool { return a.Status == b.Status })
	if !same || h.Checkpoint.Statuses == nil {
		if err := h.SaveTasks(tasks); err != nil {
			return err
		}
	}
	return settleProgress(h, tasks)
}

// settleProgress rewrites progress.txt where it differs from the record.
func settleProgress(h *held.Handle, tasks []session.Task) error {
	state, err := h.S.State()
	if err != nil {
		return err
	}
	var lines []string
	for _, end := range state.Progress {
		if i := session.IndexOf(tasks, end.Task); i >= 0 {
			lines = append(lines, session.ProgressLine(end.Task, end.As, tasks[i].Title))
		}
	}
	for _, t := range tasks {
		isDone := func(line string) bool { return strings.HasPrefix(line, t.ID+"\tdone\t") }
		switch {
		case t.Status != session.TaskDone:
			lines = slices.DeleteFunc(lines, isDone)
		case !slices.ContainsFunc(lines, isDone):
			lines = append(lines, session.ProgressLine(t.ID, session.TaskDone, t.Title))
		}
	}
	return h.S.SettleProgress(lines)
}

// noteCommits writes down the commits of tasks that are done and that are not on record. What a process
// that died had not written down is at most one, the last; but a person may have set a task back.
func (x *execution) noteCommits(done map[string]string) error {
	for _, t := range slices.Sorted(maps.Keys(done)) {
		if x.out.Record.Recorded(t, done[t]) {
			continue
		}
		if err := x.Append(&record.Commit{Scope: x.out.rolledForward(t), SHA: done[t]}); err != nil {
			return err
		}
	}
	return nil
}

// rolledForward is the scope of an event that a process that died did not come to write. It belongs to the iteration of
// the task's last verdict.
func (p Plan) rolledForward(task string) record.Scope {
	in := record.Scope{TaskID: task}
	if a := p.Record.Tasks[task].Attempt; a.Verdict != nil && !a.Worked {
		in = a.Verdict.Scope
	}
	in.RolledForward = true
	return in
}
