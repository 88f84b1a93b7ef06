package lifecycle

import (
	"context"
	"maps"
	"slices"

	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
)

// settleLanes prepares lanes for the next run: it removes unfinished lanes and lanes of tasks that are done or not run,
// and resets the session's worktree to the branch's tip.
func (x *execution) settleLanes(ctx context.Context) error {
	if x.Git.IsDryRun() || len(held.AllLanes(x.S, x.Common)) == 0 && !held.Exists(x.S.Path(session.LanesDir)) {
		return nil
	}
	if err := held.RemoveHalfLanes(ctx, x.Handle); err != nil {
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
	for _, task := range held.Lanes(x.S) {
		i := session.IndexOf(tasks, task)
		switch {
		case i >= 0 && tasks[i].Status == session.TaskDone:
			err = held.RemoveLane(ctx, x.Handle, task)
		case i < 0 || tasks[i].Status == session.TaskSkipped:
			err = held.StashLane(ctx, x.Handle, task, x.out.Record.Tasks[task].Attempt)
		default:
			_, err = held.ResumeLane(ctx, x.Handle, task, x.out.Record.Tasks[task].Attempt)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// cleanWorktree resets the worktree after a killed commit: the accepted tree is also in a lane.
func (x *execution) cleanWorktree(ctx context.Context) error {
	_, err := held.CleanWorktree(ctx, x.Handle, func(tree string) bool {
		for _, task := range held.Lanes(x.S) {
			if slices.Contains(x.out.Record.Tasks[task].Trees, tree) {
				return true
			}
		}
		return false
	})
	return err
}

// adoptEdits records the statuses that the user set in prd.json. Finished tasks stay done, because the branch has their
// commits.
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

// noteCommits records unrecorded commits of finished tasks. A dead process left at most one, the last; more are
// possible if the user reset the status of a task.
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

// rolledForward returns the scope of an event that a dead process did not write. It belongs to the iteration of the
// task's last verdict.
func (p Plan) rolledForward(task string) record.Scope {
	in := record.Scope{TaskID: task}
	if a := p.Record.Tasks[task].Attempt; a.Verdict != nil && !a.Worked {
		in = a.Verdict.Scope
	}
	in.RolledForward = true
	return in
}

// settleLedgers rewrites the ledgers that differ from the record, and completes a ledger after a kill between the
// verdict and its line. The state on disk after each step: the ledger; then ledger_appended or log_repaired.
func settleLedgers(h *held.Handle, p Plan) error {
	state, err := h.S.State()
	if err != nil {
		return err
	}
	tasks, err := h.S.StoredTasks()
	if err != nil {
		return err
	}
	for _, t := range tasks {
		of := state.Tasks[t.ID]
		changed, err := h.S.WriteLedger(t.ID, of)
		switch {
		case err != nil:
			return err
		case of.Attempt.Unledgered:
			appended := held.LedgerAppended(of.Attempt.Verdict)
			appended.Scope = p.rolledForward(t.ID)
			err = h.Record.Append(appended)
		case changed:
			err = h.Append(&record.LogRepaired{File: session.LedgerDir + "/" + t.ID + ".jsonl",
				Why: "did not match the verdicts on record", Done: "rewritten"})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// compareSettings lists the settings that changed since the last start, sorted by name. A prepared session has no last
// start.
func (o *Outcome) compareSettings(now map[string]record.Setting) {
	noted := o.Record.Settings
	if o.Fresh || now == nil || noted == nil {
		return
	}
	all := maps.Clone(noted)
	maps.Copy(all, now)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if before, after := noted[name], now[name]; before.Value != after.Value {
			o.SettingsChanged = append(o.SettingsChanged, record.SettingChange{
				Name: name, Before: before.Value, After: after.Value, Origin: after.Origin,
			})
		}
	}
}
