package seed

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/pattern"
)

// plan is the tasks and the context of a Markdown text.
type plan struct {
	*document
	im    *Imported
	tasks map[*block]bool // sections or items
	taken []bool          // lines that are criteria, labels, orders or, for the context, tasks
}

var (
	// taskWords begin the title of a task: "Task 3: Add a form", "Iteration 2.5", "Story: Log in".
	taskWords = pattern.New(`(?i)^[*_]*(?:(?:task|iteration|(?:user[ ]+)?story|step|feature|ticket|issue)[ \t]*#?` +
		`(?:([0-9]+(?:\.[0-9]+)*[a-z]?)(?:[ \t]*[:.)–—-]+[*_ \t]*|$)|([A-Z])[ \t]*[:.)–—-]+[*_ \t]*)|` +
		`(?:task|iteration|story)[ \t]+#?([0-9]+(?:\.[0-9]+)*)[ \t]+|(?:task|(?:user[ ]+)?story)[ \t]*(?:[:–—][ \t]*|$))`)
	// criteriaLabel matches a label above criteria, or before a criterion on the same line.
	criteriaLabel = pattern.New(`(?i)^[*_ ]*(?:acceptance(?:[ _-]*criteria)?|criteria|success criteria|AC|done when|` +
		`definition of done)[*_ ]*(?:$|:[*_ ]*(.*)$)`)
	// labelLine matches the start of a part of a description, such as "Files: a.go" or "**Estimated**: 2h".
	labelLine = pattern.New(`^[*_]*[A-Z][A-Za-z]*(?: [A-Za-z]+){0,2}[*_]*:[*_]*(?:\s|$)`)
	wholeBold = pattern.New(`^(?:\*\*[^*]+\*\*|__[^_]+__)$`)
	// metaLine matches an item of a task that is not a criterion.
	metaLine = pattern.New(`(?i)^[*_]*(?:(?:files?|paths?|estimated?|effort|size|priority|owner|assignee|status|labels?|` +
		`dependencies|notes?|refs?|references|requirements?|see|context|test plan)[*_]*:|(?:depends on|blocked by)\b)`)
	// descriptionLabel matches a label above a description.
	descriptionLabel = pattern.New(`(?i)^[*_# ]*description[*_: ]*$`)

	clause    = pattern.New(`(?i)^[*_]*(given|when|then|and|but)[*_]*\b`)
	orderLine = pattern.New(`^(?i)(?:[-*+][ \t]+)?(needs|touches):[ \t]+(.+)$`)
	// almostBox matches an item with a mark that is not one of a checkbox.
	almostBox = pattern.New(`^(?:\[[^\]0-9A-Z]? ?\]|[☐☑☒])(?:[^(\[:]|$)`)
	idWord    = pattern.New(`^#?(?:[A-Za-z]+[-_]?)?[0-9]+(?:\.[0-9]+)*$`)
)

func (im *Imported) newPlan(name, body string, first int) *plan {
	d := parseMarkdown(name, body, first)
	return &plan{document: d, im: im, tasks: map[*block]bool{}, taken: make([]bool, len(d.lines))}
}

// markdown reads a Markdown text: headings with boxes or criteria below them are tasks, else items with a box.
func (im *Imported) markdown(name, body string, first int) error {
	p := im.newPlan(name, body, first)
	p.findSections()
	im.Format = formatMarkdown
	if len(p.tasks) == 0 {
		p.findItems(p.root)
	}
	if len(p.tasks) == 0 {
		return p.noTasks()
	}
	var read []entry
	p.root.within(func(b *block) bool {
		switch {
		case p.tasks[b] && b.kind == section:
			read = append(read, p.sectionTask(b))
		case p.tasks[b]:
			read = append(read, p.itemTasks(b)...)
		}
		return !p.tasks[b]
	})
	if err := im.add(read, false); err != nil {
		return err
	}
	p.context()
	return nil
}

// noTasks returns the error for a text without tasks, with the line of its plain list if it has one.
func (p *plan) noTasks() error {
	line, msg := 0, "it has no checklist items"
	p.root.within(func(b *block) bool {
		if b.kind == item && line == 0 {
			line = p.first + b.begin
			msg += ": its list has no checkboxes, and only items with a checkbox are tasks"
		}
		return true
	})
	const fix = "begin each task with - [ ] (or 1. [ ]) and put its criteria as bullets below it; or " + formatsHint
	return importError(p.name, line, fix, "%s", msg)
}

// said returns the text of a heading, of an item's first paragraph, or of another block.
func (p *plan) said(b *block) string {
	if b.kind == other {
		return strings.TrimSpace(p.text(b))
	}
	return b.head
}

// labels reports whether a block is the label of criteria, alone or before the first of them.
func (p *plan) labels(b *block) bool { return criteriaLabel().MatchString(p.said(b)) }

// evidence reports whether there are boxes below a block, boxes without a label of criteria, labelled criteria, and
// boxes with ids.
func (p *plan) evidence(b *block) (boxes, free, labelled, coded bool) {
	label := -1 // level of the criteria heading above c; 0 for a label without a heading, -1 for none
	b.within(func(c *block) bool {
		switch {
		case c != b && p.labels(c):
			labelled = true
			if label = 0; c.kind == section {
				label = c.level
			}
		case c.kind == section && (c.level <= label || label == 0):
			label = -1
		}
		if c.kind == item && c.box != 0 {
			boxes, free = true, free || label < 0
			coded = coded || c.id != "" && c.parent.kind != item
		}
		return true
	})
	return boxes, free, labelled, coded
}

// findSections finds the headings that are tasks: those with a word or an id of a task, with a number, or with
// labelled criteria. If one heading of a kind has boxes or criteria, all of its kind are tasks. Numbered headings
// above numbered items are phases. A heading above another task is not a task.
func (p *plan) findSections() {
	kinds, real := map[*block]string{}, map[string]bool{}
	var classify func(b *block) string
	classify = func(b *block) (found string) { // found is the kind of the tasks at b or below it
		if b.kind != section || p.labels(b) {
			return ""
		}
		for _, c := range b.parts {
			found = max(found, classify(c))
		}
		boxes, free, labelled, coded := p.evidence(b)
		switch {
		case b == p.root:
		case b.level > 1 && (taskWords().MatchString(b.head) || isCode(b.id) || b.box != 0):
			kinds[b] = "task"
		case b.level > 1 && b.id != "" && !(coded && boxes) && !p.im.phases:
			kinds[b] = "numbered " + strings.Repeat("#", b.level)
		case labelled && !free:
			kinds[b] = "labelled"
		}
		if above := found == "" || kinds[b] == "task" && strings.HasPrefix(found, "numbered"); above &&
			kinds[b] != "" && (boxes || labelled || b.box != 0) {
			found = kinds[b]
			real[found] = true
		}
		return found
	}
	classify(p.root)
	for b, kind := range kinds {
		// If headings with a word or an id are tasks, a heading with only a number is not a task.
		if !real[kind] || real["task"] && strings.HasPrefix(kind, "numbered") {
			delete(kinds, b)
			continue
		}
		p.tasks[b] = true
	}
	for b := range kinds {
		for b = b.parent; b != nil; b = b.parent {
			delete(p.tasks, b)
		}
	}
}

// isCode reports whether an id is more than a number.
func isCode(id string) bool { return strings.ContainsFunc(id, isLetter) }

// findItems finds the items that are tasks: the topmost ones with a box.
func (p *plan) findItems(b *block) {
	b.within(func(c *block) bool {
		if c.kind == item && c.box != 0 {
			p.tasks[c] = true
		}
		return !p.tasks[c]
	})
}

// begin returns the task of a block without its text.
func (p *plan) begin(b *block) entry {
	e := entry{file: p.name, line: p.first + b.begin, phase: b.phase(), source: b.id, title: b.title,
		number: titleOf(strings.TrimSpace(p.lines[b.begin])).id, parallel: b.parallel}
	if b.box == 'x' {
		e.left = leftDone
	} else if parts := strings.Split(b.title, "~~"); len(parts) == 3 && parts[0]+parts[2] == "" {
		e.left = "struck out"
	} else if b.optional {
		e.left = leftOptional
	}
	return e
}

// sectionTask returns the task of a heading. It is done if all its boxes are.
func (p *plan) sectionTask(b *block) entry {
	e := p.begin(b)
	done, open := false, false
	b.within(func(c *block) bool {
		counts := c.kind == item && c.box != 0 && !c.optional
		done, open = done || counts && c.box == 'x', open || counts && c.box != 'x'
		return true
	})
	if done && !open {
		e.left = leftDone
	}
	e.takeCode()
	p.fill(&e, b)
	return e
}

// itemTasks returns the task of an item and, if it is done, tasks of its open parts.
func (p *plan) itemTasks(b *block) (out []entry) {
	e := p.begin(b)
	head, lead := p.orders(&e, b.lines, b.begin), []string{}
	for i := 1; i < len(head); i++ { // a title in bold, or a label, ends the title
		if i == 1 && wholeBold().MatchString(head[0]) || labelLine().MatchString(head[i]) || p.takeLabel(&e, head[i]) {
			head, lead = head[:i], head[i:]
		}
	}
	lead = slices.DeleteFunc(lead, func(l string) bool { return p.takeLabel(&e, l) })
	e.title = titleOf(strings.TrimSpace(strings.Join(head, " "))).title
	e.takeCode()
	p.fill(&e, b)
	e.body = strings.TrimSpace(strings.Join(lead, "\n") + "\n\n" + e.body)
	var above []string // the heading and the items without a box that the item is below
	for up := b.parent; up.kind == item; up = up.parent {
		above = append(above, up.head)
	}
	if s := b.section(); s != nil && (s.level > 1 || s != p.root.parts[0]) {
		above = append(above, s.head)
	}
	if slices.Reverse(above); len(above) > 0 {
		e.body = strings.TrimSpace("Section: " + strings.Join(above, " / ") + "\n\n" + e.body)
	}
	out = []entry{e}
	b.within(func(c *block) bool {
		if e.left != leftDone || c.kind != item || c.box == 0 || c.box == 'x' || c.star {
			return e.left == leftDone
		}
		part := p.begin(c)
		part.title = e.title + ": " + part.title
		p.fill(&part, c)
		out = append(out, part)
		return false
	})
	return out
}

// section returns the nearest heading above a block, nil for none.
func (b *block) section() *block {
	for b = b.parent; b != nil && (b.kind != section || b.level == 0); b = b.parent {
	}
	return b
}

var phaseWord = pattern.New(`(?i)\bphase\b`)

// phase returns the line of the nearest heading above a block that names a phase, else of the nearest heading.
func (b *block) phase() int {
	phase := 0
	for s := b.section(); s != nil; s = s.section() {
		if phaseWord().MatchString(s.head) {
			return s.begin
		}
		phase = cmp.Or(phase, s.begin)
	}
	return phase
}

// context makes the text outside of tasks the seed's notes, by section. A first heading is the title. It reports boxes
// that belong to no task.
func (p *plan) context() {
	title, notes := "", []string{}
	for b := range p.tasks {
		p.take(b.begin, b.end)
	}
	p.root.within(func(b *block) bool {
		switch {
		case p.tasks[b]:
			return false
		case b.kind == item && (b.box != 0 || almostBox().MatchString(b.head)):
			p.im.drop("%s: %s: a checkbox outside of any task, or an unknown mark; it is context", p.begin(b).at(),
				quoteShort(b.head))
		case b.kind == section:
			if b.level == 1 && title == "" {
				title = b.head
			}
			end := b.end
			if i := slices.IndexFunc(b.parts, func(c *block) bool { return c.kind == section }); i >= 0 {
				end = b.parts[i].begin
			}
			note := p.kept(p.below(b), end)
			if note != "" && b != p.root && b.head != title {
				note = b.head + "\n\n" + note
			}
			notes = append(notes, note)
		}
		return true
	})
	p.im.Meta.TLDR = cmp.Or(p.im.Meta.TLDR, title)
	p.im.note(filepath.Base(p.name), notes...)
}

// dedent takes the common indentation off lines.
func dedent(lines []string) string {
	indent := -1
	for _, l := range lines {
		if t := strings.TrimLeft(l, " \t"); t != "" && (indent < 0 || len(l)-len(t) < indent) {
			indent = len(l) - len(t)
		}
	}
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = l[min(max(indent, 0), len(l)):]
	}
	return strings.Join(out, "\n")
}
