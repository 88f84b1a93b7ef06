package seed

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/validator"
)

// EditPlan checks a prd.json that the user has edited, by the rules of a bundle and for fields that only the harness
// may change. old is the plan before the edit. files are the paths of the seed's test files. An edit cannot change the
// test files, so a task with a test may not be removed, and if every task has a test, a new task is refused. The
// returned tasks keep unknown fields. After a run, done are the finished tasks, which the edited text does not list.
// They come before the other tasks, and a new task needs no test.
//
// The violations are for the user. If there are any, the caller must not save the plan. The error says that old cannot
// be read.
func EditPlan(old, edited []byte, files []string, done []session.Task) ([]session.Task, []Violation, error) {
	before, err := session.ParseTasks(old)
	if err != nil {
		return nil, nil, fmt.Errorf("the plan before the edit: %w", err)
	}
	edited, err = readText(session.TasksFile, bytes.NewReader(edited))
	if err != nil {
		return nil, one("text", "%s", err), nil
	}
	entries, err := readJSON(session.TasksFile, edited, 1)
	tasks, badTask := session.ParseTasks(edited)
	if err = cmp.Or(err, badTask); err != nil {
		return nil, one("shape", "%s", err), nil
	}
	before = slices.Concat(done, before)
	b := &Bundle{Tasks: slices.Concat(done, tasks)}
	for i := range done {
		b.Tasks[i].Needs = nil // a done task needs nothing
	}
	for _, e := range entries { // a reader keeps only one of two keys, perhaps not the edited one
		b.checkKeys(fmt.Sprintf("the entry in line %d", e.line), fieldsOf(e.value, e.line), nil)
	}
	for i, t := range b.Tasks { // only a changed status is a fault
		if at := session.IndexOf(before, t.ID); at >= 0 && before[at].Status == t.Status {
			b.Tasks[i].Status = session.TaskPending
		}
	}
	c := &checker{bundle: b, violations: b.faults}
	c.tasks()
	if len(c.violations) == 0 {
		c.editedPairing(before, files, done == nil)
	}
	if len(c.violations) > 0 {
		return nil, c.violations, nil
	}
	return slices.Concat(done, tasks), nil, nil
}

// editedPairing compares the edited tasks with the seed's tests, which an edit neither adds nor removes.
func (c *checker) editedPairing(before []session.Task, files []string, paired bool) {
	allTested := paired && len(before) > 0
	for _, t := range before {
		tests := validator.AcceptanceTests(files, t.ID)
		allTested = allTested && len(tests) > 0
		stays := session.IndexOf(c.bundle.Tasks, t.ID) >= 0
		if !stays && len(tests) > 0 {
			c.add("test-without-task", "%s has the acceptance test %s in the seed and cannot be removed: "+
				"keep it; git tilth skip %s leaves it out", quoteShort(t.ID), quoteShort(tests[0]), t.ID)
		}
	}
	for _, t := range c.bundle.Tasks {
		if allTested && len(validator.AcceptanceTests(files, t.ID)) == 0 {
			c.add("task-without-test", "%s is new and has no acceptance test in the seed, unlike every other task: "+
				"leave it out, or reset the session and prepare it again", quoteShort(t.ID))
		}
	}
}
