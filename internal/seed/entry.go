package seed

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/git-tilth/git-tilth/internal/pattern"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
)

// entry is one task of a list in the list's own terms.
type entry struct {
	file     string
	line     int
	source   string // the list's own id, "" for none
	number   string // number in a list of items, which other tasks may name
	id       string // ours
	title    string // full title, one line
	body     string
	criteria []string
	inline   []string // criteria after their label on the same line
	needs    []string // ids of the list, or T-NNN
	after    []string // our ids of earlier tasks, by [P] marks
	touches  []string
	kind     string // the commit's type
	scope    string
	left     string // why it is left out: "done", "optional", or a status
	parallel bool   // has a [P] mark
	phase    int    // the section in which [P] marks count
	priority float64
	more     fields // fields kept in prd.json
}

const (
	leftDone     = "done" // the values of taskKeys
	leftOptional = "optional"
)

// maxTitle is the maximum number of characters of a title, because it becomes the subject of a commit.
const maxTitle = 72

var (
	ownID        = pattern.New(`^T-[0-9]{3,18}$`)
	numberedID   = pattern.New(`^(?:[A-Za-z]+[-_ #]?)?0*([0-9]{1,9})$`)
	distinctive  = pattern.New(`^[A-Za-z][A-Za-z0-9]*[-_.]?[A-Za-z0-9.]*[0-9][A-Za-z0-9.]*$`)
	referredWord = pattern.New(`[A-Za-z0-9][A-Za-z0-9._-]*[A-Za-z0-9]|[A-Za-z0-9]`)
	// dependsWords introduce ids in a sentence. After a strong one, a bare number is an id.
	dependsWords = pattern.New(`(?i)(?:\b|_)(?:(depend(?:s|ent|encies)?(?: on)?|blocked by|prerequisites?)|requires|needs|after)\b[*_:]*[ \t]*`)
	dependsNouns = "task tasks story stories step steps issue issues and or the"
)

// at returns the position of an entry for a message, such as tasks.md:12.
func (e entry) at() string { return filepath.Base(e.file) + ":" + itoa(e.line) }

// add turns entries into tasks. It skips finished ones, gives each an id, resolves needs, and counts. With unique each
// id occurs once in the list, as in JSON; numbers in a text may restart.
func (im *Imported) add(entries []entry, unique bool) error {
	for _, e := range entries {
		if e.title == "" {
			return importError(e.file, e.line, "give it one", "%s has no title", e.name())
		}
	}
	if err := im.identify(entries, unique); err != nil {
		return err
	}
	x := newIndex(entries)
	needsByMarks(entries)
	for _, e := range entries {
		if !im.taken(e) {
			im.leave(e)
			continue
		}
		im.resolve(&e, x)
		t := e.task(func(s string) string { return im.ours(s, x) })
		im.from[t.ID] = e
		im.Tasks = append(im.Tasks, t)
	}
	if im.Format != formatPlan {
		im.sortByNeeds()
	}
	return nil
}

// leave counts an entry that is left out, and names it if its status is neither done nor optional.
func (im *Imported) leave(e entry) {
	im.done[e.id] = true
	switch e.left {
	case leftDone:
		im.Done++
	case leftOptional:
		im.Optional++
	default:
		im.drop("%s: %s: its status is %s", e.at(), quoteShort(e.title), e.left)
	}
}

// identify gives each entry its id. It keeps the list's numbers if they are unique and none is a part's, such as 2.1,
// and always keeps T-NNN ids. Left out tasks get the remaining numbers.
func (im *Imported) identify(entries []entry, unique bool) error {
	used, before := map[string]bool{}, map[string]entry{}
	numbers, once := map[int]string{}, true
	for i, e := range entries {
		own, source := ownID().MatchString(e.source), strings.ToLower(e.source)
		if source != "" && (unique || own && im.taken(e)) {
			if b, twice := before[source]; twice {
				where := "was given in line " + itoa(b.line)
				if b.file != e.file {
					where = "is that of " + filepath.Base(b.file)
				}
				return importError(e.file, e.line, "give each a unique id", "the id %s %s already", e.source, where)
			}
			before[source] = e
		}
		if source == "" || !im.taken(e) {
			continue
		}
		if numbers[i] = numberOf(source); own {
			numbers[i], entries[i].id = e.source, e.source
		}
		once = once && numbers[i] != "" && !used[numbers[i]]
		used[numbers[i]] = true
	}
	clear(used)
	for i := range entries {
		if once && numbers[i] != "" {
			entries[i].id = numbers[i]
		}
		used[entries[i].id] = true
	}
	next := 0
	for _, taken := range []bool{true, false} {
		for i, e := range entries {
			for entries[i].id == "" && im.taken(e) == taken {
				if next++; !used[taskID(next)] {
					entries[i].id = taskID(next)
				}
			}
		}
	}
	return nil
}

// numberOf returns our id for a list's id with a number, such as US-003, or "" for another id.
func numberOf(source string) string {
	m := numberedID().FindStringSubmatch(source)
	if m == nil || strings.Trim(m[1], "0") == "" {
		return ""
	}
	n, _ := strconv.Atoi(m[1])
	return taskID(n)
}

// taken reports whether an entry becomes a task.
func (im *Imported) taken(e entry) bool { return e.left == "" || e.left == leftOptional && im.optional }

// needsByMarks adds the needs of a list with [P] marks: a task without one needs all earlier tasks of its phase.
func needsByMarks(entries []entry) {
	if !slices.ContainsFunc(entries, func(e entry) bool { return e.parallel }) {
		return
	}
	for i, e := range entries {
		for _, earlier := range entries[:i] {
			if !e.parallel && earlier.phase == e.phase {
				entries[i].after = append(entries[i].after, earlier.id)
			}
		}
	}
}

// index finds entries by the list's ids and by ours, in lower case.
type index map[string][]entry

func newIndex(entries []entry) index {
	x := index{}
	for _, e := range entries {
		source := strings.ToLower(cmp.Or(e.source, e.number))
		for _, key := range slices.Compact([]string{source, strings.TrimLeft(source, "0")}) {
			x[key] = append(x[key], e)
		}
	}
	for _, e := range entries {
		if key := strings.ToLower(e.id); len(x[key]) == 0 {
			x[key] = []entry{e}
		}
	}
	delete(x, "")
	return x
}

// find returns the entry with an id of the list. If numbers restart in each phase, it prefers the same phase.
func (x index) find(word string, phase int) (e entry) {
	word = strings.ToLower(strings.Trim(word, "#.,;:`[]'\" "))
	whole, _, _ := strings.Cut(word, ".") // number of a part that is not a task
	number := strings.TrimLeft(strings.TrimPrefix(numberOf(word), "T-"), "0")
	for _, key := range []string{word, whole, number, strings.ToLower(numberOf(word))} {
		found := x[key]
		if len(found) > 1 {
			found = slices.DeleteFunc(slices.Clone(found), func(e entry) bool { return e.phase != phase })
		}
		if len(found) == 1 {
			return found[0]
		}
	}
	return e
}

// resolve replaces the ids in an entry's needs by ours, adds those that its text names, and reports unknown ones.
func (im *Imported) resolve(e *entry, x index) {
	named := dependencies(e.title+"\n"+e.body+"\n"+strings.Join(e.criteria, "\n"), x)
	var needs []string
	for i, word := range slices.Concat(e.needs, named, e.after) {
		need, listed := x.find(word, e.phase), i < len(e.needs)
		if need.id == "" && listed && ownID().MatchString(word) {
			need.id = word // the check of needs names an unknown one of ours
		}
		switch {
		case need.id == "" && listed:
			im.drop("%s: needs %s, which the list does not have", e.at(), quoteShort(word))
		case !im.taken(need) && need.left != leftDone:
			im.drop("%s: needs %s, which is left out (%s)", e.at(), quoteShort(word), need.left)
		case need.id != "" && (listed || need.id != e.id) && !slices.Contains(needs, need.id):
			needs = append(needs, need.id)
		}
	}
	e.needs = needs
}

// dependencies finds the ids of other tasks in a text, after words such as "depends on". known reports the ids of the
// list. A whole number or a single letter counts after "task", a number also after a strong word.
func dependencies(s string, known index) (ids []string) {
	for _, m := range dependsWords().FindAllStringSubmatchIndex(s, -1) {
		strong, noun := m[2] >= 0, false
		rest, _, _ := strings.Cut(s[m[1]:], "\n")
		apart := func(r rune) bool { return strings.ContainsRune(" \t,;&()[]`*", r) }
		for _, word := range strings.FieldsFunc(rest, apart) {
			noun = noun || word[0] == '#'
			w := strings.ToLower(strings.Trim(word, "#.:_"))
			mixed := isCode(w) && strings.ContainsFunc(w, unicode.IsDigit) || strings.Contains(w, ".")
			switch {
			case known[w] != nil && (mixed || noun || strong && (len(w) > 1 || !isCode(w))):
				ids = append(ids, w)
			case slices.Contains(strings.Fields(dependsNouns), w):
				noun = noun || len(w) > 3
			default:
				word = "."
			}
			if strings.HasSuffix(word, ".") {
				break
			}
		}
	}
	return ids
}

func isLetter(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' }

// ours replaces the list's ids of tasks in a text by ours, if they are distinguishable from other words.
func (im *Imported) ours(s string, x index) string {
	return referredWord().ReplaceAllStringFunc(s, func(w string) string {
		if found := x[strings.ToLower(w)]; len(found) == 1 && im.taken(found[0]) && distinctive().MatchString(w) {
			return found[0].id
		}
		return w
	})
}

// task returns the entry as a task. Fields without a place in a task stay under their own keys.
func (e entry) task(ours func(string) string) session.Task {
	title, body := text.OneLine(ours(e.title)), strings.TrimSpace(ours(e.body))
	var criteria []string
	for _, c := range e.criteria {
		if c = strings.TrimSpace(ours(c)); c != "" {
			criteria = append(criteria, c)
		}
	}
	if len(criteria) == 0 {
		criteria = []string{title}
	}
	short, _, _ := strings.Cut(text.Wrap(title, maxTitle), "\n")
	if short = text.Head(short, maxTitle); short != title {
		for _, end := range []string{". ", "; ", ", ", " (", ": ", " - ", " – "} {
			if i := strings.LastIndex(short, end); i > maxTitle/2 { // the end of a clause
				short = short[:i]
				break
			}
		}
		title, body = strings.TrimRight(short, " ,;:.-–—("), strings.TrimSpace(title+"\n\n"+body)
	}
	more := map[string]any{}
	if e.source != "" && e.source != e.id {
		more["source_id"] = e.source
	}
	for _, f := range e.more {
		more[f.key] = json.RawMessage(f.value.Raw)
	}
	raw, _ := json.Marshal(more)
	t, _ := parseTask(raw)
	t.ID, t.Title, t.Description, t.AcceptanceCriteria = e.id, title, body, criteria
	t.Needs, t.Touches, t.Type, t.Scope = e.needs, e.touches, e.kind, e.scope
	return t
}

var codeInTitle = pattern.New(`\s\[([A-Z][A-Z0-9]{0,9}-[0-9]{1,9})\]`)

// takeCode takes the id of a task without one out of its title: Add a form [APP-12].
func (e *entry) takeCode() {
	if m := codeInTitle().FindStringSubmatchIndex(e.title); m != nil && e.source == "" {
		e.source, e.title = e.title[m[2]:m[3]], text.OneLine(e.title[:m[0]]+e.title[m[1]:])
	}
}

// sortByNeeds moves tasks behind their needs, and otherwise keeps the order of the list.
func (im *Imported) sortByNeeds() {
	var sorted []session.Task
	placed := map[string]bool{}
	var place func(ids ...string)
	place = func(ids ...string) {
		for _, id := range ids {
			if i := session.IndexOf(im.Tasks, id); i >= 0 && !placed[id] {
				placed[id] = true
				place(im.Tasks[i].Needs...)
				sorted = append(sorted, im.Tasks[i])
			}
		}
	}
	for _, t := range im.Tasks {
		place(t.ID)
	}
	im.Tasks = sorted
}

var (
	leadingNumber = pattern.New(`^(?:([0-9]+(?:\.[0-9]+)+)[.)]?|([0-9]+)[.)]|#([0-9]+)[:.]?)[ \t]+`)
	// leadingCode is an id before a title: T001, T-001, [X-1], or X-1 before a colon or with a usual name.
	leadingCode = pattern.New(`^[*_\x60]*(?:\[?(T-?[0-9]{1,18}|(?:US|TASK|STORY|REQ|FEAT|BUG|TICKET|ITEM)[-_]?[0-9.]+)\]?` +
		`[*_\x60]*(?:\s*[:.\-–—]+\s*|\s+|$)|[\[(](#?[A-Za-z]*-?[0-9]+)[\])][*_\x60]*[:.\s-]+|` +
		`([A-Z]{1,10}[-_][0-9]+(?:\.[0-9]+)*)[*_\x60]*\s*[:–—]\s*)`)
	parallelMark = pattern.New(`(?:^|\s)\[P\](?:\s|$)`)
	optionalWord = pattern.New(`(?i)\s*[(\[]optional[)\]]\s*`)
)

// titled is a heading or an item with its own id and its title, without number, marks and emphasis.
type titled struct {
	id, title          string
	parallel, optional bool
}

func titleOf(s string) (t titled) {
	s = stripEmphasis(s)
	if m := leadingNumber().FindStringSubmatch(s); m != nil {
		t.id, s = m[1]+m[2]+m[3], s[len(m[0]):]
	}
	if m := taskWords().FindStringSubmatch(s); m != nil {
		t.id = cmp.Or(m[1], m[2], m[3], t.id)
		if rest := strings.TrimSpace(s[len(m[0]):]); !strings.HasPrefix(rest, "(") && rest+m[1]+m[2]+m[3] != "" {
			s = rest
		}
	} else if m := leadingCode().FindStringSubmatch(s); m != nil {
		t.id, s = cmp.Or(m[1], m[2], m[3]), s[len(m[0]):]
	}
	strip := func(re *regexp.Regexp) bool {
		at := re.FindStringIndex(s)
		if at != nil {
			s = strings.TrimSpace(s[:at[0]] + " " + s[at[1]:])
		}
		return at != nil
	}
	t.parallel, t.optional = strip(parallelMark()), strip(optionalWord())
	t.title = text.OneLine(s)
	return t
}

var emphasis = pattern.New(`(^|[\s(])(?:\*\*([^*\s](?:[^*]*[^*\s])?)\*\*|__([^_\s](?:[^_]*[^_\s])?)__)([\s).,:;!?–—-]|$)`)

// stripEmphasis takes ** and __ off the words of a title.
func stripEmphasis(s string) string { return emphasis().ReplaceAllString(s, "$1$2$3$4") }

// Counts returns a line with the number of tasks, the left out ones, and the context files.
func (im *Imported) Counts() string {
	criteria := 0
	for _, t := range im.Tasks {
		criteria += len(t.AcceptanceCriteria)
	}
	out := text.Plural(len(im.Tasks), "task") + ", " + criteriaCount(criteria)
	var left []string
	if im.Done > 0 {
		left = append(left, fmt.Sprint(im.Done, " done"))
	}
	if im.Optional > 0 && !im.optional {
		left = append(left, fmt.Sprint(im.Optional, " optional"))
	}
	if len(left) > 0 {
		out += "; " + strings.Join(left, " and ") + " left out"
	}
	if len(im.Context) > 0 {
		out += "; context from " + strings.Join(im.Context, ", ")
	}
	return out
}

func criteriaCount(n int) string {
	return strings.Replace(text.Plural(n, "criterion"), "criterions", "criteria", 1)
}
