package seed

import (
	"bytes"
	"slices"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	mdtext "github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"github.com/git-tilth/git-tilth/internal/pattern"
	"github.com/git-tilth/git-tilth/internal/text"
)

// block is a node of a Markdown text: a section, an item of a list, or any other block, with its lines.
type block struct {
	kind       blockKind
	begin, end int    // lines, from 0; end is the first line behind it
	level      int    // level of a section's heading
	column     int    // first column of its first line
	head       string // the heading, or an item's first paragraph without its box
	lines      []string
	box        byte // the mark of an item's box, 0 for none
	star       bool // [ ]*
	titled          // lines of the head
	parent     *block
	parts      []*block
}

type blockKind int

const (
	section blockKind = iota
	item
	code
	other
)

// document is a parsed Markdown text.
type document struct {
	name   string
	first  int // number of its first line
	source []byte
	lines  []string
	starts []int // offsets of the lines
	root   *block
}

// markdownParser reads only blocks, code spans and comments, so that the text of a task stays as written.
var markdownParser = parser.NewParser(parser.WithBlockParsers(parser.DefaultBlockParsers()...),
	parser.WithInlineParsers(util.Prioritized(parser.NewCodeSpanParser(), 100),
		util.Prioritized(parser.NewRawHTMLParser(), 200)),
	parser.WithParagraphTransformers(util.Prioritized(parser.LinkReferenceParagraphTransformer, 100)))

// maxNesting limits the marks of quotes and lists at the start of a line, in bytes, because the parser's time grows
// with the square of the nesting. Further marks are cut, and the text after them stays.
const maxNesting = 200

var nestingMarks = pattern.New(`^(?:[ \t]*(?:>|[-*+][ \t]|[0-9]{1,9}[.)][ \t]))+`)

// cutNesting takes the marks beyond maxNesting off the lines of a text.
func cutNesting(body string) string {
	var out strings.Builder
	for line := range strings.Lines(body) {
		if len(line) > maxNesting {
			if n := len(nestingMarks().FindString(line)); n > maxNesting {
				line = line[:maxNesting] + line[n:]
			}
		}
		out.WriteString(line)
	}
	return out.String()
}

// parseMarkdown reads a text as a tree of sections, items and blocks. Comments and rules are left out.
func parseMarkdown(name, body string, first int) *document {
	d := &document{name: name, first: first, source: []byte(strings.TrimRight(cutNesting(body), "\n") + "\n")}
	tree := markdownParser.Parse(mdtext.NewReader(d.source))
	d.blankComments(tree)
	d.lines = strings.Split(strings.TrimSuffix(string(d.source), "\n"), "\n")
	offset := 0
	for i, l := range d.lines {
		d.lines[i] = strings.TrimRight(l, " \t")
		d.starts = append(d.starts, offset)
		offset += len(l) + 1
	}
	d.root = &block{end: len(d.lines)}
	at := d.root
	var before *block // the last item of the list before
	for n := tree.FirstChild(); n != nil; n = n.NextSibling() {
		b := d.block(n)
		if b == nil {
			continue
		}
		if list, ok := n.(*ast.List); ok {
			before = d.list(list, at, before)
			continue
		}
		before = nil
		switch n := n.(type) {
		case *ast.ThematicBreak:
			d.lines[b.begin] = ""
			continue
		case *ast.Heading:
			for at.parent != nil && at.level >= n.Level {
				at = at.parent
			}
			b.kind, b.level = section, n.Level
			b.readHead(n, d.source)
			b.lines = nil
		}
		b.parent = at
		at.parts = append(at.parts, b)
		if b.kind == section {
			at = b
		}
	}
	d.root.measure(len(d.lines))
	return d
}

// blankComments overwrites comments (<!-- -->) with blanks.
func (d *document) blankComments(tree ast.Node) {
	_ = ast.Walk(tree, func(n ast.Node, _ bool) (ast.WalkStatus, error) {
		var parts []mdtext.Segment
		switch n := n.(type) {
		case *ast.HTMLBlock:
			parts = append(n.Lines().Sliced(0, n.Lines().Len()), n.ClosureLine)
		case *ast.RawHTML:
			parts = n.Segments.Sliced(0, n.Segments.Len())
		}
		if len(parts) == 0 || !bytes.HasPrefix(bytes.TrimSpace(parts[0].Value(d.source)), []byte("<!--")) {
			return ast.WalkContinue, nil
		}
		for _, s := range parts {
			for i := max(s.Start, 0); i < s.Stop; i++ {
				if d.source[i] != '\n' {
					d.source[i] = ' '
				}
			}
		}
		return ast.WalkContinue, nil
	})
}

// block returns a node with its first line, nil for a node without a position.
func (d *document) block(n ast.Node) *block {
	if n.Pos() < 0 {
		return nil
	}
	line, exact := slices.BinarySearch(d.starts, n.Pos())
	if !exact {
		line--
	}
	b := &block{kind: other, begin: line, column: n.Pos() - d.starts[line]}
	if n.Kind() == ast.KindFencedCodeBlock || n.Kind() == ast.KindCodeBlock {
		b.kind = code
	}
	return b
}

// list adds the items of a list. An item that is indented deeper than the one before belongs to it, even if it starts
// a new list, because people indent bullets below a number by two blanks.
func (d *document) list(list *ast.List, to, before *block) (last *block) {
	for n := list.FirstChild(); n != nil; n = n.NextSibling() {
		it := d.block(n)
		if it == nil {
			continue
		}
		it.kind, it.parent = item, to
		for c := n.FirstChild(); c != nil; c = c.NextSibling() {
			if sub, ok := c.(*ast.List); ok {
				d.list(sub, it, nil)
				continue
			}
			b := d.block(c)
			if b == nil {
				continue
			}
			if c == n.FirstChild() && (c.Kind() == ast.KindTextBlock || c.Kind() == ast.KindParagraph) {
				it.readHead(c, d.source)
				continue
			}
			b.parent = it
			it.parts = append(it.parts, b)
		}
		if before != nil && it.column > before.column+1 {
			it.parent = before
			before.parts = append(before.parts, it)
			continue
		}
		to.parts = append(to.parts, it)
		before = it
	}
	return before
}

var boxMark = pattern.New(`^\[([ xX~/-])\](\*?)(?:[ \t]+(\* )?|$)`)

// readHead reads a heading, or an item's first paragraph, with its box, title and lines.
func (b *block) readHead(n ast.Node, source []byte) {
	for i := range n.Lines().Len() {
		l := n.Lines().At(i)
		b.lines = append(b.lines, strings.TrimSpace(string(l.Value(source))))
	}
	if len(b.lines) == 0 {
		return
	}
	if m := boxMark().FindStringSubmatch(b.lines[0]); m != nil {
		b.box, b.star, b.lines[0] = strings.ToLower(m[1])[0], m[2]+m[3] != "", b.lines[0][len(m[0]):]
	}
	b.head = strings.TrimSpace(strings.Join(b.lines, " "))
	b.titled = titleOf(b.head)
	b.optional = b.optional || b.star
}

// measure sets the end of each block: the beginning of the next one.
func (b *block) measure(end int) {
	b.end = end
	for i, p := range b.parts {
		next := end
		if i+1 < len(b.parts) {
			next = b.parts[i+1].begin
		}
		p.measure(next)
	}
}

// within visits b and all blocks below it in order, except those below a block for which visit returns false.
func (b *block) within(visit func(*block) bool) {
	if visit(b) {
		for _, p := range b.parts {
			p.within(visit)
		}
	}
}

// text returns a block's source without its indentation.
func (d *document) text(b *block) string { return squeeze(dedent(d.lines[b.begin:b.end])) }

// says returns an item's text on one line, with the texts of the items below it: "a: b; c".
func (b *block) says() string {
	var subs []string
	for _, p := range b.parts {
		if p.kind == item {
			subs = append(subs, p.says())
		}
	}
	return withParts(text.OneLine(b.head), subs)
}

// withParts returns a text and the texts of its parts on one line.
func withParts(s string, parts []string) string {
	if len(parts) == 0 {
		return s
	}
	return strings.TrimSuffix(s, ":") + ": " + strings.Join(parts, "; ")
}
