package seed

import (
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/pattern"
	"github.com/git-tilth/git-tilth/internal/text"
)

// orders removes lines such as "needs: T-001" and "touches: src/" from an item's or paragraph's lines and returns
// them.
func (p *plan) orders(e *entry, lines []string, begin int) (rest []string) {
	for i, l := range lines {
		m := orderLine().FindStringSubmatch(strings.TrimSpace(l))
		if m == nil {
			rest = append(rest, l)
			continue
		}
		list := inLine(m[2])
		switch {
		case strings.EqualFold(m[1], "touches"):
			e.touches = append(e.touches, list...)
		case slices.ContainsFunc(list, func(id string) bool { return !idWord().MatchString(id) }):
			rest = append(rest, l)
			continue
		default:
			e.needs = append(e.needs, list...)
		}
		p.taken[begin+i] = true
	}
	return rest
}

// takeLabel reports whether a line is the label of criteria. It also takes a criterion after the label on the same
// line.
func (p *plan) takeLabel(e *entry, line string) bool {
	m := criteriaLabel().FindStringSubmatch(line)
	if m != nil && m[1] != "" {
		e.inline = append(e.inline, m[1])
	}
	return m != nil
}

// fill sets a task's criteria, and its description from all other text below it. The criteria are the boxes, else the
// labelled items, else the items of an item.
func (p *plan) fill(e *entry, b *block) {
	var boxes, labelled, plain, labels []*block
	// The next items are criteria if the last line of an item's own text is their label.
	label := b.kind == item && len(b.lines) > 1 && criteriaLabel().MatchString(b.lines[len(b.lines)-1])
	b.within(func(c *block) bool {
		if c == b || c.kind == code {
			return true
		}
		said := p.said(c)
		is := c.box == 0 && p.takeLabel(e, said)
		if is {
			labels = append(labels, c)
		} else if c.kind != item && descriptionLabel().MatchString(p.lines[c.begin]) {
			p.taken[c.begin] = true
		}
		switch {
		case c.kind == section || is && c.kind == other:
			label = is
		case c.kind == other:
			is = clause().MatchString(said)
			if label = label && (is || !strings.HasPrefix(said, "**")); label && is {
				labelled = append(labelled, c)
			}
			p.orders(e, p.lines[c.begin:c.end], c.begin)
		case c.box != 0:
			boxes = append(boxes, c)
		case is:
			labelled = append(labelled, c.parts...)
		case len(p.orders(e, c.lines, c.begin)) < len(c.lines):
		case label && (c.parent.kind != item || c.parent == b):
			labelled = append(labelled, c)
			return false
		case c.parent == b && b.kind == item && !metaLine().MatchString(c.head):
			plain = append(plain, c)
		}
		return true
	})
	taken := boxes
	if len(taken) == 0 {
		taken = labelled
	}
	if len(taken)+len(e.inline) == 0 {
		taken = plain
	}
	for _, c := range labels {
		if len(e.inline) > 0 || (len(boxes) == 0) != (len(labelled) == 0) {
			p.take(c.begin, p.below(c))
		}
	}
	for _, c := range taken {
		switch {
		case c.kind != item && !clause().MatchString(p.said(c)) || p.leftOut(c.parent) ||
			c.box == 0 && slices.Contains(taken, c.parent):
		case p.leftOut(c):
			p.im.Optional++
			p.take(c.begin, c.end)
		default:
			e.criteria = append(e.criteria, p.criterion(c))
		}
	}
	e.criteria = joinClauses(append(e.criteria, e.inline...))
	e.body = p.kept(p.below(b), b.end)
}

// leftOut reports whether an item is optional, or below an optional one, and optional parts are not wanted.
func (p *plan) leftOut(b *block) bool {
	return b != nil && b.kind == item && !p.im.optional && (b.optional || p.leftOut(b.parent))
}

// joinClauses joins separate items "Given", "When" and "Then" into one criterion.
func joinClauses(criteria []string) (out []string) {
	begun := false // the last criterion begins with a Given or a When
	for _, c := range criteria {
		word, last := "", len(out)-1
		if m := clause().FindStringSubmatch(c); m != nil {
			word = strings.ToLower(m[1])
		}
		if begun && (word == "then" || word == "and" || word == "but" ||
			word == "when" && !strings.Contains(strings.ToLower(out[last]), "when")) {
			out[last] = strings.TrimRight(out[last], ",;. ") + ", " + c
			continue
		}
		begun = word == "given" || word == "when"
		out = append(out, c)
	}
	return out
}

// criterion returns an item's text and that of the plain items below it, which it removes from the description.
func (p *plan) criterion(c *block) string {
	p.take(c.begin, p.below(c))
	said := c.title
	if c.kind == other {
		said = text.OneLine(stripEmphasis(p.said(c)))
	} else if isCode(c.id) && !strings.HasPrefix(c.id, "T") {
		said = text.OneLine(c.head)
	}
	var subs []string
	for _, sub := range c.parts {
		if sub.kind == item && sub.box == 0 && !metaLine().MatchString(sub.head) {
			p.take(sub.begin, sub.end)
			subs = append(subs, sub.says())
		}
	}
	return withParts(said, subs)
}

// take takes lines out of the description or the context.
func (p *plan) take(begin, end int) {
	for i := begin; i < end; i++ {
		p.taken[i] = true
	}
}

// below returns the line below a heading, an item's first paragraph, or a label.
func (p *plan) below(b *block) int {
	switch {
	case b == p.root:
		return 0
	case b.kind == other:
		return b.begin + strings.Count(p.said(b), "\n") + 1
	case b.kind == section && b.begin+1 < b.end && underline().MatchString(p.lines[b.begin+1]):
		return b.begin + 2
	}
	return b.begin + max(len(b.lines), 1)
}

// kept returns a text without the lines that were taken.
func (p *plan) kept(begin, end int) string {
	var kept []string
	for i := begin; i < end; i++ {
		if !p.taken[i] {
			kept = append(kept, p.lines[i])
		}
	}
	return squeeze(dedent(kept))
}

var (
	underline  = pattern.New(`^ {0,3}(?:=+|-+)[ \t]*$`)
	blankLines = pattern.New(`\n{3,}`)
)

func squeeze(s string) string { return blankLines().ReplaceAllString(strings.TrimSpace(s), "\n\n") }
