package validator

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/git-tilth/git-tilth/internal/packages"
)

var three = []string{"T-001", "T-002", "T-003"}

// TestPythonSeed runs real pytest: the tests of later tasks import missing modules, and an older feature has a test
// with the same number.
func TestPythonSeed(t *testing.T) {
	dir := tree(t, map[string]string{
		"calc.py":                    "def add(a, b):\n    return a + b\n",
		"tests/test_t001_add.py":     "from calc import add\n\ndef test_add():\n    assert add(1, 2) == 3\n",
		"tests/test_t002_sub.py":     "from calc import sub\n\ndef test_sub():\n    assert sub(3, 2) == 1\n",
		"old/test_t001_something.py": "def test_old():\n    assert True\n",
		"tests/test_other.py":        "def test_other():\n    assert True\n",
	})
	if p := survey(ExecEnv{Dir: dir}, nil, Tasks{}); !hasPytest(p) {
		t.Skip("pytest is not installed")
	}
	seed := []string{"tests/test_t001_add.py", "tests/test_t002_sub.py"}
	wantPassed(t, judge(t, dir, Tasks{Current: "T-001", All: three, Seed: seed}), true)

	rep := judge(t, dir, Tasks{Current: "T-002", Done: []string{"T-001"}, All: three, Seed: seed})
	wantPassed(t, rep, false)
	wantText(t, rep, "cannot import name 'sub'")
	put(t, dir, "calc.py", "def sub(a, b):\n    return a - b\n")
	rep = judge(t, dir, Tasks{Current: "T-002", Done: []string{"T-001"}, All: three, Seed: seed})
	wantPassed(t, rep, false)
	wantText(t, rep, "cannot import name 'add'")

	// The rest of the suite counts, too.
	put(t, dir, "calc.py", "def add(a, b):\n    return a + b\n")
	put(t, dir, "old/test_t001_something.py", "def test_old():\n    assert False\n")
	rep = judge(t, dir, Tasks{Current: "T-001", All: three, Seed: seed})
	wantPassed(t, rep, false)
	wantText(t, rep, "## pytest: passed", "## pytest (suite): FAILED, 1 of 2 tests")

	// Without the seed's list, every file with the number counts.
	rep = judge(t, dir, Tasks{Current: "T-001", All: three})
	wantText(t, rep, "## pytest: FAILED, 1 of 2 tests")

	// A test that was taken away is a failure, not a pass.
	if err := os.Remove(filepath.Join(dir, "tests/test_t001_add.py")); err != nil {
		t.Fatal(err)
	}
	rep = judge(t, dir, Tasks{Current: "T-001", All: three, Seed: seed})
	wantPassed(t, rep, false)
	wantText(t, rep, "must be restored")
	if _, err := os.Stat(filepath.Join(dir, "__pycache__")); err == nil {
		t.Error("byte code was left behind")
	}
}

func hasPytest(p *layout) bool {
	return packages.Has(p.pyTool(context.Background(), ".", "pytest")[0], p.Root, p.Env)
}

// TestPythonSuite: a task without a test must pass the whole suite, except later tasks' tests.
func TestPythonSuite(t *testing.T) {
	dir := tree(t, map[string]string{
		"calc.py":          "",
		"test_calc.py":     "def test_x():\n    assert True\n",
		"test_t002_sub.py": "import nothing_like_this\n",
	})
	if p := survey(ExecEnv{Dir: dir}, nil, Tasks{}); !hasPytest(p) {
		t.Skip("pytest is not installed")
	}
	rep := judge(t, dir, Tasks{Current: "T-001", All: three})
	wantPassed(t, rep, true)
	wantText(t, rep, "1 passed")
	put(t, dir, "test_calc.py", "x = 1\n")
	rep = judge(t, dir, Tasks{Current: "T-001", All: three})
	wantPassed(t, rep, true)
	wantText(t, rep, "pytest was not run: there was nothing for it to do")
}

func TestPythonTools(t *testing.T) {
	dir := tree(t, map[string]string{
		"pyproject.toml": "[project]\nname = 'x'\n[tool.ruff.lint]\nselect = ['E']\n[tool.mypy]\nstrict = " +
			"true\n",
		"x.py":                  "",
		"tests/test_t001_a.py":  "",
		"tests/test_t002_b.py":  "",
		"node_modules/y/bad.py": "",
	})
	bin := stubs(t, "ruff", "mypy", "pytest")
	env := []string{"PATH=" + bin + ":/nonexistent"}
	// The stubs are shell scripts: sh has to be found by its full path only.
	ctx := context.Background()
	vs := Detect(ctx, ExecEnv{Dir: dir, Env: env}, nil, Tasks{Current: "T-001", All: three})
	rep := Run(ctx, vs, ExecEnv{Dir: dir, Env: env}, 0)
	wantPassed(t, rep, true)
	wantText(t, rep,
		"ran ruff check --extend-exclude tests/test_t001_a.py,tests/test_t002_b.py .",
		`ran mypy --exclude (^|/)tests/test_t002_b\.py$ .`,
		"ran pytest -q --color=no --continue-on-collection-errors --rootdir=. tests/test_t001_a.py "+
			"--junitxml={report} -p tilth_top\n")

	vs = Detect(ctx, ExecEnv{Dir: dir, Env: []string{"PATH=/nonexistent"}}, nil, Tasks{Current: "T-001", All: three})
	rep = Run(ctx, vs, ExecEnv{Dir: dir, Env: env}, 0)
	wantPassed(t, rep, true)
	wantText(t, rep, "ruff was not run: it is not installed; mypy was not run: it is not installed; "+
		"pytest was not run: it is not installed; no validator was run")
}

func TestPythonVenvComesFirst(t *testing.T) {
	dir := tree(t, map[string]string{"test_t001_a.py": ""})
	put(t, dir, ".venv/bin/python", "#!/bin/sh\ncase $1 in -c) exit 0;; esac\necho \"venv $*\"\n")
	if err := os.Chmod(filepath.Join(dir, ".venv/bin/python"), 0o755); err != nil {
		t.Fatal(err)
	}
	wantText(t, judge(t, dir, Tasks{Current: "T-001"}), "venv /",
		".py pytest -q --color=no --continue-on-collection-errors --rootdir=. test_t001_a.py")
}

func TestSection(t *testing.T) {
	for text, want := range map[string]bool{
		"[tool.ruff]\nx=1": true, "[tool.ruff.lint]\n": true, " [ tool.ruff ]\n": true, "[tool.ruffle]\n": false,
		"# [tool.ruff]\n":   false,
		"x = '[tool.ruff]'": false, "": false, "[[tool.ruff]]\n": true,
	} {
		if _, got := packages.Section(text, "tool.ruff"); got != want {
			t.Errorf("packages.Section(%q) is %v", text, got)
		}
	}
	body, _ := packages.Section("[a]\nno=1\n[mypy]\nfiles = x\n[mypy-y]\nz=1\n", "mypy")
	if body != "files = x\n" {
		t.Errorf("body %q", body)
	}
}

// TestGoOverlay runs the real go command: a later task's test does not compile, and a package has nothing else.
func TestGoOverlay(t *testing.T) {
	need(t, "go")
	dir := tree(t, map[string]string{
		"go.mod":  "module example.com/calc\n\ngo 1.21\n",
		"calc.go": "package calc\n\nfunc Add(a, b int) int { return a + b }\n",
		"t001_add_test.go": "package calc\n\nimport \"testing\"\n\nfunc TestAdd(t *testing.T) {\n\tif Add(1, " +
			"2) != 3 {\n\t\tt.Fatal()\n\t}\n}\n",
		"t002_sub_test.go": "package calc\n\nimport \"testing\"\n\nfunc TestSub(t *testing.T) {\n\tif Sub(3, " +
			"2) != 1 {\n\t\tt.Fatal()\n\t}\n}\n",
		"later/t003_later_test.go": "package later\n\nimport \"testing\"\n\nfunc TestLater(t *testing.T) { t.Fatal() " +
			"}\n",
		"sub/go.mod":         "module example.com/calc/sub\n\ngo 1.21\n",
		"sub/sub.go":         "package sub\n",
		"sub/t003_x_test.go": "package sub\n\nvar _ = undefined\n",
		"testdata/m/go.mod":  "module broken",
	})
	rep := judge(t, dir, Tasks{Current: "T-001", All: three})
	wantPassed(t, rep, true)
	wantText(t, rep, "## go vet: passed", "## go test: passed", "## go test (sub): passed")
	rep = judge(t, dir, Tasks{Current: "T-002", Done: []string{"T-001"}, All: three})
	wantPassed(t, rep, false)
	wantText(t, rep, "undefined: Sub")
}

func TestGoBeforeThereIsAny(t *testing.T) {
	need(t, "go")
	dir := tree(t, map[string]string{"go.mod": "module x\n\ngo 1.21\n", "t002_test.go": "package x\n"})
	rep := judge(t, dir, Tasks{Current: "T-001", All: three})
	wantPassed(t, rep, true)
	wantText(t, rep, "there are no Go files yet")
	dir = tree(t, map[string]string{"t001_test.go": "package x\n"})
	rep = judge(t, dir, Tasks{Current: "T-001", All: three})
	wantPassed(t, rep, false)
	wantText(t, rep, "these acceptance tests did not run, since no go.mod is in their directory or above it")
}

// TestNodeWithoutTests: a runner that finds no test has failed at nothing.
func TestNodeWithoutTests(t *testing.T) {
	need(t, "npm")
	asked := "#!/bin/sh\nfor a; do case $a in --output*=*) out=${a#*=};; --pass*) pass=1;; esac; done\n" +
		"echo No tests found\n[ $pass ] || exit 1\necho '{\"testResults\": []}' > $out\n"
	for runner, script := range map[string]string{"jest": asked, "vitest": asked,
		"mocha": "#!/bin/sh\necho 'Error: No test files found'\nexit 1\n"} {
		dir := tree(t, map[string]string{"package.json": `{"scripts": {"test": "` + runner + `"}}`})
		put(t, dir, "node_modules/.bin/"+runner, script)
		if err := os.Chmod(filepath.Join(dir, "node_modules/.bin", runner), 0o755); err != nil {
			t.Fatal(err)
		}
		rep := judge(t, dir, Tasks{Current: "T-003", All: three})
		wantPassed(t, rep, true)
		wantText(t, rep, "npm test was not run: there was nothing for it to do")
	}
}

// TestNodeOwnRunner runs real node and npm.
func TestNodeOwnRunner(t *testing.T) {
	need(t, "node")
	need(t, "npm")
	test := func(cond string) string {
		return "const test = require('node:test'); const assert = require('node:assert');\ntest('x', () => assert.ok(" +
			cond + "));\n"
	}
	dir := tree(t, map[string]string{
		"package.json":            `{"name": "x", "version": "1.0.0", "scripts": {"test": "node --test test/", "pretest": "echo pretest was run"}}`,
		"test/t001-add.test.js":   test("true"),
		"test/t002-sub.test.js":   test("false"),
		"test/plain.test.js":      test("true"),
		"other/unrelated.test.js": test("false"),
	})
	wantPassed(t, judge(t, dir, Tasks{Current: "T-001", All: three}), true)
	rep := judge(t, dir, Tasks{Current: "T-002", Done: []string{"T-001"}, All: three})
	wantPassed(t, rep, false)
	wantText(t, rep, "pretest was run")
	// A task without a test: the script's own files, except later tasks' tests.
	rep = judge(t, dir, Tasks{Current: "T-003", Done: []string{"T-001"}, All: three})
	wantPassed(t, rep, true)
	wantText(t, rep, "## npm test: passed, 1 of 1 test", "## npm test (suite): passed, 1 of 1 test")
	// A script behind the tests counts as for npm test.
	for script, passes := range map[string]bool{"echo posttest was run": true, "echo posttest was run; exit 3": false} {
		put(t, dir, "package.json", `{"scripts": {"test": "node --test test/", "posttest": "`+script+`"}}`)
		for _, task := range []string{"T-001", "T-003"} {
			rep = judge(t, dir, Tasks{Current: task, All: three})
			wantPassed(t, rep, passes)
			wantText(t, rep, "posttest was run", ", 1 of 1 test")
		}
	}

	put(t, dir, "package.json", `{"scripts": {"test": "echo \"Error: no test specified\" && exit 1"}}`)
	rep = judge(t, dir, Tasks{Current: "T-001", All: three})
	wantPassed(t, rep, true)
	wantText(t, rep, "## node --test: passed")
	if vs := Detect(context.Background(), ExecEnv{Dir: dir}, nil, Tasks{Current: "T-003", All: three}); len(vs) != 0 {
		t.Errorf("found %s", names(vs))
	}
}

func TestNodeRunners(t *testing.T) {
	files := map[string]string{"t001-a.test.ts": "", "src/t002-b.test.ts": "", "x.ts": ""}
	for _, c := range []struct{ script, lock, task, want string }{
		{"jest", "", "T-001", "npm test -- --runTestsByPath t001-a.test.ts"},
		{"tsc && jest --ci", "", "T-001", "npm test -- --runTestsByPath t001-a.test.ts"},
		{"jest", "", "T-003", `npm test -- --passWithNoTests --testPathIgnorePatterns /node_modules/ /src/t002-b\.test\.ts$ /t001-a\.test\.ts$`},
		{"vitest run", "pnpm-lock.yaml", "T-001", "pnpm test t001-a.test.ts"},
		{"vitest", "", "T-003", "npm test -- --passWithNoTests --exclude src/t002-b.test.ts --exclude t001-a.test.ts"},
		{"mocha", "", "T-001", "npm test -- --ignore src/t002-b.test.ts"},
		{"ava", "yarn.lock", "T-001", `mv src/t002-b.test.ts "$TMPDIR"/later.0 && yarn test; rc=$?; ` +
			`mv "$TMPDIR"/later.0 src/t002-b.test.ts; exit $rc`},
		{"jest | tee log", "", "T-002", `mv t001-a.test.ts "$TMPDIR"/later.0 && npm test; rc=$?; ` +
			`mv "$TMPDIR"/later.0 t001-a.test.ts; exit $rc`},
		{"cross-env A=1 node --import tsx --test 'src/**/*.test.ts'", "", "T-001",
			"cross-env A=1 node --import tsx --test {report arguments} t001-a.test.ts"},
		{"node --test", "", "T-003", "<nothing>"},
	} {
		dir := tree(t, files)
		put(t, dir, "package.json", `{"scripts": {"test": "`+c.script+`"}}`)
		if c.lock != "" {
			put(t, dir, c.lock, "")
		}
		env := []string{"PATH=" + stubs(t, "npm", "pnpm", "yarn", "node")}
		vs := Detect(context.Background(), ExecEnv{Dir: dir, Env: env}, nil, Tasks{Current: c.task, All: three})
		if len(vs) != 1 {
			t.Fatalf("%s: found %s", c.script, names(vs))
		}
		got := strings.Join(vs[0].Argv, " ") + vs[0].Command
		if vs[0].Skip != "" {
			got = "<nothing>"
		}
		if got != c.want {
			t.Errorf("%s for %s: got %s, want %s", c.script, c.task, got, c.want)
		}
	}
}

// TestRust runs real cargo: a later task's test does not compile.
func TestRust(t *testing.T) {
	need(t, "cargo")
	dir := tree(t, map[string]string{
		"Cargo.toml":        "[package]\nname = \"calc\"\nversion = \"0.1.0\"\nedition = \"2021\"\n",
		"src/lib.rs":        "pub fn add(a: i32, b: i32) -> i32 { a + b }\n",
		"tests/t001_add.rs": "#[test]\nfn add() { assert_eq!(calc::add(1, 2), 3); }\n",
		"tests/t002_sub.rs": "#[test]\nfn sub() { assert_eq!(calc::sub(3, 2), 1); }\n",
	})
	rep := judge(t, dir, Tasks{Current: "T-001", All: three})
	wantPassed(t, rep, true)
	wantText(t, rep, "## cargo test: passed, 1 of 1 test")
	rep = judge(t, dir, Tasks{Current: "T-002", Done: []string{"T-001"}, All: three})
	wantPassed(t, rep, false)
}

func TestRustBeforeThereIsAny(t *testing.T) {
	dir := tree(t, map[string]string{"Cargo.toml": "[package]\n", "tests/t002.rs": ""})
	rep := judge(t, dir, Tasks{Current: "T-001", All: three})
	wantPassed(t, rep, true)
	wantText(t, rep, "there are no Rust files yet")
}

func TestShellTestsOfTheSeed(t *testing.T) {
	dir := tree(t, map[string]string{"t001_add.sh": "#!/bin/sh\ntest -f made\n", "t002_x.sh": "exit 1\n",
		"t001.bats": ""})
	tasks := Tasks{Current: "T-001", All: three, Seed: []string{"t001_add.sh", "t002_x.sh", "t001.bats"}}
	rep := judge(t, dir, tasks)
	wantPassed(t, rep, false)
	wantText(t, rep, "t001.bats")
	put(t, dir, "made", "")
	wantPassed(t, judge(t, dir, tasks), true)
	// By name alone a script is never run.
	tasks.Seed = nil
	if vs := Detect(context.Background(), ExecEnv{Dir: dir}, nil, tasks); strings.Contains(names(vs), "t001_add.sh") {
		t.Errorf("found %s", names(vs))
	}
}
