package validator

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/git-tilth/git-tilth/internal/packages"
	"github.com/git-tilth/git-tilth/internal/project"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/text"
)

// TestObstacle: a validator that cannot start is distinguished from a failing test, and its fix is one line.
func TestObstacle(t *testing.T) {
	files := map[string]string{
		"package.json": `{"devDependencies": {"vitest": "1", "@scope/tool": "1"}}`, "web/package.json": `{}`,
		"web/pnpm-lock.yaml": "", "requirements.txt": "Flask-Login>=1\n", "app.py": "import yaml\n",
		"src/own/__init__.py": "", "test_t001_x.py": "import new\nimport own\n",
		"go.mod":         "require example.com/dep v1.0.0\n",
		"sub/Cargo.toml": "[package]\n",
	}
	const npm, venv = "git config --add tilth.setup 'npm install --no-package-lock --ignore-scripts'",
		"git config --add tilth.setup 'python3 -m venv --system-site-packages .venv && .venv/bin/pip install pytest " +
			"-r requirements.txt'"
	for _, c := range []struct {
		name, out string
		exit      int
		fix       string
		able      bool
	}{
		{"program of a package", "sh: 1: vitest: not found", 127, npm, false},
		{"program while nothing is installed", "sh: 1: tsc: not found", 127, npm, false},
		{"package manager", "sh: 1: pnpm: not found", 127, "npm install --global pnpm", false},
		{"declared module", "Error: Cannot find module '@scope/tool/x'", 1, npm, false},
		{"module of the task's own", "Error: Cannot find module './add'", 1, "", true},
		{"module nobody declares", "Error: Cannot find module 'left-pad'", 1, "", true},
		{"declared Python module", "E   ModuleNotFoundError: No module named 'flask_login.x'", 2, venv, false},
		{"module the code imports", "ModuleNotFoundError: No module named 'yaml'", 1, venv, false},
		{"module only a test imports", "ModuleNotFoundError: No module named 'new'", 1, "", true},
		{"option of a plugin", "error: unrecognized arguments: --cov", 4, venv, false},
		{"module that is there", "No module named 'app'", 1, "", true},
		{"program of an environment", "sh: 1: .venv/bin/python: not found", 127, venv, false},
		{"program of node_modules", "sh: 1: node_modules/.bin/tsc: not found", 127, npm, false},
		{"Go module", "go: example.com/dep@v1.0.0: module lookup disabled by GOPROXY=off", 1,
			"git config --add tilth.setup 'go mod download'", false},
		{"Go module nobody requires", "x.go:1:8: example.com/other@v1.0.0: reading", 1, "", true},
		{"crate", "error: failed to get `serde` as a dependency of package", 101,
			"git config --add tilth.setup 'cd sub && cargo fetch'", false},
		{"ignored file", "FileNotFoundError: [Errno 2] No such file or directory: '.env.test'", 1,
			"git config --add tilth.copy .env.test", false},
		{"file nobody has", "FileNotFoundError: [Errno 2] No such file or directory: 'out.txt'", 1, "", true},
		{"failing test", "FAIL: TestAdd: got 0", 1, "", true},
		{"program of a rule of make", "make[1]: *** [Makefile:2: test] Error 127", 2,
			`git config --unset-all tilth.validator '^it'\''s\.='`, false},
		{"rule of make that fails", "make: *** [Makefile:2: test] Error 1", 2, "", true},
		{"command of the user's", "sh: 1: it's: not found", 127,
			`git config --unset-all tilth.validator '^it'\''s\.='`, false},
	} {
		dir := tree(t, files)
		p := survey(ExecEnv{Dir: dir}, nil, Tasks{Current: "T-001", All: []string{"T-001"}})
		s := Scene{Config: "git config", Ignored: func(f string) bool { return f == ".env.test" }}
		v := Validator{Name: "it's.", Configured: true}
		if c.exit == 127 && c.fix == npm {
			v.Configured = false
		}
		why, fix := p.obstacle(v, Result{Output: c.out + "\n[exit code]", exit: c.exit}, s)
		if (why == "") != c.able || fix != c.fix {
			t.Errorf("%s: unable %q, fix %q, want %q", c.name, why, fix, c.fix)
		}
	}
}

// TestLeftOut: the hint leaves out a detected validator that cannot start by naming the others.
func TestLeftOut(t *testing.T) {
	says := func(name, out string, exit int) Validator {
		return Validator{Name: name, Argv: []string{"sh", "-c", fmt.Sprintf("echo '%s'; exit %d", out, exit)}}
	}
	undeclared := says("npm test", "sh: 1: mocha: not found", 127)
	old := says("go vet", "go: go.mod requires go >= 1.99 (running go 1.21; GOTOOLCHAIN=local)", 1)
	other := Validator{Name: "cargo test", Argv: []string{"true", "--all"}, Dir: "sub"}
	for _, c := range []struct {
		name   string
		vs     []Validator
		test   string // an acceptance test
		unable bool
		fix    string
	}{
		{"nothing else", []Validator{undeclared, old}, "x.sh", true, "git config --add tilth.validator none=true"},
		{"another kind", []Validator{undeclared, other}, "x.sh", true,
			"git config --add tilth.validator 'cargo test=cd sub && true --all'"},
		{"a linter", []Validator{says("npm run lint", "sh: 1: eslint: not found", 127), other}, "x.sh", true,
			"git config --add tilth.validator 'cargo test=cd sub && true --all'"},
		{"a runner with a report", []Validator{undeclared, {Name: "node --test", Dir: "sub",
			Command: ": node --test " + reportArgs + " x.js"}}, "x.sh", true,
			"git config --add tilth.validator 'node --test=cd sub && : node --test x.js'"},
		{"one that goes by the tasks", []Validator{old, other}, "t001_x.sh", true, ""},
		{"setup that did not help", []Validator{says("npm test", "sh: 1: vitest: not found", 127)}, "x.sh", true,
			"git config --add tilth.validator none=true"},
		{"the task's program", []Validator{says("npm test", "sh: 1: ./t: not found", 127)}, "x.sh", false, ""},
		{"a script's program", []Validator{says("npm test", "sh: 1: tool: not found", 127)}, "x.sh", false, ""},
	} {
		dir := tree(t, map[string]string{"package.json": `{"scripts": {"test": "mocha -b", "lint": "eslint ."},
			"devDependencies": {"vitest": "1"}}`, "sub/Cargo.toml": "",
			"go.mod": "", "node_modules/x": "", c.test: ""})
		s := Scene{ExecEnv: ExecEnv{Dir: dir}, Config: "git config",
			Setup: []string{project.ByName(project.Node).NoLock.Setup},
			Tasks: Tasks{Current: "T-001", All: []string{"T-001"}}}
		found, err := Preflight(t.Context(), c.vs, s)
		if err != nil || (found[0].Status == record.CheckUnable) != c.unable || found[0].Command != c.fix {
			t.Errorf("%s: %+v %v, want %q", c.name, found, err, c.fix)
		}
	}
}

// TestSetupFor: the suggested installer is a program of this machine.
func TestSetupFor(t *testing.T) {
	for _, c := range []struct{ lock, manifest, tools, want string }{
		{"package-lock.json", "package.json", "npm", "npm ci"},
		{"yarn.lock", "package.json", "yarn", "yarn install --frozen-lockfile"},
		{"yarn.lock", "package.json", "npm", "npx --yes yarn install --frozen-lockfile"},
		{"uv.lock", "pyproject.toml", "uv", "uv sync --frozen"},
		{"uv.lock", "pyproject.toml", "", "python3 -m venv --system-site-packages .venv && " +
			".venv/bin/pip install pytest -e ."},
	} {
		dir := tree(t, map[string]string{c.lock: "", c.manifest: "{}", "a/" + c.manifest: "{}",
			"bin/" + c.tools + "x": ""})
		if c.tools != "" {
			if err := os.WriteFile(filepath.Join(dir, "bin", c.tools), []byte("#!/bin/sh\n"), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		got := SetupFor(Scene{ExecEnv: ExecEnv{Dir: dir, Env: []string{"PATH=" + filepath.Join(dir, "bin")}}})
		if want := (packages.SetupSetting{}).Only(c.want); got != want {
			t.Errorf("%s with %q: %s, want %s", c.lock, c.tools, got, want)
		}
	}
}

// TestSetupSetting: a hint leaves only the command that it sets, for values in any file.
func TestSetupSetting(t *testing.T) {
	repo, home := "git config", "git config --file /home/x/.gitconfig"
	clear := "git config --replace-all tilth.setup '' && "
	for _, c := range []struct {
		s         packages.SetupSetting
		add, only string
	}{
		{packages.SetupSetting{Config: repo}, "git config --add tilth.setup x", "git config tilth.setup x"},
		{packages.SetupSetting{Config: repo, Values: []string{"a", "b"}}, "git config --add tilth.setup x",
			"git config --replace-all tilth.setup x"},
		{packages.SetupSetting{Config: repo, Values: []string{packages.NoSetup}},
			"git config --replace-all tilth.setup x",
			"git config --replace-all tilth.setup x"},
		{packages.SetupSetting{Config: home, Values: []string{packages.NoSetup}},
			clear + "git config --add tilth.setup x",
			clear + "git config --add tilth.setup x"},
	} {
		if add, only := c.s.Add("x"), c.s.Only("x"); add != c.add || only != c.only {
			t.Errorf("%+v: %s; %s", c.s, add, only)
		}
	}
}

// TestRedBase: a check that fails on the base is shown by the test and its error.
func TestRedBase(t *testing.T) {
	dir := tree(t, map[string]string{
		"junit.xml": `<testsuites><testsuite tests="2"><testcase classname="test_x" name="test_ok"/>` +
			`<testcase classname="test_x" name="test_answer"><failure/></testcase></testsuite></testsuites>`,
		"out": "F.\n=== FAILURES ===\n__ test_answer __\n\n    def test_answer():\n>       assert 41 == 42\n" +
			"E       assert 41 == 42\n\ntest_x.py:2: AssertionError\n",
	})
	v := Validator{Name: "pytest", runner: project.ByName(project.Python).Runner("pytest"),
		Command: `set -- ` + reportArgs + `; for a; do case $a in *=/*) cp junit.xml "${a#*=}";; esac; done; cat out; exit 1`}
	found, err := Preflight(t.Context(), []Validator{v}, Scene{ExecEnv: ExecEnv{Dir: dir}})
	if err != nil {
		t.Fatal(err)
	}
	if got := found[0].Says(); got != "pytest fails before any work: test_x::test_answer: assert 41 == 42" {
		t.Error(got)
	}
}

// TestPreflightCause: a check that fails on the base may lack a file of the user's checkout: a file missing in the
// output, a file that output or configuration name, else any uncommitted file.
func TestPreflightCause(t *testing.T) {
	const commits = " && git commit -m 'Add files that the checks need'"
	for _, c := range []struct {
		name, out        string
		changed, ignored []string
		fix              string
	}{
		{"no file", "assert 1 == 2", nil, nil, ""},
		{"a module", "ModuleNotFoundError: No module named 'app.helper'", []string{"app/helper.py", "notes.md"}, nil,
			"git add app/helper.py" + commits},
		{"a module of two files", "No module named 'helper'", []string{"help.py", "helper.py"}, nil,
			"git add helper.py" + commits},
		{"a file", "ENOENT: no such file or directory, open '/x/data/in.json'", []string{"data/"}, nil,
			"git add data/" + commits},
		{"a changed file", "test_a.py:3: assert 1 == 2", []string{"README.md", "test_a.py"}, []string{".env"},
			"git add test_a.py" + commits},
		{"an unnamed file", "assert 1 == 2", []string{"README.md"}, nil, "git add README.md" + commits},
		{"an ignored file", "KeyError in .env.", []string{"README.md"}, []string{".env", "node_modules/", "x.pyc"},
			"git config --add tilth.copy .env"},
		{"a longer name", "see .env.example", nil, []string{".env"}, ""},
		{"the configuration", "assert None", nil, []string{"local.ini", "other.ini"},
			"git config --add tilth.copy local.ini"},
		{"a product", "node_modules/x/a.js failed", nil, []string{"node_modules/x/a.js"}, ""},
	} {
		dir := tree(t, map[string]string{"pytest.ini": "[pytest]\naddopts = -c conf/local.ini\n"})
		if c.name != "the configuration" {
			dir = tree(t, map[string]string{"pytest.ini": ""})
		}
		s := Scene{ExecEnv: ExecEnv{Dir: dir},
			Source: func() Source { return Source{Changed: c.changed, Ignored: c.ignored} }}
		v := Validator{Name: "test", Configured: true, Command: "echo " + text.ShellQuote(c.out) + "; exit 1"}
		found, err := Preflight(t.Context(), []Validator{v}, s)
		if err != nil || found[0].Status != record.CheckFails || found[0].Command != c.fix {
			t.Errorf("%s: %+v %v, want %q", c.name, found[0], err, c.fix)
		}
	}
}

// TestPreflightWithoutRunner: acceptance tests that nothing can run are mentioned, and stop nothing.
func TestPreflightWithoutRunner(t *testing.T) {
	in := ExecEnv{Dir: tree(t, map[string]string{"t001_test.go": "package x\n"})}
	tasks := Tasks{Current: "T-001", All: three}
	found, err := Preflight(t.Context(), Detect(t.Context(), in, nil, tasks), Scene{ExecEnv: in, Tasks: tasks})
	if err != nil || len(found) != 1 || found[0].Status != record.CheckNote ||
		!strings.HasPrefix(found[0].Detail, "acceptance tests: these acceptance tests did not run, since") {
		t.Errorf("%+v %v", found, err)
	}
}

// TestFileAbove: without namespaces a check does not see the files above the user's checkout.
func TestFileAbove(t *testing.T) {
	for name, c := range map[string]struct {
		above, config, out string
		is                 bool
	}{
		"the output":        {".env", "{}", "cat: ../.env: No such file or directory", true},
		"configuration":     {"base.json", `{"extends": "../base.json"}`, "error: 2 types do not match", true},
		"nothing is above":  {"other", `{"extends": "../base.json"}`, "cat: ../.env: No such file or directory", false},
		"an honest failure": {".env", "{}", "assert 1 == 2", false},
	} {
		top := filepath.Join(tree(t, map[string]string{c.above: ""}), "repo")
		s := Scene{ExecEnv: ExecEnv{Dir: tree(t, map[string]string{"tsconfig.json": c.config})},
			Source: func() Source { return Source{Top: top} }}
		v := Validator{Name: "test", Configured: true, Command: "echo " + text.ShellQuote(c.out) + "; exit 1"}
		found, err := Preflight(t.Context(), []Validator{v}, s)
		if err != nil || strings.Contains(found[0].Detail, c.above+", above the repository") != c.is {
			t.Errorf("%s: %+v %v", name, found[0], err)
		}
	}
}
