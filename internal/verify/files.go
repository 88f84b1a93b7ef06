package verify

import (
	"maps"
	"path/filepath"
	"slices"

	"github.com/git-tilth/git-tilth/internal/session"
)

// tasks compares prd.json with the record. Where a process was cut short, the last change of a status may be missing:
// prd.json is written after the record.
func (c *check) tasks() []session.Task {
	tasks, err := c.s.StoredTasks()
	if err != nil {
		c.differIn(session.TasksFile, 0, "%s", err)
		return nil
	}
	for _, t := range tasks {
		said := c.story.StatusOf(t.ID)
		late := c.story.cut() && (t.Status == session.TaskPending || t.Status == session.TaskFailed)
		if t.Status != said && !late {
			c.differIn(session.TasksFile, 0, "%s is %s, and by the record it is %s", t.ID, t.Status, said)
		}
	}
	for _, task := range slices.Sorted(maps.Keys(c.story.Tasks)) {
		if c.story.live(task) != "" && session.IndexOf(tasks, task) < 0 {
			c.differIn(session.TasksFile, 0, "%s is not in it, and its commit is on record", task)
		}
	}
	return tasks
}

// ledgers compares the ledgers of the plan's tasks with the record. The last entry may be missing where a process died.
// Of a ledger that a fork began with, the record of another session says more.
func (c *check) ledgers(plan []session.Task) error {
	for _, t := range plan {
		of := c.story.Tasks[t.ID]
		if of.Shared {
			continue
		}
		said, err := c.s.RecordedLedger(of.Ledger)
		if err != nil {
			return err
		}
		entries, err := c.s.ReadLedger(t.ID, 0)
		if err != nil {
			return err
		}
		c.ledger(filepath.Join(session.LedgerDir, t.ID+".jsonl"), said, entries, of.Attempt.Unledgered)
	}
	return nil
}

// ledger compares the entries of a ledger with the record. With mayMiss the ledger may lack the last one.
func (c *check) ledger(file string, said, entries []session.LedgerEntry, mayMiss bool) {
	for i, e := range entries {
		switch {
		case i >= len(said):
			c.differIn(file, i+1, "nothing on record says this")
		case said[i].Says() != e.Says():
			c.differIn(file, i+1, "it is not what the record says")
		}
	}
	if missing := len(said) - len(entries); missing > 1 || missing == 1 && !mayMiss {
		c.differIn(file, len(entries)+1, "%d entries are on record and %d here", len(said), len(entries))
	}
}
