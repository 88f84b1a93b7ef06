package verify

import (
	"cmp"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/session"
)

// tasks holds prd.json and the checkpoint's status against the record. Where a process was cut short, the last change
// of a status may be missing: prd.json is written after the record.
func (c *check) tasks() {
	tasks, err := c.s.StoredTasks()
	if err != nil {
		c.differIn(session.TasksFile, 0, "%s", err)
		return
	}
	cut := c.cp.Status == session.Running || c.story.stop() == "interrupted" || c.story.stop() == "error"
	for _, t := range tasks {
		is := t.Status
		said := c.story.StatusOf(t.ID)
		late := is == session.TaskPending && cut && (said == session.TaskFailed || slices.Contains(c.story.last, t.ID))
		early := is == session.TaskFailed && said == session.TaskPending && c.cp.Status == session.Running
		if is != said && !late && !early && !slices.Contains(c.story.marking, t.ID) {
			c.differIn(session.TasksFile, 0, "%s is %s, and by the record it is %s", t.ID, is, said)
		}
	}
	for _, task := range slices.Sorted(maps.Keys(c.story.Tasks)) {
		if c.story.live(task) != "" && session.IndexOf(tasks, task) < 0 {
			c.differIn(session.TasksFile, 0, "%s is not in it, and its commit is on record", task)
		}
	}
	if ended := cmp.Or(c.story.stop(), c.story.before); c.cp.Status == session.AllDone && ended != session.AllDone {
		c.differIn(session.CheckpointFile, 0, "the status is all_done, and the record does not end so")
	}
}

// ledgers holds each task's ledger against the verdicts on record. The last one may be missing where a process died.
func (c *check) ledgers() error {
	tasks := slices.Collect(maps.Keys(c.story.ledgers))
	files, err := os.ReadDir(c.s.Path(session.LedgerDir))
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	for _, f := range files {
		if task, ok := strings.CutSuffix(f.Name(), ".jsonl"); ok && !slices.Contains(tasks, task) {
			tasks = append(tasks, task)
		}
	}
	slices.Sort(tasks)
	from, whole, err := c.lineage()
	if err != nil {
		return err
	}
	notes := slices.Clone(c.story.notes)
	for _, st := range from {
		notes = append(notes, st.notes...)
	}
	for _, task := range tasks {
		was := c.story.shared[task]
		shared := was != "" && was == c.story.live(task) // not gone back on since
		entries, err := c.s.ReadLedger(task, 0)
		if err != nil {
			return err
		}
		entries = slices.DeleteFunc(entries, func(e session.LedgerEntry) bool { // a person's note is no verdict
			if e.Note != "" && (whole || !shared) && !slices.Contains(notes, e.Note) {
				c.differIn(ledgerOf(task), 0, "a note in it is not on record")
			}
			return e.Note != ""
		})
		if !shared {
			c.ledger(task, entries)
		} else if whole {
			c.sharedLedger(task, entries, from)
		}
	}
	return nil
}

// lineage is what the records of the sessions say that a fork descends from, and whether all of them are here,
// as they were.
func (c *check) lineage() (from []*history, whole bool, err error) {
	seen := map[string]bool{}
	for id := c.story.forkedFrom; id != "" && !seen[id]; {
		st, err := c.origin(id)
		if err != nil || st == nil || slices.Contains(c.anew, id) {
			return from, false, err
		}
		seen[id] = true
		from, id = append(from, st), st.forkedFrom
	}
	return from, true, nil
}

func ledgerOf(task string) string { return filepath.Join(session.LedgerDir, task+".jsonl") }

func (c *check) ledger(task string, entries []session.LedgerEntry) {
	said := c.story.ledgers[task]
	for i, e := range entries {
		switch {
		case i >= len(said):
			c.differIn(ledgerOf(task), i+1, "no verdict on record is this one")
		case !said[i].isIn(e):
			c.differIn(ledgerOf(task), i+1, "it is not what the record says of verdict %d on %s", i+1, task)
		}
	}
	missing := len(said) - len(entries)
	if missing > 1 || missing == 1 && !c.story.Tasks[task].Attempt.Unledgered {
		c.differIn(ledgerOf(task), len(entries)+1, "%d verdicts are on record and %d here", len(said), len(entries))
	}
}

// sharedLedger holds the ledger that a fork began with against the records that it is from.
func (c *check) sharedLedger(task string, entries []session.LedgerEntry, from []*history) {
	var theirs []entry
	for _, st := range from {
		theirs = append(theirs, st.every[task]...)
	}
	all := append(theirs, c.story.every[task]...)
	for i, e := range entries {
		if !slices.ContainsFunc(all, func(said entry) bool { return said.isIn(e) }) {
			c.differIn(ledgerOf(task), i+1, "no verdict on record is this one")
		}
	}
}
