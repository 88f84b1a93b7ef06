package validator

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// attack is a way to make an acceptance test look passed without its being so, or honest work that is like one.
type attack struct {
	name   string
	files  map[string]string
	passes bool
}

func (a attack) judge(t *testing.T, base map[string]string, seed ...string) {
	t.Run(a.name, func(t *testing.T) {
		dir := tree(t, base)
		for name, content := range a.files {
			put(t, dir, name, content)
		}
		rep := judge(t, dir, Tasks{Current: "T-001", All: three, Seed: seed})
		wantPassed(t, rep, a.passes)
		if !a.passes && !strings.Contains(rep.Text(), "did not run") {
			t.Error("it is not said that the test did not run")
		}
	})
}

// TestPythonEvidence: pytest's report must name the test, whatever the reason that it does not run.
func TestPythonEvidence(t *testing.T) {
	base := map[string]string{"calc.py": "def add(a, b):\n    return 0\n",
		"tests/test_t001_add.py": "from calc import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n"}
	if p := survey(ExecEnv{Dir: tree(t, base)}, nil, Tasks{}); !hasPytest(p) {
		t.Skip("pytest is not installed")
	}
	good := "def add(a, b):\n    return a + b\n"
	deselect := "def pytest_collection_modifyitems(items):\n    items[:] = []\n\n\n" +
		"def pytest_sessionfinish(session):\n    session.exitstatus = 0\n"
	for _, a := range []attack{
		{"the code says exit", map[string]string{"calc.py": "import sys\nsys.exit(0)\n"}, false},
		{"the process ends", map[string]string{"calc.py": "import os\nos._exit(0)\n"}, false},
		{"conftest deselects", map[string]string{"conftest.py": deselect}, false},
		{"conftest skips", map[string]string{"conftest.py": "import pytest\n\n\ndef pytest_runtest_setup(item):\n" +
			"    pytest.skip()\n"}, false},
		{"conftest expects failures", map[string]string{"tests/conftest.py": "import pytest\n\n\n" +
			"def pytest_collection_modifyitems(items):\n    for i in items:\n" +
			"        i.add_marker(pytest.mark.xfail)\n"},
			false},
		{"only its setup runs", map[string]string{"conftest.py": "import pytest\n\n\n" +
			"@pytest.hookimpl(tryfirst=True)\ndef pytest_runtest_protocol(item, nextitem):\n" +
			"    from _pytest import runner\n" +
			"    r = runner.TestReport.from_item_and_call(item, runner.CallInfo.from_call(lambda: None, 'setup'))\n" +
			"    item.ihook.pytest_runtest_logreport(report=r)\n    return True\n"}, false},
		{"pytest.ini", map[string]string{"pytest.ini": "[pytest]\n# \x00\naddopts = -k nothing -p helper\n",
			"helper.py": "def pytest_sessionfinish(session):\n    session.exitstatus = 0\n"}, false},
		{"setup.cfg", map[string]string{"setup.cfg": "[tool:pytest]\naddopts = -p h --deselect " +
			"tests/test_t001_add.py\n",
			"h.py": deselect}, false},
		{"tox.ini", map[string]string{"tox.ini": "[pytest]\naddopts = --collect-only\n"}, false},
		{"pyproject", map[string]string{"pyproject.toml": "[tool.pytest.ini_options]\naddopts = '--setup-only'\n"},
			false},
		{"tests are a package", map[string]string{"tests/__init__.py": "import os\nos._exit(0)\n"}, false},
		{"no report", map[string]string{"pytest.ini": "[pytest]\naddopts = --junitxml=x.xml -p h\n",
			"h.py": "def pytest_configure(config):\n    config.option.xmlpath = None\n"}, false},

		{"the work itself", map[string]string{"calc.py": good}, true},
		{"options of its own", map[string]string{"calc.py": good,
			"pytest.ini": "[pytest]\naddopts = -ra --strict-markers\n" +
				"testpaths = other\nmarkers =\n    slow: takes long\n"}, true},
		{"a fixture for all", map[string]string{"calc.py": good, "conftest.py": "import pytest\n\n\n" +
			"@pytest.fixture(autouse=True)\ndef here(tmp_path):\n    yield tmp_path\n"}, true},
		{"tests are an honest package", map[string]string{"calc.py": good, "tests/__init__.py": ""}, true},
		{"a module with the name of one of Python's", map[string]string{"code.py": "",
			"calc.py": "import code\n\nassert not hasattr(code, 'interact')\n\n\n" + good}, true},
		{"a plugin of its own", map[string]string{"calc.py": good, "plug.py": "",
			"pytest.ini": "[pytest]\naddopts = -p plug\n"}, true},
		{"a suite beside it", map[string]string{"calc.py": good,
			"tests/test_more.py": "def test_more():\n    pass\n"}, true},
	} {
		a.judge(t, base, "tests/test_t001_add.py")
	}
}

// TestPythonsOwn: pytest and its imports come from the interpreter, whatever modules of these names the tree has.
func TestPythonsOwn(t *testing.T) {
	reports := "import os, sys\n\nfile = [a for a in sys.argv if a.startswith('--junitxml=')][0][11:]\n" +
		"open(file, 'w').write('<testsuites><testsuite tests=\"1\"><testcase classname=\"tests.test_t001_add\" " +
		"name=\"test_add\"/></testsuite></testsuites>')\nos._exit(0)\n"
	test := "from calc import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n"
	for _, name := range []string{"pytest.py", "pytest/__main__.py", "_pytest/junitxml.py", "json.py", "pluggy.py"} {
		for code, passes := range map[string]bool{"def add(a, b):\n    return 0\n": false,
			"def add(a, b):\n    return a + b\n": true} {
			dir := tree(t, map[string]string{"calc.py": code, "tests/test_t001_add.py": test, name: reports})
			if p := survey(ExecEnv{Dir: dir}, nil, Tasks{}); !hasPytest(p) {
				t.Skip("pytest is not installed")
			}
			wantPassed(t, judge(t, dir, Tasks{Current: "T-001", Seed: []string{"tests/test_t001_add.py"}}), passes)
		}
	}
}

// TestPythonOfTheTree: git-tilth does not use an interpreter from the tree, but one that setup installed there.
func TestPythonOfTheTree(t *testing.T) {
	dir := tree(t, map[string]string{"a.py": "", "tools/python": "#!/bin/sh\nexit 0\n"})
	if err := os.Chmod(filepath.Join(dir, "tools/python"), 0o755); err != nil {
		t.Fatal(err)
	}
	put(t, dir, "venv/bin/x", "")
	if err := os.Symlink("../../tools/python", filepath.Join(dir, "venv/bin/python")); err != nil {
		t.Fatal(err)
	}
	for _, files := range [][]string{{"a.py", "tools/python", "venv/bin/python"}, {"a.py"}} {
		p := survey(ExecEnv{Dir: dir}, files, Tasks{})
		of := strings.HasPrefix(p.pyTool(context.Background(), ".", "pytest")[0], p.Root)
		if of == slices.Contains(files, "tools/python") {
			t.Errorf("%q: the interpreter of the tree is taken: %v", files, of)
		}
	}
}

// TestGoEvidence: so has go test's.
func TestGoEvidence(t *testing.T) {
	need(t, "go")
	base := map[string]string{
		"go.mod":      "module example.com/calc\n\ngo 1.21\n",
		"sub/calc.go": "package sub\n\nfunc Add(a, b int) int { return 0 }\n",
		"sub/t001_add_test.go": "package sub\n\nimport \"testing\"\n\nfunc TestAdd(t *testing.T) {\n" +
			"\tif Add(1, 2) != 3 {\n\t\tt.Fatal()\n\t}\n}\n",
	}
	good := "package sub\n\nfunc Add(a, b int) int { return a + b }\n"
	for _, a := range []attack{
		{"go.mod ignores it", map[string]string{"go.mod": "module example.com/calc\n\ngo 1.25\n\nignore ./sub\n",
			"main.go": "package calc\n"}, false},
		{"its module lies elsewhere", map[string]string{"go.mod": "", "other/go.mod": "module example.com/calc\n",
			"other/calc.go": "package calc\n"}, false},
		{"TestMain", map[string]string{"sub/main_test.go": "package sub\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\n" +
			"func TestMain(*testing.M) { os.Exit(0) }\n"}, false},
		{"it ends at once", map[string]string{"sub/calc.go": "package sub\n\nimport \"os\"\n\n" +
			"func init() { os.Exit(0) }\n\nfunc Add(a, b int) int { return 0 }\n"}, false},

		{"the work itself", map[string]string{"sub/calc.go": good}, true},
		{"an honest TestMain", map[string]string{"sub/calc.go": good, "sub/main_test.go": "package sub\n\nimport (\n" +
			"\t\"os\"\n\t\"testing\"\n)\n\nfunc TestMain(m *testing.M) { os.Exit(m.Run()) }\n"}, true},
		{"a module becomes one of a workspace", map[string]string{"sub/calc.go": good, "go.work": "go 1.21\n\n" +
			"use (\n\t.\n\t./tool\n)\n", "tool/go.mod": "module example.com/tool\n\ngo 1.21\n",
			"tool/main.go": "package main\n\nfunc main() {}\n"}, true},
	} {
		a.judge(t, base, "sub/t001_add_test.go")
	}
}

// TestNodeEvidence: and node's.
func TestNodeEvidence(t *testing.T) {
	need(t, "node")
	need(t, "npm")
	base := map[string]string{
		"package.json": `{"name": "x", "scripts": {"test": "node --test"}}`,
		"add.js":       "exports.add = () => 0;\n",
		"test/t001-add.test.js": "const test = require('node:test');\nconst assert = require('node:assert');\n" +
			"const { add } = require('../add');\ntest('add', () => assert.equal(add(1, 2), 3));\n",
	}
	good := "exports.add = (a, b) => a + b;\n"
	for _, a := range []attack{
		{"the process ends", map[string]string{"add.js": "process.exit(0);\n"}, false},
		{"a pattern", map[string]string{"package.json": `{"scripts": {"test": "node --test --test-name-pattern=nothing"}}`},
			false},
		{"the work itself", map[string]string{"add.js": good}, true},
		{"a reporter of its own", map[string]string{"add.js": good,
			"package.json": `{"scripts": {"test": "node --test --test-reporter dot"}}`}, true},
	} {
		a.judge(t, base, "test/t001-add.test.js")
	}
}

// TestRustEvidence: and libtest's.
func TestRustEvidence(t *testing.T) {
	need(t, "cargo")
	base := map[string]string{
		"Cargo.toml":        "[package]\nname = \"calc\"\nversion = \"0.1.0\"\nedition = \"2021\"\n",
		"src/lib.rs":        "pub fn add(_: i32, _: i32) -> i32 { 0 }\n",
		"tests/t001_add.rs": "#[test]\nfn add() { assert_eq!(calc::add(1, 2), 3); }\n",
	}
	good := "pub fn add(a: i32, b: i32) -> i32 { a + b }\n"
	for _, a := range []attack{
		{"autotests", map[string]string{"Cargo.toml": base["Cargo.toml"] + "autotests = false\n"}, false},
		{"another harness", map[string]string{"Cargo.toml": base["Cargo.toml"] +
			"[lib]\ntest = false\n[[test]]\nname = \"t001_add\"\ntest = false\n"}, false},
		{"another package's test of the same name", map[string]string{
			"Cargo.toml":              base["Cargo.toml"] + "autotests = false\n[workspace]\nmembers = [\"other\"]\n",
			"other/Cargo.toml":        strings.Replace(base["Cargo.toml"], "calc", "other", 1),
			"other/src/lib.rs":        "",
			"other/tests/t001_add.rs": "#[test]\nfn add() {}\n"}, false},
		{"a workspace", map[string]string{"src/lib.rs": good,
			"Cargo.toml":       base["Cargo.toml"] + "[workspace]\nmembers = [\"other\"]\n",
			"other/Cargo.toml": strings.Replace(base["Cargo.toml"], "calc", "other", 1),
			"other/src/lib.rs": "#[test]\nfn add() {}\n"}, true},
		{"the work itself", map[string]string{"src/lib.rs": good}, true},
		{"a test of its own", map[string]string{"src/lib.rs": good + "#[cfg(test)]\nmod tests {\n    #[test]\n" +
			"    fn zero() { assert_eq!(super::add(0, 0), 0); }\n}\n"}, true},
	} {
		a.judge(t, base, "tests/t001_add.rs")
	}
	// a test that is a module of the library
	base["src/t001_mul.rs"] = "#[test]\nfn mul() { assert_eq!(crate::mul(2, 3), 6); }\n"
	for _, a := range []attack{
		{"a test of the same name", map[string]string{"src/lib.rs": good + "#[test]\nfn mul() {}\n"}, false},
		{"the module", map[string]string{"src/lib.rs": good + "pub fn mul(a: i32, b: i32) -> i32 { a * b }\n" +
			"#[cfg(test)]\nmod t001_mul;\n"}, true},
	} {
		a.judge(t, base, "src/t001_mul.rs")
	}
}

// TestOwnTemp: each check has a separate directory for temporary files.
func TestOwnTemp(t *testing.T) {
	dir := t.TempDir()
	vs := []Validator{{Name: "a", Command: `echo x > "$TMPDIR/left"; echo "$TMPDIR" >> dirs`},
		{Name: "b", Command: `test ! -e "$TMPDIR/left"; echo "$TMPDIR" >> dirs`}}
	wantPassed(t, Run(context.Background(), vs, ExecEnv{Dir: dir}, 0), true)
	data, err := os.ReadFile(filepath.Join(dir, "dirs"))
	if err != nil {
		t.Fatal(err)
	}
	if dirs := strings.Fields(string(data)); len(dirs) != 2 || len(slices.Compact(dirs)) != 2 {
		t.Errorf("directories %q", dirs)
	}
}
