package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/git-tilth/git-tilth/internal/scripttest/scripted"
	"github.com/git-tilth/git-tilth/internal/session"
)

// proposed is a bundle of n sound tasks with their tests, changed.
func proposed(n int, change func(entries []map[string]any, tests map[string]string)) scripted.Step {
	entries, tests := []map[string]any{}, map[string]string{}
	for i := 1; i <= n; i++ {
		entries = append(
			entries,
			map[string]any{"id": fmt.Sprintf("T-%03d", i), "title": "Add sub",
				"description": "in calc.py", "acceptance_criteria": []string{"sub(3, 2) returns 1"}},
		)
		tests[fmt.Sprintf("tests/test_t%03d_sub.py", i)] = "assert sub(3, 2) == 1\n"
	}
	if change != nil {
		change(entries, tests)
	}
	return calls(
		"write_seed",
		map[string]any{"prd_entries": entries, "test_files": tests, "tldr": "",
			"open_questions": []string{}, "blockers": []string{}, "scope_notes": []string{}},
	)
}

// at puts one more test of T-001 at a path.
func at(path string) scripted.Step {
	return proposed(1, func(_ []map[string]any, tests map[string]string) { tests[path] = "assert x\n" })
}

// withID sets the task's id.
func withID(id any) scripted.Step {
	return proposed(1, func(entries []map[string]any, _ map[string]string) { entries[0]["id"] = id })
}

// TestHostileBundles proposes bundles that each break a rule: the answer names that rule, and nothing is written inside
// or outside the worktree.
func TestHostileBundles(t *testing.T) {
	hostile := []struct {
		name  string
		step  scripted.Step
		rules []string // expected in the answer
	}{
		{"..", at("../../../test_t001_out.py"), []string{"path-outside"}},
		{".. within", at("tests/../../test_t001_out.py"), []string{"path-outside"}},
		{"absolute", at("/tmp/test_t001_out.py"), []string{"path-outside"}},
		{"home", at("~/test_t001_out.py"), []string{"path-outside"}},
		{"backslashes", at(`..\\test_t001_out.py`), []string{"path"}},
		{"a symlink", at("out/test_t001_out.py"), []string{"path-place"}},
		{".git", at(".git/hooks/t001"), []string{"path-git"}},
		{".GIT", at(".GIT/hooks/t001"), []string{"path-git"}},
		{
			"a tracked file",
			proposed(1,
				func(_ []map[string]any, tests map[string]string) { tests["tests/test_t001_old.py"] = "assert x\n" }),
			[]string{"path-tracked"},
		},
		{"below a tracked file", at("calc.py/test_t001.py"), []string{"path-place"}},
		{"an ignored place", at("ignored/test_t001_x.py"), []string{"path-ignored"}},
		{"T-1", withID("T-1"), []string{"id", "T-1"}},
		{"a path as id", withID("T-001/../../x"), []string{"id"}},
		{"a number as id", withID(1), []string{"shape"}},
		{"duplicate ids",
			proposed(2, func(entries []map[string]any, _ map[string]string) { entries[1]["id"] = "T-001" }),
			[]string{"duplicate", "T-001"}},
		{"500 tasks", proposed(500, nil), []string{"too-many-tasks", "500"}},
		{"no tasks", proposed(0, nil), []string{"no-tasks"}},
		{"a task without a test",
			proposed(2, func(_ []map[string]any, tests map[string]string) { delete(tests, "tests/test_t002_sub.py") }),
			[]string{"task-without-test", "T-002"}},
		{"a test without a task", at("tests/test_t009_x.py"), []string{"test-without-task", "T-009"}},
		{"a status", proposed(1, func(entries []map[string]any, _ map[string]string) { entries[0]["status"] = "done" }),
			[]string{"status"}},
		{"an unknown key",
			proposed(1, func(entries []map[string]any, _ map[string]string) { entries[0]["priority"] = 1 }),
			[]string{"unknown-key", "priority"}},
		{
			"no object",
			scripted.Step{Tools: []scripted.Tool{{Name: "write_seed", Args: json.RawMessage(`"[1, 2"`)}}},
			[]string{"JSON object"},
		},
		// The large ones last: every request behind them carries them.
		{"more than 5 MB in many files", proposed(1, func(_ []map[string]any, tests map[string]string) {
			for i := range 6 {
				tests[fmt.Sprintf("tests/test_t001_%d.py", i)] = strings.Repeat("assert x\n", 950<<10/9)
			}
		}), []string{"size", "5120 KB"}},
		{"10 MB in one file", proposed(1, func(_ []map[string]any, tests map[string]string) {
			tests["tests/test_t001_sub.py"] = strings.Repeat("assert x\n", 10<<20/9)
		}), []string{"size", "1024 KB"}},
	}
	p := newPlace(t)
	p.write("tests/test_t001_old.py", "assert True\n")
	p.write(".gitignore", "ignored/\n")
	if err := os.Symlink("/tmp", p.repo+"/out"); err != nil {
		t.Fatal(err)
	}
	p.git("add", "-A")
	p.git("commit", "-q", "-m", "more")
	before := p.user()
	script := &scripted.Script{}
	for i, h := range hostile {
		step := h.step
		if i > 0 {
			step.WhenLast = hostile[i-1].rules // otherwise the script ends at once
		}
		script.Interview = append(script.Interview, step)
	}
	last := seeds(subTest)
	last.WhenLast = hostile[len(hostile)-1].rules
	script.Interview = append(script.Interview, last)
	server := p.model(script)
	out, code := p.try("sh", "-c", "git tilth prep --brief x </dev/null")
	if n := len(server.Requests()); code != 0 || n != len(hostile)+1 {
		refused := "the end"
		if n-2 >= 0 && n-2 < len(hostile) {
			refused = hostile[n-2].name
		}
		t.Fatalf("exit code %d after %d requests; the answer to %q is not the one expected\n%s", code, n, refused, out)
	}
	s := p.newest()
	if got := p.git("show", "--name-only", "--format=", s.Branch()); got != "tests/test_t001_sub.py" {
		t.Errorf("the seed commit holds %q", got)
	}
	if out := p.git("-C", s.Workspace(), "status", "--porcelain", "--ignored"); out != "" {
		t.Errorf("the worktree is not clean:\n%s", out)
	}
	if c := p.checkpoint(); c.Status != session.Prepared || p.user() != before {
		t.Errorf("status %s, or the user's tree has changed", c.Status)
	}
	for _, path := range []string{"/tmp/test_t001_out.py", s.Dir + "/test_t001_out.py",
		p.store.Root + "/test_t001_out.py", p.repo + "/../test_t001_out.py", p.repo + "/.git/hooks/t001"} {
		if _, err := os.Lstat(path); err == nil {
			t.Errorf("%s was written", path)
		}
	}
}
