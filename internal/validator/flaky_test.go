package validator

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// stubMocha does what a retry needs of mocha: synchronous tests, --grep, --invert and the JSON reporter.
const stubMocha = `#!/usr/bin/env node
const fs = require('fs'), path = require('path'), args = process.argv.slice(2);
const grep = args.includes('--grep') ? new RegExp(args[args.indexOf('--grep') + 1]) : /./;
const report = { passes: [], failures: [] }, suites = [];
let file;
global.describe = (name, body) => { suites.push(name); body(); suites.pop(); };
global.it = (name, body) => {
  const test = { fullTitle: [...suites, name].join(' '), file };
  if (grep.test(test.fullTitle) === args.includes('--invert')) return;
  try { body(); report.passes.push(test); } catch (err) { report.failures.push(test); }
};
for (const name of fs.readdirSync('test')) require(file = path.resolve('test', name));
const output = args.find((arg) => arg.startsWith('--reporter-option=output='));
fs.writeFileSync(output.split('=')[2], JSON.stringify(report));
process.exitCode = report.failures.length;
`

// TestRetry: a test that fails and then passes alone is flaky and does not fail the report. A test that fails again, or
// another failure, fails it.
func TestRetry(t *testing.T) {
	py := "import os\n\n\ndef test_a():\n    if not os.path.exists('ran'):\n        open('ran', 'w').close()\n" +
		"        assert 0\n\n\ndef test_b():\n    pass\n"
	golang := "package x\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\nfunc TestA(t *testing.T) {\n" +
		"\tt.Run(\"s\", func(t *testing.T) {\n\t\tif _, err := os.Stat(\"ran\"); err != nil {\n" +
		"\t\t\tos.Create(\"ran\")\n\t\t\tt.Fatal()\n\t\t}\n\t})\n}\n\nfunc TestB(t *testing.T) {}\n"
	node := "const fs = require('fs');\nconst test = require('node:test');\ntest('a (1)', () => {\n" +
		"  if (!fs.existsSync('ran')) { fs.writeFileSync('ran', ''); throw new Error('x'); }\n});\n"
	manifest := `{"scripts": {"test": "node --test"}}`
	mod := "module example.com/x\n\ngo 1.21\n"
	leak := "package x\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\nfunc TestMain(m *testing.M) {\n\tm.Run()\n" +
		"\tos.Exit(1)\n}\n"
	after := "package x\n\nimport \"testing\"\n\nvar ran bool\n\nfunc TestA(t *testing.T) { ran = true }\n\n" +
		"func TestB(t *testing.T) {\n\tif ran {\n\t\tt.Fatal()\n\t}\n}\n"
	pyAfter := "ran = []\n\n\ndef test_a():\n    ran.append(1)\n\n\nclass TestX:\n    def test_b(self):\n" +
		"        assert not ran\n"
	cov := "def pytest_sessionfinish(session):\n    session.exitstatus = 1\n"
	nodeAfter := "const test = require('node:test');\nlet ran = false;\ntest('a', () => { ran = true; });\n" +
		"test('b', () => { if (ran) throw new Error('x'); });\n"
	nodeSkips := exec.Command("node", "--test-skip-pattern=x", "--version").Run() == nil // before version 22 it cannot
	mocha := "const fs = require('fs');\nit('a (1)', () => {\n" +
		"  if (!fs.existsSync('ran')) { fs.writeFileSync('ran', ''); throw new Error('x'); }\n});\n"
	mochaAfter := "let ran = false;\ndescribe('m', () => {\n  it('a', () => { ran = true; });\n" +
		"  it('b', () => { if (ran) throw new Error('x'); });\n});\n"
	byMocha, belowLimit := `{"scripts": {"test": "mocha"}}`, `{"scripts": {"test": "sh limit mocha"}}`
	limit := "\"$@\"\nexit 1\n"
	crate := "[package]\nname = \"x\"\nversion = \"0.1.0\"\nedition = \"2021\"\n"
	once := "if !std::path::Path::new(\"ran\").exists() { std::fs::write(\"ran\", \"\").unwrap(); panic!() }"
	rust := "#[test]\nfn a() { " + once + " }\n\n#[test]\nfn ab() {}\n"
	rustDoc := "/// ```\n/// " + once + "\n/// ```\npub fn f() {}\n\n#[test]\nfn b() {}\n"
	rustAfter := "mod m {\n    #[test]\n    fn b() { assert!(std::env::args().any(|a| a == \"m::b\")) }\n}\n\n" +
		"#[test]\nfn c() {}\n"
	exits := "\n[[test]]\nname = \"exits\"\nharness = false\n"
	for _, c := range []struct {
		name   string
		files  map[string]string
		known  Known
		flaky  []string
		passes bool
	}{
		{"pytest", map[string]string{"tests/test_x.py": py}, nil, []string{"tests.test_x::test_a"}, true},
		{"pytest, another fails", map[string]string{"tests/test_x.py": py,
			"test_y.py": "def test_c():\n    assert 0\n"}, nil,
			[]string{"tests.test_x::test_a"}, false},
		{"pytest, another cannot be loaded", map[string]string{"tests/test_x.py": py, "test_y.py": "import nothing\n"},
			nil, []string{"tests.test_x::test_a"}, false},
		{"pytest, known", map[string]string{"tests/test_x.py": py},
			Known{"pytest": {"tests.test_x::test_a"}}, nil, false},
		{"pytest, the task's own", map[string]string{"tests/test_t001_x.py": py}, nil, nil, false},
		{"pytest, of an earlier task", map[string]string{"tests/test_t002_x.py": py}, nil,
			[]string{"tests/test_t002_x.py::test_a"}, true},
		{"pytest, in a package", map[string]string{"a/pyproject.toml": "", "a/tests/test_x.py": py}, nil,
			[]string{"tests.test_x::test_a"}, true},
		{"go, in a module", map[string]string{"a/go.mod": mod, "a/x_test.go": golang}, nil,
			[]string{"example.com/x::TestA", "example.com/x::TestA/s"}, true},
		{"node, in a package", map[string]string{"a/package.json": manifest, "a/x.test.js": node}, nil,
			[]string{"a/x.test.js::a (1)"}, true},
		{"go", map[string]string{"go.mod": mod, "x_test.go": golang}, nil,
			[]string{"example.com/x::TestA", "example.com/x::TestA/s"}, true},
		{"go, another package is not built", map[string]string{"go.mod": mod, "x_test.go": golang,
			"y/y_test.go": "package y\n\nvar a int = true\n"}, nil,
			[]string{"example.com/x::TestA", "example.com/x::TestA/s"}, false},
		{"go panics", map[string]string{"go.mod": mod, "x_test.go": "package x\n\nimport \"testing\"\n\n" +
			"func TestA(t *testing.T) { panic(1) }\n"}, nil, nil, false},
		{"node", map[string]string{"package.json": manifest, "x.test.js": node}, nil,
			[]string{"x.test.js::a (1)"}, true},
		{"pytest, the status has another cause", map[string]string{"tests/test_x.py": py, "conftest.py": cov}, nil,
			[]string{"tests.test_x::test_a"}, false},
		{"pytest, after another test", map[string]string{"tests/test_x.py": pyAfter}, nil,
			[]string{"tests.test_x.TestX::test_b"}, true},
		{"pytest, after another test, the status has another cause", map[string]string{"tests/test_x.py": pyAfter,
			"conftest.py": cov}, nil, []string{"tests.test_x.TestX::test_b"}, false},
		{"go, the status has another cause", map[string]string{"go.mod": mod, "x_test.go": golang, "m_test.go": leak},
			nil, []string{"example.com/x::TestA", "example.com/x::TestA/s"}, false},
		{"go, after another test", map[string]string{"go.mod": mod, "x_test.go": after}, nil,
			[]string{"example.com/x::TestB"}, true},
		{"go, after another test, the status has another cause", map[string]string{"go.mod": mod, "x_test.go": after,
			"m_test.go": leak}, nil, []string{"example.com/x::TestB"}, false},
		{"node, after another test", map[string]string{"package.json": manifest, "x.test.js": nodeAfter}, nil,
			[]string{"x.test.js::b"}, nodeSkips},
		{"node, the status has another cause", map[string]string{"package.json": manifest, "x.test.js": node +
			"process.on('exit', () => { process.exitCode = 1; });\n"}, nil, []string{"x.test.js::a (1)"}, false},
		{"mocha", map[string]string{"package.json": byMocha, "test/x.js": mocha}, nil,
			[]string{"test/x.js::a (1)"}, true},
		{"mocha, after another test", map[string]string{"package.json": byMocha, "test/x.js": mochaAfter}, nil,
			[]string{"test/x.js::m b"}, true},
		{"mocha, after another test, below a limit", map[string]string{"package.json": belowLimit, "limit": limit,
			"test/x.js": mochaAfter}, nil, []string{"test/x.js::m b"}, false},
		{"cargo", map[string]string{"Cargo.toml": crate, "src/lib.rs": rust}, nil, []string{"src/lib.rs::a"}, true},
		{"cargo, after another test", map[string]string{"Cargo.toml": crate, "src/lib.rs": rustAfter}, nil,
			[]string{"src/lib.rs::m::b"}, true},
		{"cargo, after another test, the status has another cause", map[string]string{"Cargo.toml": crate + exits,
			"src/lib.rs": rustAfter, "tests/exits.rs": "fn main() { std::process::exit(1) }\n"}, nil,
			[]string{"src/lib.rs::m::b"}, false},
		{"cargo, of the documentation", map[string]string{"Cargo.toml": crate, "src/lib.rs": rustDoc}, nil,
			[]string{"doc::src/lib.rs"}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			tool, _, _ := strings.Cut(c.name, ",")
			in := ExecEnv{Dir: tree(t, c.files)}
			if tool = strings.Fields(tool)[0]; tool == "mocha" && exec.Command("mocha", "--version").Run() != nil {
				tool = "node"
				put(t, in.Dir, "node_modules/.bin/mocha", stubMocha)
				if err := os.Chmod(filepath.Join(in.Dir, "node_modules/.bin/mocha"), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			need(t, tool)
			tasks := Tasks{Current: "T-001", Done: []string{"T-002"}, All: three}
			vs := Detect(t.Context(), in, nil, tasks)
			r := Run(t.Context(), vs, in, 0)
			if r.Passed {
				t.Fatal("nothing failed")
			}
			got := r.Retry(t.Context(), vs, in, 0, 2, c.known, "T-001")
			if !slices.Equal(got, c.flaky) || r.Passed != c.passes {
				t.Errorf("flaky %q, passed %v\n%s", got, r.Passed, r.Text())
			}
		})
	}
}

// TestRepeat: a test is found by each of its names, and its rate is that of runs alone.
func TestRepeat(t *testing.T) {
	in := ExecEnv{Dir: tree(t, map[string]string{"a/pyproject.toml": "",
		"a/tests/test_x.py": "import os\n\n\nclass TestX:\n" +
			"    def test_a(self):\n        with open('n', 'a+') as f:\n            f.write('x')\n" +
			"        assert os.path.getsize('n') % 4\n"})}
	vs := Detect(t.Context(), in, nil, Tasks{})
	for _, name := range []string{"test_a", "a/tests/test_x.py::TestX::test_a",
		"tests/test_x.py::TestX::test_a", "tests.test_x.TestX::test_a"} {
		rate, err := Repeat(t.Context(), vs, in, name, 4, 0)
		if err != nil || rate.Runs != 4 || rate.Failed != 1 {
			t.Errorf("%s: %+v %v", name, rate, err)
		}
	}
	if _, err := Repeat(t.Context(), vs, in, "test_b", 4, 0); err == nil {
		t.Error("a test that is not there ran")
	}
}
