package seed

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/git-tilth/git-tilth/internal/pattern"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
	"github.com/git-tilth/git-tilth/internal/validator"
)

// The formats that Import reads.
const (
	formatPlan      = "prd.json"
	formatBundle    = "write_seed bundle"
	formatDirectory = "directory of task files"
	formatTaskFile  = "task file"
	formatRalph     = "Ralph-style prd.json"
	formatChecklist = "markdown checklist"
	formatHeadings  = "markdown plan"
)

// Imported is the content of a file or directory of tasks.
type Imported struct {
	Bundle
	Format   string // in words
	Boxes    bool   // it is a list whose items have checkboxes
	Overview string // the text around the tasks; it becomes the seed's tldr
	// Recognised and Dropped are lines for the user: the imported parts, and the parts left out with the reason.
	Recognised []string
	Dropped    []string

	// done are the ids of finished tasks that were left out; they satisfy needs. A list of finished tasks is no error.
	done  map[string]bool
	lines map[string]int // those in which the tasks begin, where that helps to find them
}

// LeaveOut drops tasks that are done, by id with the commit that did each, and their tests.
func (im *Imported) LeaveOut(done map[string]string) {
	files := slices.Collect(maps.Keys(im.TestFiles))
	left := im.Tasks[:0]
	for _, t := range im.Tasks {
		if done[t.ID] == "" {
			left = append(left, t)
			continue
		}
		im.drop("%s %s: done by commit %.10s, which the base has", t.ID, t.Title, done[t.ID])
		for _, f := range validator.AcceptanceTests(files, t.ID) {
			delete(im.TestFiles, f)
		}
	}
	for i := range left {
		left[i].Needs = slices.DeleteFunc(left[i].Needs, func(id string) bool { return done[id] != "" })
	}
	im.Tasks = left
}

// ImportError is a fault in a list with its place and its fix.
type ImportError struct {
	File string
	Line int // from 1; 0 if the whole file is meant
	Msg  string
	Fix  string // what to do, for a hint line
}

// importError returns an ImportError; fix is the advice.
func importError(file string, line int, fix, format string, args ...any) error {
	return &ImportError{File: file, Line: line, Msg: fmt.Sprintf(format, args...), Fix: fix}
}

func (e *ImportError) Error() string {
	if e.Line > 0 {
		return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Msg)
	}
	return fmt.Sprintf("%s: %s", e.File, e.Msg)
}

const (
	stdinName      = "standard input"
	maxImportBytes = 4 << 20
	formatsHint    = "give a prd.json, a directory of T-NNN-*.md files, a Ralph-style prd.json, " +
		"a markdown checklist, or a plan of ### Task N: headings with checkboxes below"
)

// Import reads tasks from a file, from a directory, or from stdin if path is "-". It changes nothing. The formats are
// in the constants above; a file's format is told by its content.
//
// A directory is laid out like the worktree: a file in it that is named by one of its tasks (tests/test_t001_add.py,
// calc/t001_add_test.go) is imported as an acceptance test at the same relative path.
func Import(path string, stdin io.Reader) (*Imported, error) {
	if path == "-" {
		return importReader(stdinName, stdin)
	}
	// A pipe is accepted, for <(command).
	f, err := os.Open(path)
	if err != nil {
		return nil, importError(path, 0, formatsHint, "%s", plainError(err))
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return importDir(path)
	}
	return importReader(path, f)
}

// Sentence returns one task with the typed sentence as its title and criterion.
func Sentence(said string) *Imported {
	im := newImported("what was typed")
	im.Format = "a sentence"
	said = text.OneLine(said)
	im.Tasks = []session.Task{{ID: taskID(1), Title: text.Clip(said, maxSentence), Description: said,
		AcceptanceCriteria: []string{said}, Status: session.TaskPending}}
	im.recognise("one task: %s", said)
	return im
}

// maxSentence is how much of a sentence is a title, which becomes the subject of a commit.
const maxSentence = 100

func importReader(name string, r io.Reader) (*Imported, error) {
	text, err := readText(name, r)
	if err != nil {
		return nil, err
	}
	im := newImported(name)
	if err := im.parse(name, text); err != nil {
		return nil, err
	}
	return im, im.validate(name)
}

func newImported(source string) *Imported {
	b := Bundle{TestFiles: map[string]string{}, Meta: session.SeedMeta{Source: source}}
	return &Imported{Bundle: b, done: map[string]bool{}, lines: map[string]int{}}
}

// readText reads a bounded UTF-8 text, without its byte order mark and with plain newlines.
func readText(name string, r io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxImportBytes+1))
	switch {
	case err != nil:
		return nil, importError(name, 0, formatsHint, "%s", plainError(err))
	case len(text) > maxImportBytes:
		return nil, importError(name, 0, splitFix, "it is larger than %s", byteSize(maxImportBytes))
	}
	if i := firstBadByte(text); i >= 0 {
		return nil, notUTF8(name, text, i)
	}
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	text = bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, importError(name, 0, formatsHint, "it is empty")
	}
	return text, nil
}

// firstBadByte finds the first NUL or the first byte that is no UTF-8; -1 if there is none.
func firstBadByte(text []byte) int {
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRune(text[i:])
		if r == 0 || (r == utf8.RuneError && n <= 1) {
			return i
		}
		i += n
	}
	return -1
}

func notUTF8(name string, text []byte, at int) error {
	return importError(name, lineAt(text, at), "save it as UTF-8", "it is not UTF-8 text")
}

func lineAt(text []byte, offset int) int {
	return 1 + bytes.Count(text[:min(offset, len(text))], []byte("\n"))
}

// parse reads one text in the format that its content shows.
func (im *Imported) parse(name string, text []byte) error {
	trimmed := bytes.TrimSpace(text)
	isJSON := strings.EqualFold(filepath.Ext(name), ".json")
	switch {
	case trimmed[0] == '{':
		return im.object(name, text)
	case trimmed[0] == '[' && (isJSON || looksLikeList(trimmed)):
		return im.planList(name, text)
	case isJSON:
		return importError(name, 1, formatsHint, "it is neither a JSON list nor a JSON object")
	case isTaskFile(name, trimmed):
		return im.singleTask(name, text)
	}
	return im.checklist(name, text)
}

// looksLikeList reports whether a text is a JSON list and not markdown that opens with a link or a checkbox.
func looksLikeList(text []byte) bool {
	rest := bytes.TrimSpace(text[1:])
	return len(rest) > 0 && (rest[0] == '{' || rest[0] == ']' || rest[0] == '"')
}

// validate checks the result of every format: tasks with valid and unique ids. Check checks the rest of the bundle.
func (im *Imported) validate(name string) error {
	if im.Format != formatBundle { // which has one of its own
		im.Meta.TLDR = im.Overview
	}
	if len(im.Tasks) == 0 && len(im.done) == 0 {
		return importError(name, 0, formatsHint, "it holds no tasks")
	}
	if len(im.Tasks) > maxTasks {
		return tooManyTasks(name, len(im.Tasks))
	}
	for i := range im.Tasks {
		t := &im.Tasks[i]
		t.Needs = slices.DeleteFunc(t.Needs, func(id string) bool { return im.done[id] })
		if bad := badNeeds(im.Tasks, i); len(bad) > 0 {
			return importError(name, im.lines[t.ID], needsFix, "%s", bad[0].Message)
		}
		if bad := badTouches(*t); len(bad) > 0 {
			return importError(name, im.lines[t.ID], touchesFix, "%s", bad[0].Message)
		}
	}
	return nil
}

const (
	splitFix  = "split the feature into smaller seeds"
	ownIDFix  = "give each task an id of its own"
	formIDFix = "use an id like " + taskIDExample
)

func tooManyTasks(name string, tasks int) error {
	return importError(name, 0, splitFix, "it holds %d tasks; at most %d are taken", tasks, maxTasks)
}

func idTwice(name string, line int, id string, before int) error {
	return importError(name, line, ownIDFix, "the id %s was given in line %d already", id, before)
}

func (im *Imported) recognise(format string, args ...any) {
	im.Recognised = append(im.Recognised, fmt.Sprintf(format, args...))
}

func (im *Imported) drop(format string, args ...any) {
	const maxLines = 200
	switch len(im.Dropped) {
	case maxLines:
		im.Dropped = append(im.Dropped, "and more")
	case maxLines + 1:
	default:
		im.Dropped = append(im.Dropped, fmt.Sprintf(format, args...))
	}
}

func taskID(n int) string { return fmt.Sprintf("T-%03d", n) }

// ids hands out task ids. Numbers that a source names are taken first, so that
// the tasks without one never collide with them.
type ids struct {
	taken map[string]int // id → line that took it
	next  int
}

func newIDs() *ids { return &ids{taken: map[string]int{}, next: 1} }

// claim takes an id that the source names; the line that had it before is returned if there is one.
func (n *ids) claim(id string, line int) (before int, ok bool) {
	before, dup := n.taken[id]
	if !dup {
		n.taken[id] = line
	}
	return before, !dup
}

// free gives the lowest number that nothing has claimed.
func (n *ids) free() string {
	for {
		id := taskID(n.next)
		n.next++
		if _, dup := n.taken[id]; !dup {
			n.taken[id] = 0
			return id
		}
	}
}

// leadingID finds a task id at the start of a heading or an item: "T-001: title", "**T-001** title", "[T-001] title".
var leadingID = pattern.New(`^[*_\[(\x60]*(T-[0-9]{3,18})[*_\])\x60]*(?:[\s:.\-–—]+|$)`)

// splitID takes a leading task id off a title.
func splitID(title string) (id, rest string) {
	m := leadingID().FindStringSubmatch(title)
	if m == nil {
		return "", title
	}
	return m[1], strings.TrimSpace(title[len(m[0]):])
}
