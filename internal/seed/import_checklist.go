package seed

import (
	"cmp"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/pattern"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
)

// checklist reads markdown in which each unchecked item of the outermost list is a task and the bullets below it
// are its criteria; or, where checkboxes stand below headings like "### Task 1: title", each heading is a task and the
// checkboxes are its criteria. Other text below a task is its description, text before the first one the overview.
func (im *Imported) checklist(name string, data []byte) error {
	p, err := im.readChecklist(name, string(data))
	if err != nil {
		return err
	}
	if err := p.tasks(); err != nil {
		return err
	}
	things := "item"
	if p.headings {
		things = "task"
	}
	im.Overview = cmp.Or(im.Overview, strings.TrimSpace(strings.Join(p.overview, "\n")))
	im.recognise("%s with %s to do", im.Format, text.Plural(len(im.Tasks), things))
	if len(p.plain) > 0 {
		which := p.plain[0]
		if n := len(p.plain); n > 1 {
			which = text.Plural(n, "task")
		}
		im.recognise("%s without criteria below: the title is the criterion", which)
	}
	return nil
}

// readChecklist reads the items, those that are done among them.
func (im *Imported) readChecklist(name, data string) (*checklist, error) {
	_, body, first, err := splitFrontmatter(name, data)
	if err != nil {
		return nil, err
	}
	lines := scanMarkdown(body, first)
	p := &checklist{name: name, im: im, ids: newIDs(), headings: hasTaskHeadings(lines)}
	im.Boxes, im.Format = true, formatChecklist
	if p.headings {
		im.Format = formatHeadings
	}
	for _, l := range lines {
		p.line(l)
	}
	p.endItem()
	if len(p.items) == 0 {
		return nil, noItems(name, lines)
	}
	return p, nil
}

// noItems returns the error for a text without tasks, with the line of its plain list if it has one.
func noItems(name string, lines []mdLine) error {
	line, msg := 0, "it has no checklist items"
	if i := slices.IndexFunc(lines, func(l mdLine) bool { return l.bullet }); i >= 0 {
		line = lines[i].n
		msg += ": its list is a plain one, and only items with a checkbox are taken as tasks"
	}
	const fix = "begin each task with - [ ] (or 1. [ ]) and put its criteria as bullets below it; or " + formatsHint
	return importError(name, line, fix, "%s", msg)
}

type checklist struct {
	name     string
	im       *Imported
	ids      *ids
	headings bool     // tasks are headings
	plain    []string // tasks without criteria of their own
	overview []string
	section  string
	items    []item
	at       *item
}

// item is one entry of the checklist while it is being read.
type item struct {
	line, indent int
	id, title    string // the id that it names, or ""
	section      string
	description  []string
	criteria     criteriaList
	checked      bool
	needs        []string
	touches      []string

	level int   // of its heading, 0 for an item of a list
	boxes []int // lines of its own checkbox, or of those below its heading
	open  int   // how many of these are not checked
}

func (p *checklist) line(l mdLine) {
	begun := p.begins(l)
	switch {
	case begun != nil:
		p.endItem()
		p.at = begun
	case l.heading > 0 && (p.at == nil || !p.headings || l.heading <= p.at.level):
		p.endItem()
		p.heading(l)
	case p.at == nil:
		p.outside(l)
	case p.headings:
		p.at.addBelowHeading(l)
	case l.bullet && l.indent <= p.at.indent+1:
		p.endItem()
		p.im.drop("line %d: %s: it has no checkbox", l.n, quoteShort(l.text))
	default:
		p.at.add(l)
	}
}

// begins is the task that a line begins, nil for none.
func (p *checklist) begins(l mdLine) *item {
	if p.headings {
		if id, title, ok := l.taskHeading(); ok {
			return &item{line: l.n, id: id, title: title, level: l.heading}
		}
	} else if l.box && (p.at == nil || l.indent <= p.at.indent+1) {
		id, title := splitID(l.text)
		return &item{line: l.n, indent: l.indent, id: id, title: title, section: p.section, checked: l.checked,
			boxes: []int{l.n}}
	}
	return nil
}

func (p *checklist) heading(l mdLine) {
	if l.heading == 1 || len(p.items) == 0 {
		p.overview = append(p.overview, l.text)
	}
	p.section = ""
	if l.heading > 1 {
		p.section = l.text
	}
}

// outside takes the text between items: before the first one it is the overview.
func (p *checklist) outside(l mdLine) {
	switch {
	case len(p.items) == 0:
		p.overview = append(p.overview, l.raw)
	case l.box:
		p.im.drop("line %d: %s: it stands below no task", l.n, quoteShort(l.text))
	case l.bullet:
		p.im.drop("line %d: %s: it has no checkbox", l.n, quoteShort(l.text))
	case l.text != "" && !l.fenced:
		p.im.drop("line %d: %s: text outside the items", l.n, quoteShort(l.text))
	}
}

// add takes a line below the item. Text that goes on without a blank line and without a bullet belongs to the title's
// sentence only if the item has nothing else yet; it is kept as description, so that titles stay short.
func (it *item) add(l mdLine) {
	switch {
	case it.orders(l):
	case l.bullet && !l.fenced:
		it.criteria.add(l)
	case len(it.criteria.items) > 0 && !l.fenced:
		it.criteria.add(l)
	default:
		it.description = append(it.description, strings.TrimRight(dedent(l.raw, it.indent+2), " \t"))
	}
}

var orderLine = pattern.New(`^(?i)(needs|touches):[ \t]+(.+)$`)

// orders takes a line below the item that says which tasks it needs, by their ids, or which paths it touches.
func (it *item) orders(l mdLine) bool {
	m := orderLine().FindStringSubmatch(l.text)
	if m == nil || l.fenced || l.box {
		return false
	}
	list := inLine(m[2])
	if strings.EqualFold(m[1], "touches") {
		it.touches = append(it.touches, list...)
		return true
	}
	if slices.ContainsFunc(list, func(id string) bool { return !validID(id) }) {
		return false
	}
	it.needs = append(it.needs, list...)
	return true
}

// dedent takes up to n columns of blanks off a line.
func dedent(s string, n int) string {
	for n > 0 && s != "" && (s[0] == ' ' || s[0] == '\t') {
		s, n = s[1:], n-1
	}
	return s
}

func (p *checklist) endItem() {
	if p.at == nil {
		return
	}
	it := *p.at
	p.at = nil
	if it.checked {
		p.im.done[it.id] = true
		p.im.drop("line %d: %s: it is checked already", it.line, quoteShort(it.title))
	}
	it.title = text.OneLine(stripEmphasis(it.title))
	p.items = append(p.items, it)
}

// tasks numbers the items: ids that they name are kept, the others get the lowest free numbers, in order.
func (p *checklist) tasks() error {
	items := slices.DeleteFunc(p.items, func(it item) bool { return it.checked })
	if len(items) > maxTasks {
		return tooManyTasks(p.name, len(items))
	}
	for _, it := range items {
		if it.title == "" {
			return importError(p.name, it.line, "give it a title", "the item has no text")
		}
		if it.id == "" {
			continue
		}
		if before, ok := p.ids.claim(it.id, it.line); !ok {
			return idTwice(p.name, it.line, it.id, before)
		}
	}
	for _, it := range items {
		if it.id == "" {
			it.id = p.ids.free()
		}
		p.im.lines[it.id] = it.line
		p.im.Tasks = append(p.im.Tasks, p.task(it))
	}
	return nil
}

func (p *checklist) task(it item) session.Task {
	criteria := it.criteria.done()
	if len(criteria) == 0 {
		criteria = []string{it.title}
		p.plain = append(p.plain, it.id)
	}
	description := strings.TrimSpace(strings.Join(it.description, "\n"))
	if it.section != "" {
		description = strings.TrimSpace("Section: " + it.section + "\n\n" + description)
	}
	return session.Task{
		ID: it.id, Title: it.title, Description: description, AcceptanceCriteria: criteria, Status: session.TaskPending,
		Needs: it.needs, Touches: it.touches,
	}
}

// stripEmphasis takes ** and __ off a title that is emphasised as a whole.
func stripEmphasis(s string) string {
	for _, mark := range []string{"**", "__"} {
		if len(s) > 2*len(mark) && strings.HasPrefix(s, mark) && strings.HasSuffix(s, mark) &&
			strings.Count(s, mark) == 2 {
			return s[len(mark) : len(s)-len(mark)]
		}
	}
	return s
}
