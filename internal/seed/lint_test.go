package seed

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/validator"
)

func TestVagueCriteria(t *testing.T) {
	vagueOnes := []string{
		"It works well", "The search is fast", "Errors are handled properly", "The UI is user-friendly",
		"Handles errors gracefully",
		"Code is clean and readable", "Should be efficient", "It works as expected", "Supports various formats, etc.",
		"Is reasonably secure",
	}
	exactOnes := []string{
		"add(1, 2) returns 3", "The search answers within 200 ms, which is fast", "Prints \"done\" properly",
		"`--fast` is accepted",
		"calc.py works as expected by mypy", "Raises TypeError properly", "A fasting record is kept",
		"GET /items answers in a consistent order",
		"The list is sorted by name", "An improperly closed file is reported", "retry_count is handled",
	}
	for _, c := range vagueOnes {
		if _, ok := vague(c); !ok {
			t.Errorf("taken for exact: %s", c)
		}
	}
	for _, c := range exactOnes {
		if w, ok := vague(c); ok {
			t.Errorf("taken for vague (%s): %s", w, c)
		}
	}
}

func TestPlaces(t *testing.T) {
	for text, want := range map[string]string{
		"Change calc.py and src/util/io.ts.":                 "calc.py src/util/io.ts",
		"Either/or and 1.5 and e.g. this":                    "",
		"See https://example.org/page.html for more":         "",
		"Edit the Makefile, ./cmd/main.go, (a/b/Dockerfile)": "a/b/Dockerfile cmd/main.go Makefile",
		"calc.py, calc.py":                                   "calc.py",
		"`internal/calc/add.go`: add":                        "internal/calc/add.go",
		"version 2.0 of foo.bar":                             "",
	} {
		got := strings.Fields(strings.Join(pathsIn(text), " "))
		for _, w := range strings.Fields(want) {
			if !slices.Contains(got, w) {
				t.Errorf("%q: %v lacks %s", text, got, w)
			}
		}
		if len(got) != len(strings.Fields(want)) {
			t.Errorf("%q: %v, want %s", text, got, want)
		}
	}
	for _, s := range []string{"call add(1, 2)", "the `Parser` type", "parse_line", "parseLine", "HttpServer",
		"the --dry-run option", "POST /users"} {
		if !namesSymbol(s) {
			t.Errorf("no symbol seen in %q", s)
		}
	}
	for _, s := range []string{"Make it work", "Add a button, then test it", "Well-known things (like this)"} {
		if namesSymbol(s) {
			t.Errorf("a symbol seen in %q", s)
		}
	}
}

func TestCountAssertions(t *testing.T) {
	cases := []struct {
		file, text string
		want       int
	}{
		{"a.py", "def test():\n    add(1, 2)\n", 0},
		{"a.py", "def test():\n    # assert nothing\n    assert True\n    assert 1\n", 0},
		{"a.py", "def test():\n    assert add(1, 2) == 3\n    assert True and x\n", 2},
		{"a.py",
			"class T(unittest.TestCase):\n    def test(self):\n        self.assertEqual(1, f())\n        with " +
				"self.assertRaises(TypeError):\n",
			2},
		{"a.py", "with pytest.raises(TypeError):\n    f()\n", 1},
		{"a_test.go", "func TestA(t *testing.T) { Add(1, 2) }", 0},
		{"a_test.go", "if Add(1, 2) != 3 {\n\tt.Errorf(\"x\")\n}", 1},
		{"a_test.go", "assert.True(t, true)\nrequire.Equal(t, 3, Add(1, 2))", 1},
		{"a_test.go", "func ExampleAdd() {\n\tfmt.Println(Add(1, 2))\n\t// Output: 3\n}", 1},
		{"a.test.ts", "test('a', () => { add(1, 2) })", 0},
		{"a.test.ts", "expect(true).toBe(true)", 0},
		{"a.test.js", "expect(add(1, 2)).toBe(3); assert.strictEqual(a, b)", 2},
		{"a.test.mjs", "test('a', t => { t.is(add(1, 2), 3) })", 1},
		{"a.rs", "#[test]\nfn a() { add(1, 2); assert!(true); }", 0},
		{"a.rs", "#[test]\n#[should_panic]\nfn a() { assert_eq!(add(1, 2), 3); }", 2},
		{"a.rb", "it 'adds' do\n  expect(add(1, 2)).to eq 3\nend", 1},
	}
	for _, c := range cases {
		if got, known := countAssertions(c.file, c.text); got != c.want || !known {
			t.Errorf("%s: %d (%v), want %d: %s", c.file, got, known, c.want, c.text)
		}
	}
	if _, known := countAssertions("a.zig", "x"); known {
		t.Error("a language without a row was judged")
	}
}

func TestLint(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "tests/test_t001_add.py"),
		"def test_add():\n    assert add(1, 2) == 3\n    assert add(0, 0) == 0\n")
	write(t, filepath.Join(dir, "tests/test_t002_sub.py"), "def test_sub():\n    sub(1, 2)\n")
	write(t, filepath.Join(dir, "tests/test_t004_mul.py"), "def test_mul():\n    assert mul(1, 2) == 2\n")
	write(t, filepath.Join(dir, "tests/t005_data.json"), "{}")
	task := func(id, description string, criteria ...string) session.Task {
		return session.Task{ID: id, Title: "Do " + id, Description: description, AcceptanceCriteria: criteria}
	}
	in := LintInput{
		Worktree: dir,
		Files: []string{"tests/test_t001_add.py", "tests/test_t002_sub.py", "tests/test_t004_mul.py",
			"tests/t005_data.json", "tests/test_t006_gone.py"},
		Tasks: []session.Task{
			task("T-001", "In calc.py.", "add(1, 2) returns 3", "add(0, 0) returns 0"),
			task("T-002", "In calc.py as well.", "Subtraction works well", "sub(3, 2) is 1"),
			task("T-003", "Make it nice.", "There is a button"),
			task("T-004", "In mul.py.", "mul(1, 2) is 2", "mul(1,  2) is 2"),
			task("T-005", "In io.py.", "x is 1"),
			task("T-006", "In x.py.", "x is 1"),
		},
		Run: func(_ context.Context, id string) (validator.Report, error) {
			ran := []validator.Result{{Name: "pytest"}}
			switch id {
			case "T-001":
				return validator.Report{Results: ran}, nil
			case "T-002":
				return validator.Report{Results: ran, Passed: true}, nil
			case "T-004":
				return validator.Report{}, errors.New("no pytest")
			}
			return validator.Report{Note: "no runner"}, nil
		},
	}
	var got []string
	for _, f := range Lint(context.Background(), in) {
		got = append(got, f.Task+" "+string(f.Severity)+" "+f.Rule)
		if f.Message == "" || strings.Contains(f.String(), dir) {
			t.Error(f)
		}
	}
	want := `T-002 warning vague-criterion
T-002 error no-assertion
T-002 error already-passes
T-002 hint shared-file
T-003 warning no-place
T-003 warning no-test
T-004 hint repeated-criterion
T-004 hint few-assertions
T-004 hint not-run
T-005 warning no-test
T-006 error unreadable-test
T-006 hint not-run`
	if s := strings.Join(got, "\n"); s != want {
		t.Errorf("got\n%s\nwant\n%s", s, want)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, f := range Lint(ctx, in) {
		if f.Rule == "already-passes" {
			t.Error("tests were run after the end")
		}
	}
}

func FuzzLint(f *testing.F) {
	f.Add("In calc.py", "works well", "a.py", "assert x")
	f.Add("`x`", "", "a/b.go", "// Output:")
	f.Fuzz(func(t *testing.T, description, criterion, name, text string) {
		countAssertions(name, text)
		Lint(context.Background(), LintInput{Worktree: t.TempDir(), Files: []string{name},
			Tasks: []session.Task{{ID: "T-001", Description: description, AcceptanceCriteria: []string{criterion}}}})
	})
}

// A resume refuses such a list, so the lint says it before.
func TestLintIDs(t *testing.T) {
	task := func(id string) session.Task {
		return session.Task{ID: id, Title: "t", AcceptanceCriteria: []string{"add(1, 2) returns 3"}}
	}
	found := map[string]int{}
	for _, f := range Lint(context.Background(),
		LintInput{Tasks: []session.Task{task("T-001"), task("T-001"), task("../x"), task("T-002")}}) {
		if f.Severity == Error {
			found[f.Task+" "+f.Rule]++
		}
	}
	if len(found) != 2 || found["T-001 duplicate-id"] != 1 || found["../x bad-id"] != 1 {
		t.Errorf("%v", found)
	}
}
