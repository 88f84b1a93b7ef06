package seed

import (
	"fmt"
	"strings"

	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
)

// parseChecklist reads markdown in which each unchecked item of the outermost
// list is a task and the bullets below it are its criteria. Text below an item
// is its description, text before the first one the overview.
func parseChecklist(name string, data []byte) (*Imported, error) {
	p := &checklist{name: name, im: &Imported{Format: FormatChecklist}, ids: newIDs()}
	_, body, first, err := splitFrontmatter(name, string(data))
	if err != nil {
		return nil, err
	}
	for _, l := range scanMarkdown(body, first) {
		p.line(l)
	}
	p.endItem()
	if !p.any {
		return nil, &ImportError{File: name, Msg: "it has no checklist items", Fix: "write each task as a line that begins with - [ ], or " + formatsHint}
	}
	if len(p.items) <= maxTasks {
		if err := p.tasks(); err != nil {
			return nil, err
		}
	}
	p.im.Overview = strings.TrimSpace(strings.Join(p.overview, "\n"))
	p.im.recognise("%s with %s to do", FormatChecklist, text.Plural(len(p.items), "item"))
	if len(p.im.Tasks) == 0 && len(p.items) > 0 {
		return nil, &ImportError{File: name, Msg: fmt.Sprintf("it holds %d tasks; at most %d are taken", len(p.items), maxTasks), Fix: "split the feature into smaller seeds"}
	}
	return p.im, nil
}

type checklist struct {
	name     string
	im       *Imported
	ids      *ids
	overview []string
	section  string
	any      bool
	items    []item
	at       *item
}

// item is one entry of the checklist while it is being read.
type item struct {
	line, indent int
	title        string
	section      string
	description  []string
	criteria     criteriaList
	checked      bool
}

func (p *checklist) line(l mdLine) {
	switch {
	case l.heading > 0:
		p.endItem()
		p.heading(l)
	case l.box && (p.at == nil || l.indent <= p.at.indent+1):
		p.endItem()
		p.any = true
		p.at = &item{line: l.n, indent: l.indent, title: l.text, section: p.section, checked: l.checked}
	case p.at == nil:
		p.outside(l)
	case l.bullet && l.indent <= p.at.indent+1:
		p.endItem()
		p.im.drop("line %d: %s: it has no checkbox", l.n, quoteShort(l.text))
	default:
		p.at.add(l)
	}
}

func (p *checklist) heading(l mdLine) {
	if l.heading == 1 || !p.any {
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
	case !p.any:
		p.overview = append(p.overview, l.raw)
	case l.bullet:
		p.im.drop("line %d: %s: it has no checkbox", l.n, quoteShort(l.text))
	case l.text != "" && !l.fenced:
		p.im.drop("line %d: %s: text outside the items", l.n, quoteShort(l.text))
	}
}

// add takes a line below the item. Text that goes on without a blank line and
// without a bullet belongs to the title's sentence only if the item has
// nothing else yet; it is kept as description, so that titles stay short.
func (it *item) add(l mdLine) {
	switch {
	case l.bullet && !l.fenced:
		it.criteria.add(l)
	case len(it.criteria.items) > 0 && !l.fenced:
		it.criteria.add(l)
	default:
		it.description = append(it.description, strings.TrimRight(dedent(l.raw, it.indent+2), " \t"))
	}
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
		p.im.drop("line %d: %s: it is checked already", it.line, quoteShort(it.title))
		return
	}
	p.items = append(p.items, it)
}

// tasks numbers the items: ids that they name are kept, the others get the
// lowest free numbers, in order.
func (p *checklist) tasks() error {
	titles := make([]string, len(p.items))
	named := make([]string, len(p.items))
	for i, it := range p.items {
		named[i], titles[i] = splitID(it.title)
		titles[i] = text.OneLine(stripEmphasis(titles[i]))
		if titles[i] == "" {
			return &ImportError{File: p.name, Line: it.line, Msg: "the item has no text", Fix: "give it a title"}
		}
		if named[i] == "" {
			continue
		}
		if before, ok := p.ids.claim(named[i], it.line); !ok {
			return &ImportError{File: p.name, Line: it.line, Msg: fmt.Sprintf("the id %s was given in line %d already", named[i], before), Fix: "give each task an id of its own"}
		}
	}
	for i, it := range p.items {
		id := named[i]
		if id == "" {
			id = p.ids.free()
		}
		p.im.Tasks = append(p.im.Tasks, p.task(id, titles[i], it))
	}
	return nil
}

func (p *checklist) task(id, title string, it item) session.Task {
	criteria := it.criteria.done()
	if len(criteria) == 0 {
		criteria = []string{title}
		p.im.recognise("%s has no nested bullets: its own text is its criterion", id)
	}
	description := strings.TrimSpace(strings.Join(it.description, "\n"))
	if it.section != "" {
		description = strings.TrimSpace("Section: " + it.section + "\n\n" + description)
	}
	return session.Task{ID: id, Title: title, Description: description, AcceptanceCriteria: criteria, Status: "pending"}
}

// stripEmphasis takes ** and __ off a title that is emphasised as a whole.
func stripEmphasis(s string) string {
	for _, mark := range []string{"**", "__"} {
		if len(s) > 2*len(mark) && strings.HasPrefix(s, mark) && strings.HasSuffix(s, mark) && strings.Count(s, mark) == 2 {
			return s[len(mark) : len(s)-len(mark)]
		}
	}
	return s
}
