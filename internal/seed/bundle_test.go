package seed

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/git-tilth/git-tilth/internal/session"
)

// oneEntry returns a valid entry of prd.json, as write_seed sends it.
func oneEntry(n int) map[string]any {
	return map[string]any{
		"id": fmt.Sprintf("T-%03d", n), "title": fmt.Sprintf("Add part %d", n), "description": "In calc.py.",
		"acceptance_criteria": []string{"add(1, 2) returns 3"},
	}
}

func testPath(n int) string { return fmt.Sprintf("tests/test_t%03d_add.py", n) }

// arguments is a sound bundle of n tasks; change may spoil it.
func arguments(t testing.TB, n int, change func(b map[string]any)) []byte {
	t.Helper()
	entries, files := []any{}, map[string]any{}
	for i := 1; i <= n; i++ {
		entries = append(entries, oneEntry(i))
		files[testPath(i)] = "def test_add():\n    assert 1 + 2 == 4\n"
	}
	b := map[string]any{"prd_entries": entries, "test_files": files, "tldr": "Adding.",
		"open_questions": []string{}, "blockers": []string{}, "scope_notes": []string{"no floats"}}
	if change != nil {
		change(b)
	}
	raw, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func soundBundle(t testing.TB, n int) *Bundle {
	t.Helper()
	b, err := parseBundle(arguments(t, n, nil))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func ruleNames(vs []Violation) []string {
	var out []string
	for _, v := range vs {
		if !slices.Contains(out, v.Rule) {
			out = append(out, v.Rule)
		}
	}
	return out
}

func first(b map[string]any) map[string]any { return b["prd_entries"].([]any)[0].(map[string]any) }

func put(path string) func(map[string]any) {
	return func(b map[string]any) { b["test_files"].(map[string]any)[path] = "assert x\n" }
}

// worktree creates a directory with obstacles for a bundle.
func worktree(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, ".git"), "gitdir: elsewhere\n")
	write(t, filepath.Join(dir, "calc.py"), "def add(a, b): ...\n")
	write(t, filepath.Join(dir, "tests", "test_old.py"), "assert 1\n")
	write(t, filepath.Join(dir, "tests", "test_t001_here.py"), "assert 1\n")
	write(t, filepath.Join(dir, "nested", ".git", "HEAD"), "ref: refs/heads/main\n")
	outside := t.TempDir()
	link(t, outside, filepath.Join(dir, "out"))
	link(t, "tests", filepath.Join(dir, "alias"))
	link(t, "nowhere", filepath.Join(dir, "tests", "test_t001_dangling.py"))
	return dir
}

func write(t testing.TB, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func link(t testing.TB, to, name string) {
	t.Helper()
	if err := os.Symlink(to, name); err != nil {
		t.Fatal(err)
	}
}

func TestCheckRules(t *testing.T) {
	dir := worktree(t)
	tracked, ignored := []string{"gone_t001.py", "sub", "calc.py"}, []string{"build/t001_test.go"}
	cases := []struct {
		name   string
		change func(b map[string]any)
		rule   string // "" means sound
	}{
		{"sound", nil, ""},
		{"a test of any language", put("calc/t001_add_test.go"), ""},
		{"a new directory", put("a/b/c/t001-add.test.ts"), ""},
		{"no tasks", func(b map[string]any) { b["prd_entries"] = []any{}; b["test_files"] = map[string]any{} },
			"no-tasks"},
		{"entries missing", func(b map[string]any) { delete(b, "prd_entries") }, "shape"},
		{"entries null", func(b map[string]any) { b["prd_entries"] = nil }, "shape"},
		{"entries no list", func(b map[string]any) { b["prd_entries"] = map[string]any{} }, "shape"},
		{"entry no object", func(b map[string]any) { b["prd_entries"] = []any{oneEntry(1), 5} }, "shape"},
		{"unknown key", func(b map[string]any) { b["notes"] = "x" }, "unknown-key"},
		{"unknown key of an entry", func(b map[string]any) { first(b)["priority"] = 1 }, "unknown-key"},
		{"status", func(b map[string]any) { first(b)["status"] = "done" }, "status"},
		{"status pending", func(b map[string]any) { first(b)["status"] = "pending" }, "unknown-key"},
		{"short id", func(b map[string]any) { first(b)["id"] = "T-1" }, "id"},
		{"no id", func(b map[string]any) { delete(first(b), "id") }, "id"},
		{"path in id", func(b map[string]any) { first(b)["id"] = "T-001/../x" }, "id"},
		{"id with newline", func(b map[string]any) { first(b)["id"] = "T-001\n" }, "id"},
		{"id is a number", func(b map[string]any) { first(b)["id"] = 1 }, "shape"},
		{"huge id", func(b map[string]any) { first(b)["id"] = "T-" + strings.Repeat("1", 300) }, "id"},
		{"no title", func(b map[string]any) { first(b)["title"] = " " }, "title"},
		{"title of two lines", func(b map[string]any) { first(b)["title"] = "a\nb" }, "title"},
		{"title with tab", func(b map[string]any) { first(b)["title"] = "a\tb" }, "title"},
		{"long title", func(b map[string]any) { first(b)["title"] = strings.Repeat("ä", 201) }, "title"},
		{"no criteria", func(b map[string]any) { first(b)["acceptance_criteria"] = []string{} }, "criteria"},
		{"empty criterion", func(b map[string]any) { first(b)["acceptance_criteria"] = []string{"x", " "} },
			"criteria"},
		{"criteria as string", func(b map[string]any) { first(b)["acceptance_criteria"] = "x" }, "shape"},
		{"null criterion", func(b map[string]any) { first(b)["acceptance_criteria"] = []any{nil} }, "criteria"},
		{"duplicate ids", func(b map[string]any) { b["prd_entries"] = []any{oneEntry(1), oneEntry(1)} }, "duplicate"},
		{"500 tasks", func(b map[string]any) {
			var many []any
			for i := 1; i <= 500; i++ {
				many = append(many, oneEntry(i))
			}
			b["prd_entries"] = many
		}, "too-many-tasks"},
		{"NUL in a description", func(b map[string]any) { first(b)["description"] = "a\x00b" }, "nul"},
		{"task without test", func(b map[string]any) { b["prd_entries"] = []any{oneEntry(1), oneEntry(2)} },
			"task-without-test"},
		{"no test files", func(b map[string]any) { delete(b, "test_files") }, "task-without-test"},
		{"test files null", func(b map[string]any) { b["test_files"] = nil }, "task-without-test"},
		{"test files a list", func(b map[string]any) { b["test_files"] = []any{} }, "shape"},
		{"content no string", func(b map[string]any) { b["test_files"].(map[string]any)["t001_x.py"] = 5 }, "shape"},
		{"test without task", put("tests/test_t002_x.py"), "test-without-task"},
		{"test without a name", put("tests/conftest.py"), "test-without-task"},
		{"task in a longer number", put("tests/test_t0011_x.py"), "test-without-task"},
		{"empty path", put(""), "path"},
		{"absolute", put("/tmp/test_t001.py"), "path-outside"},
		{"home", put("~/test_t001.py"), "path-outside"},
		{"..", put("../test_t001.py"), "path-outside"},
		{".. inside", put("tests/../test_t001.py"), "path-outside"},
		{"backslash", put(`..\test_t001.py`), "path"},
		{".", put("./test_t001.py"), "path"},
		{"double slash", put("tests//test_t001.py"), "path"},
		{"trailing slash", put("tests/test_t001/"), "path"},
		{"newline in a path", put("tests/test_t001\n.py"), "path"},
		{"long path", put(strings.Repeat("a/", 300) + "test_t001.py"), "path"},
		{"long part", put(strings.Repeat("a", 260) + "_t001.py"), "path"},
		{".git", put(".git/hooks/t001"), "path-git"},
		{".GIT", put(".GIT/hooks/t001"), "path-git"},
		{".git below", put("tests/.git/t001"), "path-git"},
		{"inside another repository", put("nested/t001.py"), "path-git"},
		{"through a symlink out", put("out/test_t001.py"), "path-place"},
		{"through a symlink inside", put("alias/test_t001.py"), "path-place"},
		{"over a dangling symlink", put("tests/test_t001_dangling.py"), "path-exists"},
		{"over an untracked file", put("tests/test_t001_here.py"), "path-exists"},
		{"over a tracked file that is not checked out", put("gone_t001.py"), "path-tracked"},
		{"in a submodule", put("sub/test_t001.py"), "path-place"},
		{"below a file", put("tests/test_old.py/test_t001.py"), "path-place"},
		{"below a file of the seed", put("tests/test_t001_add.py/t001.py"), "path-place"},
		{"never committed", put("node_modules/x/t001.test.js"), "path-ignored"},
		{"ignored by git", put("build/t001_test.go"), "path-ignored"},
		{"empty test", func(b map[string]any) { b["test_files"].(map[string]any)[testPath(1)] = "\n" }, "empty-test"},
		{"NUL in a test", func(b map[string]any) { b["test_files"].(map[string]any)[testPath(1)] = "a\x00" }, "nul"},
		{"10 MB", func(b map[string]any) {
			b["test_files"].(map[string]any)[testPath(1)] = strings.Repeat("assert x\n", 10<<20/9)
		}, "size"},
		{"many MB in small files", func(b map[string]any) {
			for i := range 12 {
				b["test_files"].(map[string]any)[fmt.Sprintf("t001_%d.py", i)] = strings.Repeat("x", 500<<10)
			}
		}, "size"},
		{"long tldr", func(b map[string]any) { b["tldr"] = strings.Repeat("x", 70<<10) }, "size"},
		{"tldr null", func(b map[string]any) { b["tldr"] = nil }, ""},
		{"blockers a number", func(b map[string]any) { b["blockers"] = true }, "shape"},
		{"blockers a list of lists", func(b map[string]any) { b["blockers"] = []any{true} }, "shape"},
		{"needs itself", func(b map[string]any) { first(b)["needs"] = []string{"T-001"} }, "needs"},
		{"needs what is not there", func(b map[string]any) { first(b)["needs"] = []string{"T-009"} }, "needs"},
		{"needs no list", func(b map[string]any) { first(b)["needs"] = "T-009" }, "shape"},
		{"touches", func(b map[string]any) { first(b)["touches"] = []string{"src/", "!src/gen/", "*.md"} }, ""},
		{"touches what git cannot read", func(b map[string]any) { first(b)["touches"] = []string{"src/", "[a"} },
			"touches"},
		{"touches what is elsewhere", func(b map[string]any) { first(b)["touches"] = []string{"../x"} }, "touches"},
		{"touches no list", func(b map[string]any) { first(b)["touches"] = "src/" }, "shape"},
		{"a type", func(b map[string]any) { first(b)["type"] = "fix" }, ""},
		{"a type that is no text", func(b map[string]any) { first(b)["type"] = 1 }, "shape"},
		{"a scope of two lines", func(b map[string]any) { first(b)["scope"] = "a\nTilth-Task: T-009" }, "scope"},
		{"needs nothing", func(b map[string]any) { first(b)["needs"] = []string{} }, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			b, err := parseBundle(arguments(t, 1, c.change))
			if err != nil {
				t.Fatal(err)
			}
			got := Check(b, Rules{TestsRequired: true, Root: dir, Tracked: tracked, Ignored: ignored})
			if c.rule == "" && len(got) > 0 {
				t.Errorf("refused: %v", got)
			}
			if c.rule != "" && !slices.Contains(ruleNames(got), c.rule) {
				t.Errorf("got %v, want %s", got, c.rule)
			}
			for _, v := range got {
				if len(v.Message) > 1000 || strings.Contains(v.Message, dir) {
					t.Errorf("message is long or names the machine's path: %s", v.Message)
				}
			}
		})
	}
}

func TestTestsAreOptionalForAnImport(t *testing.T) {
	b := &Bundle{Tasks: []session.Task{{ID: "T-001", Title: "x", AcceptanceCriteria: []string{"y"}}}}
	if got := Check(b, Rules{Root: t.TempDir()}); len(got) > 0 {
		t.Error(got)
	}
	if got := Check(b, Rules{TestsRequired: true, Root: t.TempDir()}); len(got) != 1 ||
		got[0].Rule != "task-without-test" {
		t.Error(got)
	}
}

func TestCheckBeforeThereIsAWorktree(t *testing.T) {
	b := soundBundle(t, 1)
	if got := Check(b, Rules{}); len(got) > 0 {
		t.Error(got)
	}
	if got := Check(b, Rules{Tracked: []string{testPath(1)}}); len(got) != 1 ||
		got[0].Rule != "path-tracked" {
		t.Error(got)
	}
}

func TestCheckNamesEveryFault(t *testing.T) {
	b, err := parseBundle(arguments(t, 3, func(b map[string]any) {
		first(b)["id"] = "T-1"
		b["extra"] = true
		put("/etc/t002")(b)
	}))
	if err != nil {
		t.Fatal(err)
	}
	got := ruleNames(Check(b, Rules{TestsRequired: true, Root: t.TempDir()}))
	for _, want := range []string{"id", "unknown-key", "path-outside", "test-without-task", "task-without-test"} {
		if !slices.Contains(got, want) {
			t.Errorf("%s is missing in %v", want, got)
		}
	}
}

func TestParseBundleRefusesWhatIsNoObject(t *testing.T) {
	for _, text := range []string{"", "5", "[]", `"x"`, "null", "{", `{"a":1`, `{} {}`, `{"a":1} x`, "{'a':1}"} {
		if b, err := parseBundle([]byte(text)); err == nil {
			t.Errorf("%q was parsed: %+v", text, b)
		}
	}
}

func TestParseBundleSeesWhatADecoderHides(t *testing.T) {
	cases := []struct{ text, rule string }{
		{`{"prd_entries":[],"prd_entries":[]}`, "duplicate"},
		{`{"prd_entries":[{"id":"T-001","id":"T-002"}]}`, "duplicate"},
		{`{"prd_entries":[],"test_files":{"a":"1","a":"2"}}`, "duplicate"},
		{`{"prd_entries":[],"PRD_ENTRIES":[]}`, "unknown-key"},
		{`{"prd_entries":[],"tldr":"\ud83d\ude00"}`, ""},
		{`{"prd_entries":[],"tldr":"\\ud800"}`, ""},
	}
	for _, c := range cases {
		b, err := parseBundle([]byte(c.text))
		if err != nil {
			t.Fatal(err)
		}
		got := ruleNames(b.faults)
		if (c.rule == "" && len(got) > 0) || (c.rule != "" && !slices.Contains(got, c.rule)) {
			t.Errorf("%.60s: got %v, want %q", c.text, got, c.rule)
		}
	}
}

func TestNeedsAreEarlierTasks(t *testing.T) {
	task := func(id string, needs ...string) session.Task { return session.Task{ID: id, Needs: needs} }
	tasks := []session.Task{
		task(
			"T-001",
			"T-002",
		), task("T-002", "T-001"), task("T-003", "T-001", "T-002"), task("T-004", "T-001", "T-001"), task("T-005", "x"),
	}
	want := []string{"not an earlier task", "", "", "twice", "not an earlier task"}
	for i, w := range want {
		got := badNeeds(tasks, i)
		if (w == "") != (len(got) == 0) || w != "" && !strings.Contains(got[0].Message, w) {
			t.Errorf("%s: %v, want %q", tasks[i].ID, got, w)
		}
	}
}

func TestOneStringIsAListOfNotes(t *testing.T) {
	b, err := parseBundle(arguments(t, 1, func(b map[string]any) {
		b["scope_notes"], b["open_questions"], b["blockers"] = "no floats", "Which rounding?", " "
	}))
	if err != nil || len(b.faults) > 0 {
		t.Fatal(err, b.faults)
	}
	if got := fmt.Sprint(b.Meta.ScopeNotes, b.Meta.OpenQuestions,
		b.Meta.Blockers); got != "[no floats] [Which rounding?] []" {
		t.Error(got)
	}
}

// FuzzBundle: any input is parsed and checked without a panic, and a valid bundle can be installed below the worktree
// and removed again.
func FuzzBundle(f *testing.F) {
	f.Add(arguments(f, 2, nil))
	for _, c := range []string{"../t001", ".git/t001", "a/t001", "a/t001/b", "Ä/t001"} {
		f.Add(arguments(f, 1, put(c)))
	}
	f.Add(
		[]byte(
			`{"prd_entries":[{"id":"T-001","title":"x","acceptance_criteria":["\ud800"]}],"test_files":{"\u0000":"x"}}`,
		),
	)
	f.Fuzz(func(t *testing.T, args []byte) {
		b, err := parseBundle(args)
		if err != nil {
			return
		}
		base := t.TempDir()
		wt, sess := filepath.Join(base, "wt"), filepath.Join(base, "sess")
		for _, d := range []string{wt, sess} {
			if err := os.Mkdir(d, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if len(Check(b, Rules{Root: wt})) > 0 {
			return
		}
		undo, err := Install(b, wt, sessionAt(sess))
		if err != nil {
			t.Fatalf("a sound bundle cannot be put in place: %v", err)
		}
		for p, content := range b.TestFiles {
			if got, err := os.ReadFile(filepath.Join(wt, p)); err != nil || string(got) != content {
				t.Errorf("%q: %q, %v", p, got, err)
			}
		}
		undo()
		if left := tree(t, base); len(left) != 2 {
			t.Errorf("left: %v", left)
		}
	})
}
