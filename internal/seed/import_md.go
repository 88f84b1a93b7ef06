package seed

import (
	"bytes"
	"cmp"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/git-tilth/git-tilth/internal/pattern"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
)

// mdLine is one line of Markdown: its kind, its indentation, and its text without the marker.
type mdLine struct {
	n       int // line number from 1
	raw     string
	indent  int // columns; a tab counts to the next multiple of 4
	bullet  bool
	box     bool // the bullet has a checkbox
	checked bool
	heading int // 1 to 6, or 0
	fenced  bool
	text    string // the text behind the marker
}

var (
	bulletLine  = pattern.New(`^([-*+]|[0-9]{1,9}[.)])[ \t]+(.*)$`)
	boxText     = pattern.New(`^\[([ xX])\](?:[ \t]+(.*))?$`)
	headingLine = pattern.New(`^(#{1,6})[ \t]+(.*?)[ \t]*#*$`)
	fenceLine   = pattern.New("^(```+|~~~+)")
)

// scanMarkdown splits text into lines; first is the number of its first line. Comments (<!-- -->) are left out, and so
// are lines that hold nothing else.
func scanMarkdown(text string, first int) []mdLine {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	lastEnd := len(lines) - 1
	for lastEnd >= 0 && !strings.Contains(lines[lastEnd], "-->") {
		lastEnd--
	}
	var out []mdLine
	fence, hidden := "", false
	for i, raw := range lines {
		if fence == "" {
			within := hidden
			var shown string
			shown, hidden = outsideComments(raw, within, i < lastEnd)
			if shown != raw || within {
				if raw = strings.TrimRight(shown, " \t"); raw == "" {
					continue
				}
			}
		}
		l := mdLine{n: first + i, raw: raw}
		var rest string
		l.indent, rest = indentOf(raw)
		l.text = strings.TrimSpace(rest)
		if m := fenceLine().FindString(rest); m != "" && (fence == "" || strings.HasPrefix(m, fence)) {
			l.fenced = true
			if fence == "" {
				fence = m
			} else {
				fence = ""
			}
		} else if fence != "" {
			l.fenced = true
		} else {
			l.classify(rest)
		}
		out = append(out, l)
	}
	return out
}

// outsideComments returns the part of a line outside of comments. within says that it begins inside a comment, endBelow
// that a comment may end in a later line, and hidden that the next line begins inside one. A code span has no comments.
// An unclosed comment hides the rest of the text if it begins a line, and is text otherwise.
func outsideComments(line string, within, endBelow bool) (shown string, hidden bool) {
	var b strings.Builder
	for line != "" {
		if within {
			_, rest, ends := strings.Cut(line, "-->")
			if !ends {
				return b.String(), true
			}
			line, within = rest, false
		}
		n := strings.IndexAny(line, "`<")
		if n < 0 {
			b.WriteString(line)
			break
		}
		b.WriteString(line[:n])
		line = line[n:]
		size := 1
		switch {
		case line[0] == '`':
			size = codeSpan(line)
		case strings.HasPrefix(line, "<!--"):
			begins := strings.TrimSpace(b.String()) == ""
			within = begins || endBelow || strings.Contains(line[2:], "-->")
			if within {
				line, size = line[2:], 0 // <!--> is a whole comment
			}
		}
		b.WriteString(line[:size])
		line = line[size:]
	}
	return b.String(), within
}

// codeSpan is the length of the code span at the start of a line, or of its backticks if they open none.
func codeSpan(line string) int {
	ticks := len(line) - len(strings.TrimLeft(line, "`"))
	if end := strings.Index(line[ticks:], line[:ticks]); end >= 0 {
		return 2*ticks + end
	}
	return ticks
}

func (l *mdLine) classify(rest string) {
	if m := headingLine().FindStringSubmatch(rest); m != nil && l.indent < 4 {
		l.heading, l.text = len(m[1]), strings.TrimSpace(m[2])
		return
	}
	m := bulletLine().FindStringSubmatch(rest)
	if m == nil {
		return
	}
	l.bullet, l.text = true, strings.TrimSpace(m[2])
	if b := boxText().FindStringSubmatch(l.text); b != nil {
		l.box, l.checked, l.text = true, b[1] != " ", strings.TrimSpace(b[2])
	}
}

func indentOf(raw string) (int, string) {
	col := 0
	for i, r := range raw {
		switch r {
		case ' ':
			col++
		case '\t':
			col += 4 - col%4
		default:
			return col, raw[i:]
		}
	}
	return col, ""
}

// taskFileName is the name of a task file; its id stands in where the frontmatter has none.
var taskFileName = pattern.New(`^(T-[0-9]{3,18})(?:[-_. ](.*))?\.(?:md|markdown)$`)

// isTaskFile reports whether a text is one task file and not a checklist. A checklist may have front matter too: its
// boxes stand below no acceptance criteria, and it has no id.
func isTaskFile(name string, trimmed []byte) bool {
	if taskFileName().MatchString(filepath.Base(name)) {
		return true
	}
	front, body, first, err := splitFrontmatter(name, string(trimmed))
	hasID := slices.ContainsFunc(front, func(k frontKey) bool { return strings.EqualFold(k.key, "id") })
	if err != nil || hasID || first == 1 { // the first line is the body's where there is no front matter
		return first != 1
	}
	boxes := false
	for _, l := range scanMarkdown(body, first) {
		if title, _ := l.section(); criteriaHeading().MatchString(title) {
			return true
		}
		boxes = boxes || l.box
	}
	return !boxes
}

func (im *Imported) singleTask(name string, text []byte) error {
	tf, err := parseTaskFile(name, text)
	if err != nil {
		return err
	}
	im.Format = formatTaskFile
	im.addTaskFile(name, tf)
	im.recognise("%s with 1 task", formatTaskFile)
	return nil
}

// taskFile is a parsed T-NNN-*.md.
type taskFile struct {
	task    session.Task
	left    string   // the status for which it is left out, "" for none
	line    int      // where the id stands
	ignored []string // frontmatter keys that mean nothing here
}

func (im *Imported) addTaskFile(name string, tf taskFile) {
	for _, k := range tf.ignored {
		im.drop("%s: the frontmatter key %s", filepath.Base(name), k)
	}
	if tf.left != "" {
		im.drop("%s %s: its status is %s", tf.task.ID, tf.task.Title, tf.left)
		im.done[tf.task.ID] = tf.left == session.TaskDone
		return
	}
	im.Tasks = append(im.Tasks, tf.task)
}

var (
	criteriaHeading    = pattern.New(`(?i)^acceptance[ _-]*criteria:?$`)
	descriptionHeading = pattern.New(`(?i)^description:?$`)
)

// section returns the title of a section that the line begins, "" if it begins none, and its level. A line in bold
// counts as a heading that any real one ends.
func (l mdLine) section() (title string, level int) {
	if l.heading > 0 {
		return l.text, l.heading
	}
	bold := strings.Trim(l.text, "*_: ")
	if l.fenced || l.bullet || l.text == bold || !strings.HasPrefix(l.text, "**") {
		return "", 0
	}
	return bold, 6
}

// parseTaskFile reads frontmatter (id, title, needs, touches, type, scope), a description, with or without a heading of
// its own, and the bullets below "## Acceptance criteria". What follows the criteria under another heading belongs to
// the description again.
func parseTaskFile(name string, text []byte) (taskFile, error) {
	tf := taskFile{line: 1}
	front, body, bodyLine, err := splitFrontmatter(name, string(text))
	if err != nil {
		return tf, err
	}
	tf.readFront(front)
	heading := tf.readBody(tf.takeTitle(name, scanMarkdown(body, bodyLine)))
	tf.task.Status = session.TaskPending
	return tf, tf.validate(name, heading)
}

func (tf *taskFile) readFront(front []frontKey) {
	for _, k := range front {
		switch strings.ToLower(k.key) {
		case "id":
			tf.task.ID, tf.line = k.value, k.line
		case "title":
			tf.task.Title = text.OneLine(k.value)
		case "type":
			tf.task.Type = text.OneLine(k.value)
		case "scope":
			tf.task.Scope = text.OneLine(k.value)
		case "status":
			if s := strings.ToLower(k.value); s == session.TaskDone || s == session.TaskSkipped {
				tf.left = s
			}
		case "needs":
			tf.task.Needs = append(k.list, inLine(k.value)...)
		case "touches":
			tf.task.Touches = append(k.list, inLine(k.value)...)
		default:
			tf.ignored = append(tf.ignored, k.key)
		}
	}
}

// inLine are the words of a list in one line, with blanks or commas between them, each in a code span of its own or in
// none.
func inLine(line string) []string {
	return strings.FieldsFunc(line, func(r rune) bool { return r == ',' || r == '`' || unicode.IsSpace(r) })
}

// takeTitle fills in id and title from the first heading and the file's name,
// and takes that heading out of the description.
func (tf *taskFile) takeTitle(name string, lines []mdLine) []mdLine {
	for i, l := range lines {
		if l.heading == 1 && !criteriaHeading().MatchString(l.text) {
			id, title := splitID(l.text)
			tf.task.Title = cmp.Or(tf.task.Title, text.OneLine(title))
			if tf.task.ID == "" {
				tf.task.ID, tf.line = id, l.n
			}
			lines = slices.Delete(lines, i, i+1)
			break
		}
		if l.text != "" {
			break // a heading further down is part of the description
		}
	}
	if m := taskFileName().FindStringSubmatch(filepath.Base(name)); m != nil {
		tf.task.ID = cmp.Or(tf.task.ID, m[1])
		tf.task.Title = cmp.Or(tf.task.Title, strings.TrimSpace(strings.NewReplacer("-", " ", "_", " ").Replace(m[2])))
	}
	return lines
}

// readBody collects criteria and description; it returns the line of the criteria heading, 0 if there is none.
func (tf *taskFile) readBody(lines []mdLine) (heading int) {
	var list criteriaList
	var description []string
	inside, level := false, 0
	for _, l := range lines {
		title, at := l.section()
		switch {
		case criteriaHeading().MatchString(title):
			inside, level, heading = true, at, l.n
		case descriptionHeading().MatchString(title):
			inside = false
		case l.heading > 0 && inside && l.heading <= level:
			inside = false
			description = append(description, l.raw)
		case inside:
			list.add(l)
		default:
			description = append(description, l.raw)
		}
	}
	tf.task.AcceptanceCriteria = list.done()
	tf.task.Description = strings.TrimSpace(strings.Join(description, "\n"))
	return heading
}

func (tf *taskFile) validate(name string, heading int) error {
	const shape = "a task file has frontmatter with id and title, a description, " +
		"and bullets below ## Acceptance criteria"
	m := taskFileName().FindStringSubmatch(filepath.Base(name))
	switch id := tf.task.ID; {
	case id == "":
		return importError(name, 1, shape, "it has no id")
	case !validID(id):
		return importError(name, tf.line, formIDFix, "the id %s is not T- and 3 or more digits", quoteShort(id))
	case m != nil && m[1] != id:
		return importError(name, tf.line, "make the two agree", "the id %s is not the one in the file's name", id)
	case tf.task.Title == "":
		return importError(name, 1, shape, "it has no title")
	case tf.left != "":
		return nil
	case heading == 0:
		return importError(name, 1, shape, "it has no ## Acceptance criteria")
	case len(tf.task.AcceptanceCriteria) == 0:
		return importError(name, heading, "write each criterion as a line that begins with - ",
			"there is no bullet below the acceptance criteria")
	}
	return nil
}

// criteriaList collects bullets. Lines that go on under a bullet are joined to
// it; deeper bullets become part of the criterion that they belong to.
type criteriaList struct {
	items [][]byte
	level int // indent of the list's bullets
	subs  int // deeper bullets that the last item has so far
	blank bool
}

func (c *criteriaList) add(l mdLine) {
	switch {
	case l.text == "":
		c.blank = true
		return
	case l.bullet && (len(c.items) == 0 || l.indent <= c.level+1):
		c.level, c.subs = l.indent, 0
		c.items = append(c.items, []byte(l.text))
	case len(c.items) == 0:
		// A sentence that introduces the list says nothing that can be checked.
	case l.bullet:
		last := &c.items[len(c.items)-1]
		sep := "; "
		if c.subs == 0 && !bytes.HasSuffix(*last, []byte(":")) {
			sep = ": "
		} else if c.subs == 0 {
			sep = " "
		}
		c.subs++
		*last = append(append(*last, sep...), l.text...)
	case !c.blank || l.indent > c.level:
		last := &c.items[len(c.items)-1]
		*last = append(append(*last, ' '), l.text...)
	}
	c.blank = false
}

func (c *criteriaList) done() []string {
	var out []string
	for _, it := range c.items {
		if it := strings.TrimSpace(string(it)); it != "" {
			out = append(out, it)
		}
	}
	return out
}
