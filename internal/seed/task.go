package seed

import (
	"cmp"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/tidwall/gjson"

	"github.com/git-tilth/git-tilth/internal/text"
)

// taskKeys maps the keys of a task in JSON or front matter to their meaning. Keys are compared without case, - and _.
var taskKeys = map[string]string{
	"id": "id", "number": "id", "iid": "id", "key": "id", "ref": "id",
	"title": "title", "name": "title", "summary": "title", "story": "title", "content": "title",
	"description": "body", "body": "body", "details": "body", "design": "body", "notes": "notes",
	"acceptancecriteria": "criteria", "criteria": "criteria", "acceptance": "criteria", "steps": "criteria",
	"donewhen": "criteria", "definitionofdone": "criteria",
	"teststrategy": "test", "subtasks": "parts", "children": "parts",
	"passes": "done", "done": "done", "completed": "done", "status": "status", "state": "status",
	"dependencies": "needs", "dependson": "needs", "blockedby": "needs", "needs": "needs",
	"priority": "priority", "touches": "touches", "type": "kind", "scope": "scope", "optional": "optional",
}

func normalKey(key string) string {
	return strings.NewReplacer("-", "", "_", "", " ", "").Replace(strings.ToLower(key))
}

// readTask reads the members of an object, or the front matter of a file, that begins in a line.
func (im *Imported) readTask(name string, line int, members fields) (entry, error) {
	e := entry{file: name, line: line, priority: math.Inf(1)}
	var parts []string
	var unknown fields
	for _, f := range members {
		v := f.value
		if v.Type == gjson.Null {
			continue
		}
		want := "" // the form that the value should have
		need := func(form string, ok bool) bool {
			if !ok {
				want = form
			}
			return ok
		}
		said, ok := words(v)
		list := ok && (v.IsArray() || v.Type == gjson.String)
		flag, noFlag := strconv.ParseBool(v.String())
		switch meaning := taskKeys[normalKey(f.key)]; meaning {
		case "id":
			scalar := need("a text or a number", v.Type == gjson.String || v.Type == gjson.Number)
			if scalar && (e.source == "" || f.key == "number" || f.key == "iid") { // an issue's number
				e.source, e.line = strings.TrimSpace(v.String()), f.line
			}
		case "body", "notes":
			need("a text", list)
			if meaning == "notes" && len(said) > 0 {
				said[0] = "Notes: " + said[0]
			}
			e.body = strings.TrimSpace(e.body + "\n\n" + strings.Join(said, "\n"))
		case "criteria":
			need("a list of texts", list)
			if v.Type == gjson.String && len(said) > 0 {
				said = textLines(v.Str)
			}
			e.criteria = append(e.criteria, said...)
		case "parts":
			said, ok = im.subtasks(name, f)
			need("a list of tasks", ok)
			parts = append(parts, said...)
		case "done", "optional":
			need("true or false", noFlag == nil)
			if flag {
				e.left = meaning
			}
		case "needs":
			e.needs, ok = needsOf(v, e.needs)
			need("a list of ids", ok)
		case "touches":
			need("a list of patterns", list)
			if v.Type == gjson.String {
				said = inLine(v.Str)
			}
			e.touches = append(e.touches, said...)
		case "priority":
			need("a number or a word", v.Type == gjson.String || v.Type == gjson.Number)
			e.priority = priorityOf(v.String())
		case "":
			unknown = append(unknown, f)
		default: // a line of text
			need("a text", v.Type == gjson.String)
			switch s := text.OneLine(v.Str); meaning {
			case "title":
				if e.title != "" && s != e.title {
					e.body = strings.TrimSpace(e.body + "\n\n" + v.Str)
				}
				e.title = cmp.Or(e.title, s)
			case "test":
				if s != "" {
					parts = append(parts, "Test: "+s)
				}
			case "status":
				e.left = cmp.Or(e.left, leftBy(s))
				known := s == "" || slices.Contains(strings.Fields("pending done failed skipped"), s)
				need("pending, done, failed or skipped", known || im.Format != formatPlan)
			case "kind":
				e.kind = s
			case "scope":
				e.scope = s
			}
		}
		if want != "" {
			return e, importError(name, f.line, "write "+want, "%s of %s is not %s", f.key, e.name(), want)
		}
	}
	if im.Format == formatPlan { // a session's own file, whose keys and texts stay
		e.more = unknown
		return e, nil
	}
	im.dropKeys(name, unknown)
	p := im.newPlan(name, strings.ReplaceAll(e.body, "\r\n", "\n"), e.line)
	if boxes, _, labelled, _ := p.evidence(p.root); len(e.criteria) == 0 && (boxes || labelled) {
		p.fill(&e, p.root)
	} else {
		e.body = p.kept(0, p.root.end)
	}
	e.criteria = append(e.criteria, parts...)
	return e, nil
}

// name returns an entry in a message.
func (e entry) name() string {
	if e.source+e.title == "" {
		return "the task"
	}
	return quoteShort(cmp.Or(e.source, e.title))
}

// objectTask reads a task that is a JSON object.
func (im *Imported) objectTask(name string, f field) (entry, error) {
	if !f.value.IsObject() {
		return entry{}, importError(name, f.line, "a task is {id, title, description, acceptanceCriteria}",
			"an entry is not a JSON object")
	}
	e, err := im.readTask(name, f.line, fieldsOf(f.value, f.line))
	if ours := im.Format == formatPlan && err == nil; ours && !ownID().MatchString(e.source) {
		err = importError(name, f.line, "give it an id like T-001", "the id of %s is not T- and 3 or more digits",
			e.name())
	} else if ours && e.left == "" && len(e.criteria) == 0 {
		err = importError(name, f.line, "give it at least one", "%s has no acceptance criteria", e.name())
	}
	first, _, _ := strings.Cut(e.body, "\n")
	e.line, e.title = f.line, cmp.Or(e.title, text.OneLine(first))
	return e, err
}

// maxGroups is the maximum depth of nested groups: epics with features with stories.
const maxGroups = 3

// objects reads tasks that are JSON objects. Each has its own id, but numbers may restart in each group.
func (im *Imported) objects(name string, elements fields) error {
	read, err := im.entries(name, elements, maxGroups)
	if err != nil {
		return err
	}
	return im.add(read, !slices.ContainsFunc(elements, groups))
}

// entries reads a list of objects. Priorities set their order. Issues that only group others are context.
func (im *Imported) entries(name string, elements fields, depth int) (out []entry, err error) {
	epics := map[string]bool{}
	for _, el := range elements {
		for _, d := range el.value.Get("dependencies").Array() {
			epics[d.Get("depends_on_id").String()] = d.Get("type").Str == "parent-child" ||
				epics[d.Get("depends_on_id").String()]
		}
	}
	sorted := im.Format == formatTaskMaster
	for _, el := range elements {
		if depth > 0 && groups(el) {
			inner, err := im.grouped(name, el, depth-1)
			if err != nil {
				return nil, err
			}
			out, sorted = append(out, inner...), true
			continue
		}
		e, err := im.objectTask(name, el)
		switch {
		case err != nil:
			return nil, err
		case epics[e.source] && e.source != "":
			im.note(filepath.Base(name), strings.TrimSpace(e.title+"\n\n"+e.body))
		default:
			out = append(out, e)
		}
	}
	if !sorted {
		slices.SortStableFunc(out, func(a, b entry) int { return cmp.Compare(a.priority, b.priority) })
	}
	return out, nil
}

// textLines returns the criteria of a text: its items, or else the text.
func textLines(s string) (out []string) {
	d, items := parseMarkdown("", s, 1), false
	for _, b := range d.root.parts {
		said := text.OneLine(d.text(b))
		if b.kind == item {
			said, items = b.says(), true
		}
		out = append(out, said)
	}
	if !items {
		return []string{strings.TrimSpace(s)}
	}
	return out
}

// words returns the texts of a value: a text, a number, an object with a text or an id, or a list of these. ok is false
// for anything else.
func words(v gjson.Result, first ...string) (out []string, ok bool) {
	switch {
	case v.IsArray():
		ok = true
		for _, e := range v.Array() {
			more, fits := words(e, first...)
			out, ok = append(out, more...), ok && fits
		}
		return out, ok
	case v.IsObject():
		for _, key := range append(first, "text", "title", "description", "criterion", "name", "id") {
			if t := v.Get(key); t.String() != "" && !t.IsObject() {
				return words(t)
			}
		}
		return nil, false
	case v.Type == gjson.String && strings.TrimSpace(v.Str) != "":
		return []string{strings.TrimSpace(v.Str)}, true
	case v.Type == gjson.Number:
		return []string{v.Raw}, true
	}
	return nil, v.Type == gjson.Null || v.Type == gjson.String
}

// needsOf adds the ids of a value: words in a text, or a list. A dependency of beads has a type.
func needsOf(v gjson.Result, needs []string) ([]string, bool) {
	if v.Type == gjson.String {
		return append(needs, inLine(v.Str)...), true
	}
	for _, d := range v.Array() {
		said, ok := words(d, "id", "depends_on_id")
		if !ok {
			return nil, false
		}
		kind := d.Get("type").Str
		if kind == "" || kind == "waits-for" || strings.Contains(kind, "block") {
			needs = append(needs, said...)
		}
	}
	return needs, v.IsArray()
}

// inLine returns the words of a list in one line, separated by blanks or commas, each possibly in a code span.
func inLine(line string) []string {
	return strings.FieldsFunc(line, func(r rune) bool { return r == ',' || r == '`' || unicode.IsSpace(r) })
}

// subtasks returns a task's open parts, each as a criterion. ok is false for anything but a list of texts and objects
// with texts.
func (im *Imported) subtasks(name string, list field) (out []string, ok bool) {
	for _, s := range fieldsOf(list.value, list.line) {
		said := []string{s.value.Str}
		for _, key := range []string{"title", "description", "details", "testStrategy"} {
			said = append(said, s.value.Get(key).String())
		}
		part := strings.Join(slices.DeleteFunc(said, func(t string) bool { return strings.TrimSpace(t) == "" }), ": ")
		switch left := leftBy(s.value.Get("status").String()); {
		case part == "":
			return nil, false
		case left == "" || left == leftDone:
			out = append(out, text.OneLine(part))
		default:
			im.drop("%s:%d: %s: its status is %s", filepath.Base(name), s.line, quoteShort(part), left)
		}
	}
	return out, list.value.IsArray()
}

// leftBy returns why a task with a status is skipped, or "" for an open task.
func leftBy(status string) string {
	switch normalKey(status) {
	case "done", "complete", "completed", "closed", "passed", "merged", "finished":
		return leftDone
	case "cancelled", "canceled", "skipped", "deferred", "wontfix", "tombstone", "archived", "duplicate":
		return status
	}
	return ""
}

// priorities are the words for a priority, most urgent first.
var priorities = []string{"critical urgent highest p0", "high p1", "medium normal p2", "low p3", "lowest p4"}

// priorityOf returns a priority that is a number or a word. Without one a task comes last.
func priorityOf(word string) float64 {
	word = strings.ToLower(strings.TrimSpace(word))
	if n, err := strconv.ParseFloat(word, 64); err == nil && !math.IsNaN(n) && !math.IsInf(n, 0) {
		return n
	}
	for i, alike := range priorities {
		if slices.Contains(strings.Fields(alike), word) {
			return float64(i)
		}
	}
	return math.Inf(1)
}
