package seed

import (
	"strconv"
	"strings"

	"github.com/git-tilth/git-tilth/internal/pattern"
)

// numberedTask is a heading such as "Task 3: Add a login form" or "Iteration 2.5: Clean up".
var numberedTask = pattern.New(
	`(?i)^(?:task|iteration)[ \t]+([0-9][0-9a-z.]{0,8})[ \t]*(?:[:.)–—-]+[ \t]*|[ \t]|$)(.*)$`,
)

// taskHeading reads the heading of a task, by its number or by its id.
func (l mdLine) taskHeading() (id, title string, ok bool) {
	if l.heading < 2 {
		return "", "", false
	}
	if id, title = splitID(l.text); id != "" {
		return id, title, true
	}
	m := numberedTask().FindStringSubmatch(l.text)
	if m == nil {
		return "", "", false
	}
	if n, err := strconv.Atoi(m[1]); err == nil && n > 0 {
		id = taskID(n)
	}
	return id, strings.TrimSpace(m[2]), true
}

// hasTaskHeadings reports whether a checkbox stands below the heading of a task.
func hasTaskHeadings(lines []mdLine) bool {
	level := 0
	for _, l := range lines {
		_, _, isTask := l.taskHeading()
		switch {
		case isTask:
			level = l.heading
		case l.heading > 0 && l.heading <= level:
			level = 0
		case l.box && level > 0:
			return true
		}
	}
	return false
}

// addBelowHeading adds checkboxes, with the text indented below them, as criteria. A task with only checked boxes is
// done.
func (it *item) addBelowHeading(l mdLine) {
	switch {
	case it.orders(l):
	case l.box:
		it.boxes = append(it.boxes, l.n)
		if !l.checked {
			it.open++
		}
		it.checked = it.open == 0
		it.criteria.add(l)
	case len(it.boxes) > 0 && !l.fenced && l.text != "" && l.indent > it.criteria.level+1:
		it.criteria.add(l)
	default:
		it.description = append(it.description, strings.TrimRight(l.raw, " \t"))
	}
}
