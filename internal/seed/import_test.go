package seed

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/git-tilth/git-tilth/internal/session"
)

// outline is a task as one string: id|title|description|criterion/criterion.
func outline(t session.Task) string {
	text := t.ID + "|" + t.Title + "|" + strings.ReplaceAll(t.Description, "\n", "⏎") + "|" + strings.Join(
		t.AcceptanceCriteria,
		"/",
	)
	if len(t.Needs) > 0 {
		text += "|" + strings.Join(t.Needs, "/")
	}
	if len(t.Touches) > 0 {
		text += "|touches " + strings.Join(t.Touches, " ")
	}
	return text
}

func outlines(im *Imported) string {
	var out []string
	for _, t := range im.Tasks {
		out = append(out, outline(t))
	}
	return strings.Join(out, "\n")
}

func importText(t *testing.T, name, text string) (*Imported, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	write(t, file, text)
	return Import(file, nil, false)
}

func TestImportFormats(t *testing.T) {
	cases := []struct {
		name, file, text string
		format, want     string
		dropped          string // parts that the dropped lines hold
	}{
		{"plan", "prd.json", `[
{"id":"T-001","title":"Add","description":"d","acceptance_criteria":["a","b"],"status":"pending","owner":"x"},
{"id":"T-002","title":"Done","description":"","acceptance_criteria":["a"],"status":"done"},
{"id":"T-003","title":"Failed","acceptance_criteria":["a"],"status":"failed"}]`,
			formatPlan, "T-001|Add|d|a/b\nT-003|Failed||a", ""},
		{
			"plan without .json",
			"tasks",
			` [ {"id":"T-001","title":"Add","acceptance_criteria":["a"]} ]`,
			formatPlan,
			"T-001|Add||a",
			"",
		},
		{
			"bundle",
			"seed.json",
			`{"prd_entries":[{"id":"T-001","title":"Add","description":"d","acceptance_criteria":["a"]}],"test_files":{"t001.py":"assert x"},"tldr":"why"}`,
			formatBundle,
			"T-001|Add|d|a",
			"",
		},
		{"ralph", "prd.json", `{"project":"Calc","branchName":"ralph/calc","description":"Adding things","userStories":[
{"id":"US-003","title":"Third","description":"c","acceptanceCriteria":["x"],"priority":3,"passes":false,"notes":"mind this"},
{"id":"US-001","title":"First","description":"a","acceptanceCriteria":["x","y"],"priority":1,"passes":true},
{"id":"US-002","title":"Second\nline","description":"b","acceptanceCriteria":["x"],"priority":2}]}`,
			formatRalph, "T-002|Second line|b|x\nT-003|Third|c⏎⏎Notes: mind this|x", "branchName"},
		{
			"ralph with odd ids",
			"prd.json",
			`{"userStories":[{"id":"login","title":"A","acceptanceCriteria":["x"]},{"id":7,"title":"B","acceptanceCriteria":["y"],"priority":1}]}`,
			formatRalph,
			"T-001|B||y\nT-002|A||x",
			"",
		},
		{
			"ralph with repeated numbers",
			"prd.json",
			`{"userStories":[{"id":"a-1","title":"A","acceptanceCriteria":["x"]},{"id":"b-1","title":"B","acceptanceCriteria":["y"]}]}`,
			formatRalph,
			"T-001|A||x\nT-002|B||y",
			"",
		},
		{"checklist", "todo.md", `# Calculator

Some words.

## First part

- [ ] **Add numbers**
  In calc.py.
  - add(1, 2) is 3
  - add rejects:
    - text
    - lists
- [x] Done already
  - never seen
- [ ] T-007: Subtract
  1. sub(3, 2) is 1
     and nothing else
- plain bullet

## Second part

* [ ] Alone
`, formatMarkdown, "T-001|Add numbers|Section: First part⏎⏎In calc.py.|add(1, 2) is 3/add rejects: text; lists\n" +
			"T-007|Subtract|Section: First part|sub(3, 2) is 1 and nothing else\n" +
			"T-002|Alone|Section: Second part|Alone", ""},
		{"checklist with checkboxes below", "todo.md", "- [ ] A\n\t- [ ] one\n\t- [x] two\n- [ ] B\n", formatMarkdown,
			"T-001|A||one/two\nT-002|B||B", ""},
		{"checklist that begins with a box", "x", "[link](y)\n- [ ] A\r\n", formatMarkdown, "T-001|A||A", ""},
		{
			"checklist with code",
			"todo.md",
			"- [ ] A\n\n  ```\n  - [ ] not an item\n  ```\n\n  - one\n",
			formatMarkdown,
			"T-001|A|```⏎- [ ] not an item⏎```|one",
			"",
		},
		{"checklist with front matter", "todo.md", "---\ntitle: Plan\n---\n- [ ] A\n- [ ] B\n", formatMarkdown,
			"T-001|A||A\nT-002|B||B", ""},
		{"checklist with empty front matter", "todo.md", "---\n---\n- [ ] A\n", formatMarkdown, "T-001|A||A", ""},
		{"task file whose criteria have boxes", "x.md",
			"---\ntitle: A\n---\n# T-001\n\n## Acceptance criteria\n- [ ] a\n", formatTaskFile, "T-001|A||a", ""},
		{"numbered checklist", "todo.md", "1. [ ] A\n   - one\n2. [X] B\n3. [ ] C\n", formatMarkdown,
			"T-001|A||one\nT-002|C||C", ""},
		{"one task file", "T-001-add.md",
			"---\nid: T-001\ntitle: \"Add: it\"\n---\n\nWords.\n\n## Acceptance criteria\n- a\n- b\n  more\n",
			formatTaskFile, "T-001|Add: it|Words.|a/b more", ""},
		{"criteria below a line in bold", "T-001-x.md",
			"# Add\n\nWords in **bold**.\n\n**Acceptance Criteria:**\n\n- a\n- b\n", formatTaskFile,
			"T-001|Add|Words in **bold**.|a/b", ""},
		{
			"items in comments",
			"todo.md",
			"<!-- how to write one:\n- [ ] Title\n  - criterion\n-->\n- [ ] A <!-- 5 -->\n  <!-- - hidden -->\n  - " +
				"one `<!-- shown -->`\n- [ ] B <!-- and\n  C\n  -->\n  - two\n- [ ] a <!-- b\n",
			formatMarkdown,
			"T-001|A||one `<!-- shown -->`\nT-002|B||two\nT-003|a <!-- b||a <!-- b",
			"",
		},
		{
			"comments in code",
			"todo.md",
			"- [ ] A\n\n  ```\n  <!--\n  ```\n\n- [ ] B\n",
			formatMarkdown,
			"T-001|A|```⏎<!--⏎```|A\nT-002|B||B",
			"",
		},
		{"a description with a heading", "T-001-x.md",
			"# Add\n\n## Description\n\nWords.\n\n### How\n\nSo.\n\n## Acceptance Criteria\n\n- a\n", formatTaskFile,
			"T-001|Add|Words.⏎⏎### How⏎⏎So.|a", ""},
		{"a description behind the criteria", "T-001-x.md",
			"# Add\n\n**Acceptance criteria:**\n- a\n\n**Description:**\nWords.\n", formatTaskFile,
			"T-001|Add|Words.|a", ""},
		{"task headings", "plan.md", `# Plan: Calculator

## Overview
Some words.

## Validation Commands
- ` + "`go test ./...`" + `

## Implementation Steps

### Task 1: Add numbers
**Files:**
- Modify: calc.go

- [ ] add(1, 2) is 3
  - also with floats
- [x] it has a doc comment

More words.

### Task 2: Done already
- [x] all of it

### Iteration 2.5: Clean up
- [ ] no dead code

### Task 4 — Nothing to check
Words only.

## Afterwards
- [ ] never a task
`, formatMarkdown, "T-001|Add numbers|**Files:**⏎- Modify: calc.go⏎⏎More words.|add(1, 2) is 3: also with floats/it has a doc comment\n" +
			"T-002|Clean up||no dead code\nT-003|Nothing to check|Words only.|Nothing to check", "never"},
		{"headings with ids", "plan.md", "## T-003: A\n- [ ] a\n## T-001 B\n- [ ] b\n", formatMarkdown,
			"T-003|A||a\nT-001|B||b", ""},
		{"a heading without boxes below it is no task", "todo.md", "## Task 1: A\nwords\n## Others\n- [ ] B\n",
			formatMarkdown, "T-001|B|Section: Others|B", ""},
		{"needs", "prd.json", `[{"id":"T-001","title":"A","acceptance_criteria":["a"],"status":"done"},
{"id":"T-002","title":"B","acceptance_criteria":["a"],"needs":["T-001"]},{"id":"T-003","title":"C","acceptance_criteria":["a"],"needs":["T-001","T-002"]}]`,
			formatPlan, "T-002|B||a\nT-003|C||a|T-002", ""},
		{"a checklist with needs and touches", "todo.md", `- [ ] T-001 A
  - Touches: ` + "`src/*.go`, `docs/`" + `
  - a
- [ ] B
  needs: T-001
  touches: test/
  - Needs: a cup of tea
`, formatMarkdown, "T-001|A||a|touches src/*.go docs/\nT-002|B||Needs: a cup of tea|T-001|touches test/", ""},
		{"a plan with needs and touches", "plan.md", `### Task 1: A
Touches: src/
- [ ] a
### Task 2: B
- needs: T-001
- [ ] touches: nothing else
`, formatMarkdown, "T-001|A||a|touches src/\nT-002|B||touches: nothing else|T-001", ""},
		{"byte order mark", "todo.md", "\ufeff- [ ] A\n", formatMarkdown, "T-001|A||A", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			im, err := importText(t, c.file, c.text)
			if err != nil {
				t.Fatal(err)
			}
			if im.Format != c.format || outlines(im) != c.want {
				t.Errorf("%s\n%s\nwant %s\n%s", im.Format, outlines(im), c.format, c.want)
			}
			for _, d := range strings.Fields(c.dropped) {
				if !strings.Contains(strings.Join(im.Dropped, "\n"), d) {
					t.Errorf("%q is not among the dropped: %q", d, im.Dropped)
				}
			}
			if c.dropped == "" && len(im.Dropped) > 0 {
				t.Errorf("dropped: %q", im.Dropped)
			}
			if got := Check(&im.Bundle, Rules{Root: t.TempDir()}); len(got) > 0 {
				t.Errorf("the import breaks rules: %v", got)
			}
		})
	}
}

func TestImportKeepsWhatItDoesNotKnow(t *testing.T) {
	im, err := importText(
		t,
		"prd.json",
		`[{"id":"T-001","title":"A","acceptance_criteria":["x"],"owner":{"name":"y"}}]`,
	)
	if err != nil {
		t.Fatal(err)
	}
	if raw, _ := session.FormatTasks(im.Tasks[:1]); !strings.Contains(string(raw), `"name": "y"`) {
		t.Errorf("%s", raw)
	}
	im, err = importText(
		t,
		"prd.json",
		`{"project":"P","description":"D","userStories":[{"id":"US-9","title":"A","acceptanceCriteria":["x"],"priority":2}]}`,
	)
	if err != nil {
		t.Fatal(err)
	}
	if raw, _ := session.FormatTasks(im.Tasks[:1]); !strings.Contains(string(raw), `"source_id": "US-9"`) ||
		im.Meta.TLDR != "P: D" ||
		im.Tasks[0].ID != "T-009" {
		t.Errorf("%s %q", raw, im.Meta.TLDR)
	}
}

func TestImportErrors(t *testing.T) {
	cases := []struct {
		name, file, text string
		line             int
		says             string
	}{
		{"empty", "prd.json", " \n", 0, "empty"},
		{"broken JSON", "prd.json", "[\n{\"id\":\n]", 3, "not valid JSON"},
		{"cut off", "prd.json", "[\n{\"id\":\"T-001\",\n", 2, "not valid JSON"},
		{"two values", "prd.json", "[]\n[]", 2, "not valid JSON"},
		{"no tasks", "prd.json", "[]", 0, "no tasks"},
		{"bad id", "prd.json", "[\n\n{\"id\":\"T-1\",\"title\":\"x\",\"acceptance_criteria\":[\"y\"]}]", 3, "T-1"},
		{"no title", "prd.json", `[{"id":"T-001"}]`, 1, "no acceptance criteria"},
		{"no criteria", "prd.json", `[{"id":"T-001","title":"x"}]`, 1, "no acceptance criteria"},
		{"wrong type", "prd.json", `[{"id":"T-001","title":5}]`, 1, "not a text"},
		{"unknown status", "prd.json", `[{"id":"T-001","title":"x","acceptance_criteria":["y"],"status":"wip"}]`, 1,
			"status of"},
		{"duplicate", "prd.json",
			"[{\"id\":\"T-001\",\"title\":\"x\",\"acceptance_criteria\":[\"y\"]},\n{\"id\":\"T-001\",\"title\":\"x\"," +
				"\"acceptance_criteria\":[\"y\"]}]",
			2, "line 1"},
		{"an object of another kind", "package.json", `{"name":"x"}`, 1, "userStories"},
		{"bundle with a fault", "seed.json", `{"prd_entries":[],"x":1}`, 0, "unknown-key"},
		{"stories no list", "prd.json", "{\"project\":\"x\",\n\"userStories\":5}", 2, "is not a list"},
		{"story no object", "prd.json", `{"userStories":[[]]}`, 1, "not a JSON object"},
		{"story without title", "prd.json", "{\"userStories\":[\n{\"id\":\"US-1\"}]}", 2, "no title"},
		{
			"story twice",
			"prd.json",
			`{"userStories":[{"id":1,"title":"x","acceptanceCriteria":["y"]},{"id":"1","title":"x","acceptanceCriteria":["y"]}]}`,
			1,
			"line 1",
		},
		{"no checklist", "notes.md", "# Words\n\nNothing else.\n", 0, "no checklist items"},
		{"org-mode", "todo.org", "* TODO Add one\n- [ ] one() returns 1\n", 0, "org is not read"},
		{"AsciiDoc", "todo.adoc", "* [ ] Add one\n** [ ] one() returns 1\n", 0, "adoc is not read"},
		{"YAML", "plan.yaml", "tasks:\n  - title: Add one\n", 0, "yaml is not read"},
		{"a plain list", "notes.md", "# Words\n\n- a bullet\n", 3, "only items with a checkbox"},
		{"a numbered list", "notes.md", "1. one\n2. two\n", 1, "only items with a checkbox"},
		{"only hidden items", "todo.md", "<!--\n- [ ] a\n-->\n", 0, "no checklist items"},
		{"a task heading without words", "plan.md", "### Task 1:\n- [ ] a\n", 1, "no title"},
		{"needs a later task", "prd.json",
			"[{\"id\":\"T-001\",\"title\":\"x\",\"acceptance_criteria\":[\"y\"],\"needs\":[\"T-002\"]}," +
				"\n{\"id\":\"T-002\",\"title\":\"x\",\"acceptance_criteria\":[\"y\"]}]",
			1, "not an earlier task"},
		{"a task file that needs itself", "T-001-x.md", "---\nneeds: [T-001]\n---\n## Acceptance criteria\n- x\n", 1,
			"itself"},
		{"item without text", "todo.md", "- [ ] a\n- [ ]\n", 2, "no title"},
		{"id twice in a checklist", "todo.md", "- [ ] T-001 a\n- [ ] T-001 b\n", 2, "line 1"},
		{"open frontmatter", "T-001-x.md", "---\nid: T-001\n", 1, "no bullet below ## Acceptance criteria"},
		{"file name and id", "T-001-x.md", "---\ntitle: a\nid: T-002\n---\n## Acceptance criteria\n- x\n", 3,
			"differs from the file"},
		{"no criteria heading", "T-001-x.md", "words\n", 1, "Acceptance criteria"},
		{"no bullet", "T-001-x.md", "words\n\n## Acceptance Criteria\nwords\n", 1, "no bullet"},
		{"not UTF-8", "todo.md", "- [ ] a\n- [ ] \xff\n", 2, "UTF-8"},
		{"NUL", "todo.md", "- [ ] a\x00\n", 1, "UTF-8"},
		{"too large", "todo.md", "- [ ] a\n" + strings.Repeat("words\n", 1<<20), 0, "larger"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := importText(t, c.file, c.text)
			var ie *ImportError
			if !errors.As(err, &ie) {
				t.Fatalf("%v", err)
			}
			if ie.Line != c.line || !strings.Contains(ie.Msg, c.says) || ie.Fix == "" ||
				!strings.HasSuffix(ie.File, c.file) {
				t.Errorf("line %d: %s (hint: %s); want line %d, %q", ie.Line, ie.Msg, ie.Fix, c.line, c.says)
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("more than one line: %q", err)
			}
		})
	}
}

func TestImportOfWhatIsDone(t *testing.T) {
	for _, text := range []string{
		"- [x] a\n", "### Task 1: A\n- [x] a\n", `{"userStories":[{"id":1,"title":"x","passes":true}]}`,
		`[{"id":"T-001","title":"A","acceptance_criteria":["x"],"status":"done"}]`,
	} {
		if im, err := Import("-", strings.NewReader(text), false); err != nil || len(im.Tasks) > 0 || im.Done != 1 {
			t.Errorf("%s: %+v %v", text, im, err)
		}
	}
}

func TestImportStdin(t *testing.T) {
	for text, format := range map[string]string{
		"- [ ] a\n": formatMarkdown,
		`[{"id":"T-001","title":"x","acceptance_criteria":["y"]}]`:            formatPlan,
		`{"userStories":[{"id":"1","title":"x","acceptanceCriteria":["y"]}]}`: formatRalph,
		"---\nid: T-004\ntitle: x\n---\n## acceptance criteria:\n* [ ] one\n": formatTaskFile,
	} {
		im, err := Import("-", strings.NewReader(text), false)
		if err != nil || im.Format != format || im.Meta.Source != "standard input" {
			t.Errorf("%s: %+v %v", format, im, err)
		}
	}
	_, err := Import("-", strings.NewReader(""), false)
	if err == nil || !strings.Contains(err.Error(), "standard input") {
		t.Error(err)
	}
}

func taskText(id, title string) string {
	return "---\nid: " + id + "\ntitle: " + title +
		"\n---\nDo it in calc.py.\n\n## Acceptance criteria\n\n- one\n- two\n\n## Notes\n\nmore\n"
}

func TestImportDirectory(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "overview.md"), "---\ntitle: x\n---\n# Calculator\n\nWhy.\n")
	write(t, filepath.Join(dir, "T-002-sub.md"), taskText("T-002", "Subtract"))
	write(t, filepath.Join(dir, "T-001-add.md"), taskText("T-001", "'It''s adding' # not this"))
	write(t, filepath.Join(dir, "T-003-done.md"), "---\nstatus: done\npriority: 3\nowner: x\n---\n# T-003: Gone\n")
	write(t, filepath.Join(dir, "T-005-no.md"), "---\nstatus: Skipped\n---\n# T-005: Unwanted\n")
	write(t, filepath.Join(dir, "T-004.md"),
		"# T-004 From the heading\n\nWords.\n\n### ACCEPTANCE CRITERIA\n\n1. one\n")
	write(t, filepath.Join(dir, "README.md"), "x")
	write(t, filepath.Join(dir, "tests", "test_t001_add.py"), "assert x\r\n")
	write(t, filepath.Join(dir, "tests", "conftest.py"), "x")
	write(t, filepath.Join(dir, "tests", "test_t009.py"), "x")
	write(t, filepath.Join(dir, "t002_sub_test.go"), "package calc\n")
	write(t, filepath.Join(dir, ".hidden", "t001.py"), "x")
	link(t, "/etc/hostname", filepath.Join(dir, "tests", "test_t002_link.py"))
	im, err := Import(dir, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	want := "T-001|It's adding|Do it in calc.py.⏎⏎## Notes⏎⏎more|one/two\nT-002|Subtract|Do it in calc.py.⏎⏎## " +
		"Notes⏎⏎more|one/two\nT-004|From the heading|Words.|one"
	if outlines(im) != want {
		t.Errorf("got\n%s\nwant\n%s", outlines(im), want)
	}
	if im.Meta.TLDR != "# Calculator\n\nWhy." || im.Bundle.Meta.TLDR != im.Meta.TLDR {
		t.Errorf("%q", im.Meta.TLDR)
	}
	if len(im.TestFiles) != 2 || im.TestFiles["tests/test_t001_add.py"] != "assert x\r\n" ||
		im.TestFiles["t002_sub_test.go"] == "" {
		t.Errorf("%v", im.TestFiles)
	}
	dropped := strings.Join(im.Dropped, "\n")
	for _, d := range []string{"README.md", `T-005-no.md:4: "Unwanted": its status is Skipped`, `T-003-done.md:4: the key "owner"`,
		"conftest.py", "test_t009", "test_t002_link.py: neither"} {
		if !strings.Contains(dropped, d) {
			t.Errorf("%q is not among the dropped:\n%s", d, dropped)
		}
	}
}

func TestImportDirectoryErrors(t *testing.T) {
	cases := []struct {
		name string
		fill func(dir string)
		says string
	}{
		{"empty", func(string) {}, "no T-NNN-*.md"},
		{"an empty prd.json in it", func(d string) { write(t, filepath.Join(d, "prd.json"), "[]") },
			"it holds no tasks"},
		{"a broken prd.json in it", func(d string) { write(t, filepath.Join(d, "prd.json"), "[\n{") }, "prd.json:2"},
		{"the same id twice", func(d string) {
			write(t, filepath.Join(d, "T-001-a.md"), taskText("T-001", "a"))
			write(t, filepath.Join(d, "T-001-b.md"), taskText("T-001", "b"))
		}, "T-001-a.md already"},
		{"a FIFO", func(d string) {
			if err := syscall.Mkfifo(filepath.Join(d, "T-001-a.md"), 0o600); err != nil {
				t.Fatal(err)
			}
		}, "not a regular file"},
		{"a symlink out", func(d string) { link(t, "/etc/hostname", filepath.Join(d, "T-001-a.md")) }, "T-001-a.md"},
		{"a directory", func(d string) { write(t, filepath.Join(d, "T-001-a.md", "x"), "") }, "not a regular file"},
		{"a test that is no text", func(d string) {
			write(t, filepath.Join(d, "T-001-a.md"), taskText("T-001", "a"))
			write(t, filepath.Join(d, "tests", "t001.py"), "a\n\xff")
		}, "t001.py:2"},
		{"a test too large", func(d string) {
			write(t, filepath.Join(d, "T-001-a.md"), taskText("T-001", "a"))
			write(t, filepath.Join(d, "tests", "t001.py"), strings.Repeat("x", maxFileBytes+1))
		}, "too large"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			c.fill(dir)
			_, err := Import(dir, nil, false)
			var ie *ImportError
			if !errors.As(err, &ie) || !strings.Contains(err.Error(), c.says) || ie.Fix == "" {
				t.Errorf("%v", err)
			}
		})
	}
	if _, err := Import(filepath.Join(t.TempDir(), "none"), nil, false); err == nil ||
		!strings.Contains(err.Error(), "no such file") {
		t.Error(err)
	}
}

func TestImportDirectoryWithAPlan(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "overview.md"), "# Calculator\n")
	write(
		t,
		filepath.Join(dir, "prd.json"),
		`{"userStories":[{"id":"US-001","title":"Add","acceptanceCriteria":["a"]}]}`,
	)
	write(t, filepath.Join(dir, "tests", "test_t001_add.py"), "assert x\n")
	// A session directory has a worktree. Its tests have other paths and may belong to other features.
	write(t, filepath.Join(dir, "workspace", ".git"), "gitdir: x\n")
	write(t, filepath.Join(dir, "workspace", "test_t001_old.py"), "assert x\n")
	im, err := Import(dir, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	if im.Format != formatRalph || im.Meta.Source != dir || outlines(im) != "T-001|Add||a" ||
		im.Meta.TLDR != "# Calculator" ||
		len(im.Dropped) != 0 {
		t.Errorf("%+v", im)
	}
	if len(im.TestFiles) != 1 || im.TestFiles["tests/test_t001_add.py"] == "" {
		t.Errorf("%v", im.TestFiles)
	}
	// Task files outrank it.
	write(t, filepath.Join(dir, "T-001-sub.md"), taskText("T-001", "Subtract"))
	if im, err = Import(dir, nil, false); err != nil || im.Format != formatDirectory ||
		!strings.Contains(strings.Join(im.Dropped, " "), "prd.json") {
		t.Errorf("%+v %v", im, err)
	}
}

func TestImportFromARepositoryTakesNoTests(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, ".git", "HEAD"), "x")
	write(t, filepath.Join(dir, "T-001-a.md"), taskText("T-001", "a"))
	write(t, filepath.Join(dir, "tests", "test_t001_old.py"), "x")
	im, err := Import(dir, nil, false)
	if err != nil || len(im.TestFiles) > 0 || len(im.Dropped) != 1 {
		t.Errorf("%+v %v", im, err)
	}
}

func TestImportFromAPipe(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := w.WriteString("- [ ] a\n"); err != nil {
		t.Fatal(err)
	}
	w.Close()
	im, err := Import("/dev/fd/"+itoa(int(r.Fd())), nil, false)
	if err != nil || len(im.Tasks) != 1 {
		t.Errorf("%+v %v", im, err)
	}
}

// FuzzImport: any text is either imported, so that only rules on sizes and titles can refuse it, or gives one clear
// error.
func FuzzImport(f *testing.F) {
	for _, s := range []string{
		"- [ ] a\n  - b\n", "1. [x] a", "---\nid: T-001\ntitle: >\n  a\n  b\n---\n## Acceptance criteria\n- x\n",
		"# x\n```\n- [ ] a",
		`[{"id":"T-001","title":"x","acceptance_criteria":["y"]}]`, `{"userStories":[{"id":"US-1","title":"x","acceptanceCriteria":["y"],"priority":-1e308}]}`,
		`{"prd_entries":[],"test_files":{}}`, "---\n", "- [ ]", "\t- [ ] T-001", "- [ ] **T-002**: b", "[", "{", "[{\"id\":", "- [ ] a\n\t- b\n\t\t- c\n",
	} {
		for _, name := range []string{"x", "x.json", "T-001-x.md"} {
			f.Add(name, []byte(s))
		}
	}
	f.Fuzz(func(t *testing.T, name string, raw []byte) {
		text, err := readText(name, strings.NewReader(string(raw)))
		if err != nil {
			return
		}
		im := newImported(name, false)
		if err = im.parse(name, text); err == nil {
			err = im.validate(name)
		}
		if err != nil {
			var ie *ImportError
			if !errors.As(err, &ie) || ie.Msg == "" || ie.Fix == "" || ie.Line < 0 ||
				ie.Line > strings.Count(string(text), "\n")+1 {
				t.Fatalf("%#v", err)
			}
			return
		}
		if len(im.Tasks) == 0 && im.Done+im.Optional+len(im.Dropped) > 0 {
			return // every task is done
		}
		for _, v := range Check(&im.Bundle, Rules{Root: t.TempDir()}) {
			switch v.Rule {
			case "id", "duplicate", "no-tasks", "shape", "unknown-key", "status":
				t.Errorf("%s: %v", im.Format, v)
			case "criteria":
				if im.Format == formatMarkdown || im.Format == formatTaskFile {
					t.Errorf("%s: %v", im.Format, v)
				}
			}
		}
	})
}

// TestDeepNesting: marks of quotes and lists far beyond any real list are cut, and the text behind them stays.
func TestDeepNesting(t *testing.T) {
	for _, marks := range []string{">", "> ", "- ", "1. ", "> - "} {
		for _, depth := range []int{3, 20000} {
			im, err := importText(t, "todo.md", "- [ ] A\n\n# Notes\n\n"+strings.Repeat(marks, depth)+"deep\n")
			if err != nil || len(im.Tasks) != 1 || len(im.Meta.ScopeNotes) != 1 {
				t.Fatalf("%d times %q: %+v %v", depth, marks, im, err)
			}
			note := im.Meta.ScopeNotes[0]
			if !strings.Contains(note, "deep") || len(note) > 2*maxNesting ||
				depth == 3 && !strings.Contains(note, strings.Repeat(marks, 3)+"deep") {
				t.Errorf("%d times %q: %.300s", depth, marks, note)
			}
		}
	}
}
