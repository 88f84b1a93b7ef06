package lifecycle

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
)

// takeOver puts the statuses that a person set in prd.json by hand, or another tool, on record. Those of done are done
// all the same: the branch has their commits.
func (h *Handle) takeOver(done map[string]string) error {
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
		if err := h.append(takenOver(task, byHand[task])); err != nil {
			return err
		}
	}
	h.Checkpoint.TakenOver = h.Checkpoint.GitCommonDir == ""
	return nil
}

func takenOver(task, status string) *record.TaskMarked {
	return &record.TaskMarked{Scope: record.Scope{TaskID: task}, Mark: status, Status: status}
}

// settleTasks writes prd.json and progress.txt anew where they are not what record and branch say: done are tasks with
// their commits, retried are failed ones that go back to pending with the session_resume to come.
func (h *Handle) settleTasks(done map[string]string, retried []string) error {
	if h.Git.IsDryRun() {
		return nil
	}
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
		if err := errors.Join(h.SaveTasks(tasks), h.Save()); err != nil {
			return err
		}
	}
	return h.settleProgress(tasks)
}

// SaveTasks replaces prd.json and notes the statuses in the checkpoint, which is saved after it. A process that dies
// between the two leaves a file that says what the record says.
func (h *Handle) SaveTasks(tasks []session.Task) error {
	if err := h.S.SaveTasks(tasks); err != nil {
		return err
	}
	h.noteStatuses(tasks)
	return nil
}

func (h *Handle) noteStatuses(tasks []session.Task) {
	h.Checkpoint.Statuses = map[string]string{}
	for _, t := range tasks {
		h.Checkpoint.Statuses[t.ID] = t.Status
	}
}

// settleProgress makes progress.txt agree with the tasks: it comes after prd.json, so that a process that died may not
// have written the line of a task that is done.
func (h *Handle) settleProgress(tasks []session.Task) error {
	lines, err := h.S.ProgressTail(0)
	if err != nil {
		return err
	}
	open := func(line string) bool {
		return slices.ContainsFunc(tasks, func(t session.Task) bool {
			return t.Status != session.TaskDone && strings.HasPrefix(line, t.ID+"\tdone\t")
		})
	}
	if slices.ContainsFunc(lines, open) {
		lines = slices.DeleteFunc(lines, open)
		text := strings.Join(append(lines, ""), "\n")
		if err := jsonl.WriteFile(h.S.Path(session.ProgressFile), []byte(text)); err != nil {
			return err
		}
	}
	for _, t := range tasks {
		isDone := func(line string) bool { return strings.HasPrefix(line, t.ID+"\tdone\t") }
		if t.Status != session.TaskDone || slices.ContainsFunc(lines, isDone) {
			continue
		}
		if err := h.S.AppendProgress(t.ID, "done", t.Title); err != nil {
			return err
		}
	}
	return nil
}

// settleTotals makes the checkpoint's totals those of the record: a run that died did not come to write its checkpoint.
// What another tool has counted, and its record does not say, stays.
func (h *Handle) settleTotals() error {
	sum, err := h.S.Summarize()
	if err != nil {
		return err
	}
	c, total := h.Checkpoint, sum.Tokens.Total
	same := total == c.TokensUsed && sum.Cost == c.Usage.Sum().Cost
	if foreign := c.GitCommonDir == ""; same || foreign && total <= c.TokensUsed {
		return nil
	}
	c.TokensUsed, c.Usage = total, sum.Usage
	return nil
}

// noteCommits writes down the commits of tasks that are done and that are not on record. What a process
// that died had not written down is at most one, the last; but a person may have set a task back.
func (x *execution) noteCommits(done map[string]string) error {
	for _, t := range slices.Sorted(maps.Keys(done)) {
		if x.out.Record.Recorded(t, done[t]) {
			continue
		}
		if err := x.append(&record.Commit{Scope: x.out.rolledForward(t), SHA: done[t]}); err != nil {
			return err
		}
	}
	return nil
}

// rolledForward is the scope of an event that a process that died did not come to write. It belongs to the iteration of
// the task's last verdict.
func (p Plan) rolledForward(task string) record.Scope {
	in := record.Scope{TaskID: task}
	if a := p.Record.Tasks[task].Attempt; a.Verdict != nil && !a.Worked { // a foreign record may have none
		in = a.Verdict.Scope
	}
	in.RolledForward = true
	return in
}
