package seed

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/git-tilth/git-tilth/internal/pattern"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
	"github.com/git-tilth/git-tilth/internal/validator"
)

// The size limits of a seed: far above any seed that a user can review, and far below the limits of a prompt or disk.
const (
	maxTasks       = 200
	maxCriteria    = 50
	maxLabelChars  = 40
	maxTitleChars  = 200
	maxTextBytes   = 64 << 10 // a description, a criterion, the tldr, a note
	maxFileBytes   = 1 << 20
	maxTotalBytes  = 5 << 20
	maxPathBytes   = 500
	testPathAdvice = "a base name with the task's number between separators, like test_t001_add.py, " +
		"t001_add_test.go or t001-add.test.ts"
)

// Rules are the parts of the check that depend on a bundle's source and target.
type Rules struct {
	// TestsRequired refuses a task without a test: on for an interview, off for an import, where tests are optional.
	TestsRequired bool
	Root          string   // the worktree, "" before there is one
	Tracked       []string // paths that git tracks there
	Ignored       []string // ignored test paths, which the seed commit would lack
}

// validID checks an id's form, and a length that fits into file names.
func validID(id string) bool { return session.ValidTaskID(id) && len(id) <= 20 }

// Check returns all rules that a bundle breaks; nil means that it may be installed.
func Check(b *Bundle, rules Rules) []Violation {
	c := &checker{bundle: b, violations: slices.Clone(b.faults)}
	c.tasks()
	c.notes()
	c.files(rules)
	if len(b.Tasks) <= maxTasks { // else only some of the tasks were read
		c.pairing(rules)
	}
	return c.violations
}

type checker struct {
	violations
	bundle *Bundle
}

func (c *checker) tasks() {
	tasks := c.bundle.Tasks
	if len(tasks) == 0 && len(c.bundle.faults) == 0 {
		c.add("no-tasks", "the seed has no tasks")
	}
	if len(tasks) > maxTasks {
		c.add("too-many-tasks", "the seed has %d tasks; at most %d are allowed: split it", len(tasks), maxTasks)
		return
	}
	seen := map[string]bool{}
	for i, t := range tasks {
		c.task(i)
		if t.ID != "" && seen[t.ID] {
			c.add("duplicate", "the id %s is given to two tasks", quoteShort(t.ID))
		}
		seen[t.ID] = true
	}
}

// badNeeds lists the faults in the needs of the i-th task: a need is the id of an earlier task.
func badNeeds(tasks []session.Task, i int) (found violations) {
	for n, id := range tasks[i].Needs {
		at := session.IndexOf(tasks, id)
		problem := ""
		switch {
		case id == tasks[i].ID:
			problem = "itself"
		case at < 0 || at > i:
			problem = quoteShort(id) + ", which is not an earlier task of this list"
		case slices.Contains(tasks[i].Needs[:n], id):
			problem = id + " twice"
		default:
			continue
		}
		found.add("needs", "%s needs %s", quoteShort(tasks[i].ID), problem)
	}
	return found
}

// badTouches lists the faults in the patterns of a task.
func badTouches(t session.Task) (found violations) {
	for _, p := range t.Touches {
		if _, err := pattern.NewPaths(p); err != nil {
			found.add("touches", "%s touches %s, which %s; write each as a line of a .gitignore, like src/parser/",
				quoteShort(t.ID), quoteShort(p), err)
		}
	}
	return found
}

// task checks the i-th task.
func (c *checker) task(i int) {
	t := c.bundle.Tasks[i]
	c.put(badNeeds(c.bundle.Tasks, i))
	c.put(badTouches(t))
	name := t.ID
	switch {
	case t.ID == "":
		name = "the task " + quoteShort(t.Title)
		c.add("id", "%s has no id: use T- and 3 or more digits, like T-001", name)
	case !validID(t.ID):
		name = quoteShort(t.ID)
		c.add("id", "the id %s is not T- and 3 or more digits, like T-001", name)
	}
	if t.Status != "" && t.Status != session.TaskPending {
		c.add("status", "%s has the status %s; only the harness writes it: leave it out", name, quoteShort(t.Status))
	}
	// A title becomes a commit subject and a column of progress.txt, which is separated by tabs.
	switch {
	case strings.TrimSpace(t.Title) == "":
		c.add("title", "%s has no title", name)
	case strings.ContainsFunc(t.Title, unicode.IsControl):
		c.add("title", "the title of %s is not one plain line: it holds a control character", name)
	case utf8.RuneCountInString(t.Title) > maxTitleChars:
		c.add("title", "the title of %s is longer than %d characters: put the rest into the description", name,
			maxTitleChars)
	}
	for _, l := range [][2]string{{"type", t.Type}, {"scope", t.Scope}} {
		if strings.ContainsFunc(l[1], unicode.IsControl) || utf8.RuneCountInString(l[1]) > maxLabelChars {
			c.add(l[0], "the %s of %s is not one plain line of at most %d characters: it is for a commit's subject",
				l[0], name, maxLabelChars)
		}
	}
	c.text("the description of "+name, t.Description, maxTextBytes)
	criteria := t.AcceptanceCriteria
	if len(criteria) == 0 {
		c.add("criteria", "%s has no acceptance criteria: give at least one", name)
	}
	if len(criteria) > maxCriteria {
		c.add("criteria", "%s has %d acceptance criteria; at most %d are allowed: split the task", name, len(criteria),
			maxCriteria)
		return
	}
	for i, cr := range criteria {
		what := fmt.Sprintf("acceptance criterion %d of %s", i+1, name)
		if strings.TrimSpace(cr) == "" {
			c.add("criteria", "%s is empty", what)
		}
		c.text(what, cr, maxTextBytes)
	}
}

func (c *checker) notes() {
	m := c.bundle.Meta
	for _, l := range slices.Concat([]string{m.TLDR}, m.OpenQuestions, m.Blockers, m.ScopeNotes) {
		c.text("a text of tldr, open_questions, blockers or scope_notes", l, maxTextBytes)
	}
}

// text checks free text for JSON files and prompts, and reports whether it is valid.
func (c *checker) text(what, s string, most int) bool {
	switch {
	case len(s) > most:
		c.add("size", "%s is %s; at most %s are allowed", what, kilobytes(len(s)), kilobytes(most))
	case strings.ContainsRune(s, 0):
		c.add("nul", "%s holds a NUL character", what)
	default:
		return true
	}
	return false
}

func (c *checker) files(rules Rules) {
	paths := c.bundle.testPaths()
	total := 0
	for _, p := range paths {
		content := c.bundle.TestFiles[p]
		total += len(content)
		what := "the test file " + quoteShort(p)
		if c.text(what, content, maxFileBytes) && strings.TrimSpace(content) == "" {
			c.add("empty-test", "%s is empty: it would check nothing", what)
		}
		c.put(c.place(p, rules))
	}
	if total > maxTotalBytes {
		c.add("size", "the test files are %s together; at most %s are allowed", kilobytes(total),
			kilobytes(maxTotalBytes))
	}
}

// pairing matches tasks and tests by name.
func (c *checker) pairing(rules Rules) {
	paths := c.bundle.testPaths()
	for _, p := range paths {
		id, ok := taskOf(p)
		switch {
		case !ok:
			c.add("test-without-task", "the test file %s does not name its task: use %s", quoteShort(p), testPathAdvice)
		case session.IndexOf(c.bundle.Tasks, id) < 0:
			c.add("test-without-task", "the test file %s is named for %s, which is not a task of this seed",
				quoteShort(p), id)
		}
	}
	for _, t := range c.bundle.Tasks {
		if rules.TestsRequired && t.ID != "" && len(validator.AcceptanceTests(paths, t.ID)) == 0 {
			c.add("task-without-test", "%s has no test file: add one named by its task: %s", quoteShort(t.ID),
				testPathAdvice)
		}
	}
}

// quoteShort quotes untrusted text for a message and keeps it short.
func quoteShort(s string) string { return fmt.Sprintf("%q", text.Clip(s, 120)) }

// kilobytes formats a size.
func kilobytes(n int) string { return fmt.Sprintf("%d KB", n>>10) }
