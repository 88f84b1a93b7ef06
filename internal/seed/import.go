package seed

import (
	"bytes"
	"cmp"
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
	formatPlan       = "prd.json"
	formatBundle     = "write_seed bundle"
	formatDirectory  = "directory of task files"
	formatTaskFile   = "task file"
	formatRalph      = "Ralph-style prd.json"
	formatTaskMaster = "task-master tasks.json"
	formatIssues     = "list of issues"
	formatLines      = "issues in JSON lines"
	formatBacklog    = "Backlog.md tasks"
	formatMarkdown   = "markdown"
)

// Imported is the content of a file or directory of tasks.
type Imported struct {
	Bundle
	Format   string   // printed
	Done     int      // finished tasks that were left out
	Optional int      // optional tasks and criteria that were left out
	Context  []string // names of files with text outside of tasks
	Dropped  []string // lines for the user: the parts left out with the reason

	// done are the ids of finished tasks that were left out; they satisfy needs. A list of finished tasks is not an
	// error.
	done     map[string]bool
	optional bool             // optional tasks are taken as well
	keys     map[string]bool  // keys already reported as left out
	phases   bool             // numbered headings are phases, as in the lists of spec-kit, OpenSpec and Kiro
	from     map[string]entry // the entries that became tasks, for the place of a fault
}

// LeaveOut drops tasks that are done, by id with the commit that did each, and their tests.
func (im *Imported) LeaveOut(done map[string]string) {
	files := slices.Collect(maps.Keys(im.TestFiles))
	im.Tasks = slices.DeleteFunc(im.Tasks, func(t session.Task) bool {
		if done[t.ID] == "" {
			return false
		}
		im.drop("%s %s: done by commit %.10s, which the base has", t.ID, t.Title, done[t.ID])
		for _, f := range validator.AcceptanceTests(files, t.ID) {
			delete(im.TestFiles, f)
		}
		return true
	})
	for i, t := range im.Tasks {
		im.Tasks[i].Needs = slices.DeleteFunc(t.Needs, func(id string) bool { return done[id] != "" })
	}
}

// ImportError is a fault in a list with its place and its fix.
type ImportError struct {
	File string
	Line int // starts at 1; 0 for the whole file
	Msg  string
	Fix  string // the fix, for a hint line
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
// in the constants above; the content decides the format. With optional it imports optional tasks as well.
//
// A directory is laid out like the worktree: a file in it that is named by one of its tasks (tests/test_t001_add.py,
// calc/t001_add_test.go) is imported as an acceptance test at the same relative path.
func Import(path string, stdin io.Reader, optional bool) (*Imported, error) {
	if path == "-" {
		return importReader(stdinName, stdin, optional)
	}
	// A pipe is accepted, for <(command).
	f, err := os.Open(path)
	if err != nil {
		return nil, importError(path, 0, formatsHint, "%s", plainError(err))
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return importDir(path, optional)
	}
	return importReader(path, f, optional)
}

// Sentence returns one task with the typed sentence as its title and criterion.
func Sentence(said string) *Imported {
	im := newImported("the sentence", false)
	im.Format = "a sentence"
	_ = im.add([]entry{{title: text.OneLine(said)}}, true)
	return im
}

func importReader(name string, r io.Reader, optional bool) (*Imported, error) {
	im := newImported(name, optional)
	text, err := readText(name, r)
	if err == nil {
		err = im.parse(name, text)
	}
	if err != nil {
		return nil, err
	}
	return im, im.validate(name)
}

func newImported(source string, optional bool) *Imported {
	b := Bundle{TestFiles: map[string]string{}, Meta: session.SeedMeta{Source: source}}
	return &Imported{Bundle: b, done: map[string]bool{}, from: map[string]entry{}, keys: map[string]bool{},
		optional: optional}
}

// readText reads a bounded UTF-8 text, without its byte order mark and with plain newlines.
func readText(name string, r io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxImportBytes+1))
	switch {
	case err != nil:
		return nil, importError(name, 0, formatsHint, "%s", plainError(err))
	case len(text) > maxImportBytes:
		return nil, importError(name, 0, splitFix, "it is larger than %s", kilobytes(maxImportBytes))
	}
	if err := checkUTF8(name, text); err != nil {
		return nil, err
	}
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	text = bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, importError(name, 0, formatsHint, "it is empty")
	}
	return text, nil
}

// checkUTF8 refuses bytes that are not text, and names their line.
func checkUTF8(name string, text []byte) error {
	i := bytes.IndexByte(text, 0)
	if i < 0 && !utf8.Valid(text) {
		i = bytes.IndexRune(text, utf8.RuneError)
	}
	if i < 0 {
		return nil
	}
	return importError(name, lineAt(text, i), "save it as UTF-8", "it is not UTF-8 text")
}

func lineAt(text []byte, offset int) int {
	return 1 + bytes.Count(text[:min(offset, len(text))], []byte("\n"))
}

// parse reads one text in the format that its content shows.
func (im *Imported) parse(name string, text []byte) error {
	trimmed, ext := bytes.TrimSpace(text), strings.ToLower(filepath.Ext(name))
	switch {
	case trimmed[0] == '{':
		return im.jsonObject(name, text)
	case jsonStart().Match(trimmed), ext == ".json":
		return im.jsonList(name, text)
	case converters[ext] != "":
		return importError(name, 0, converters[ext]+" "+name+" converts it; in Markdown a task begins with - [ ]",
			"%s is not read: a list is Markdown or JSON", ext[1:])
	case isTaskFile(name, string(text)):
		im.Format = formatTaskFile
		e, err := im.taskFile(name, string(text))
		if err != nil {
			return err
		}
		return im.add([]entry{e}, true)
	}
	return im.list(name, string(text))
}

// converters convert files that are not read.
var converters = map[string]string{".org": "pandoc -f org -t gfm", ".rst": "pandoc -f rst -t gfm",
	".adoc": "npx downdoc -o -", ".yaml": "yq -o json", ".yml": "yq -o json"}

// list reads a Markdown text. Title and description of its front matter are context.
func (im *Imported) list(name, data string) error {
	front, body, first := splitFrontmatter(data)
	im.dropKeys(name, slices.DeleteFunc(front, func(k field) bool {
		switch strings.ToLower(k.key) {
		case "title":
			im.Meta.TLDR = cmp.Or(im.Meta.TLDR, text.OneLine(k.value.Str))
			return true
		case "description":
			im.note(filepath.Base(name), k.value.Str)
			return true
		}
		return false
	}))
	return im.markdown(name, body, first)
}

// jsonStart matches the start of a JSON list, but not a Markdown link or checkbox.
var jsonStart = pattern.New(`^\[\s*[{\]"]`)

// validate checks the result of every format: tasks with valid and unique ids. Check checks the rest of the bundle.
func (im *Imported) validate(name string) error {
	if len(im.Tasks) == 0 && len(im.done) == 0 {
		return importError(name, 0, formatsHint, "it holds no tasks")
	}
	for i := range im.Tasks {
		t := &im.Tasks[i]
		t.Needs = slices.DeleteFunc(t.Needs, func(id string) bool { return im.done[id] })
		c := &checker{bundle: &im.Bundle}
		c.task(i)
		if len(c.violations) > 0 {
			from := im.from[t.ID]
			return importError(cmp.Or(from.file, name), from.line, "correct the task in the list", "%s",
				c.violations[0].Message)
		}
	}
	return nil
}

const splitFix = "split the feature into smaller seeds"

// note adds texts outside tasks, which every worker and evaluator sees. name is their file.
func (im *Imported) note(name string, notes ...string) {
	for _, n := range notes {
		n = strings.TrimSpace(n)
		switch {
		case n == "":
			continue
		case len(n) > maxTextBytes:
			im.drop("%s: text beyond %s", name, kilobytes(maxTextBytes))
		}
		im.Meta.ScopeNotes = append(im.Meta.ScopeNotes, text.HeadBytes(n, maxTextBytes))
		if !slices.Contains(im.Context, name) {
			im.Context = append(im.Context, name)
		}
	}
}

func (im *Imported) drop(format string, args ...any) {
	const maxLines = 200
	if im.Dropped = append(im.Dropped, fmt.Sprintf(format, args...)); len(im.Dropped) > maxLines {
		im.Dropped = append(im.Dropped[:maxLines], "and more")
	}
}

func taskID(n int) string { return fmt.Sprintf("T-%03d", n) }

func itoa(n int) string { return fmt.Sprint(n) }
