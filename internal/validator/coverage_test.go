package validator

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/project"
)

// covering is a patch with a new file: its lines 4, 5 and 9 run in no test.
const covering = `diff --git a/sub/calc.go b/sub/calc.go
--- a/sub/calc.go
+++ b/sub/calc.go
@@ -1,2 +1,9 @@
 package sub
+func Add(a, b int) int {
+	if a > 100 {
+		a = 100
+		b = 0
+	}
+	return a + b
+}
-func Old() {}
+func Sub(a, b int) int { return a - b }
diff --git a/sub/calc_test.go b/sub/calc_test.go
--- /dev/null
+++ b/sub/calc_test.go
@@ -0,0 +1 @@
+package sub
`

// TestUncovered: lines of the change that no test ran, of a module that measures them in its Makefile.
func TestUncovered(t *testing.T) {
	files := map[string]string{"go.mod": "module example.com/x\n",
		"Makefile": "cover:\n\tgo test -coverprofile=c ./...\n",
		"sub/calc.go": "package sub\nfunc Add(a, b int) int {\n\tif a > 100 {\n\t\ta = 100\n\t\tb = 0\n\t}\n" +
			"\treturn a + b\n}\nfunc Sub(a, b int) int { return a - b }\n",
		"a/a_test.go": "package a\nimport (\n\"testing\"\n\"example.com/x/sub\"\n)\n" +
			"func TestAdd(*testing.T) { sub.Add(1, 2) }\n"}
	ctx, in := context.Background(), ExecEnv{Dir: tree(t, files)}
	vs := Detect(ctx, in, nil, Tasks{})
	rep := Run(ctx, vs, in, 0)
	wantPassed(t, rep, true)
	got := rep.Uncovered(ctx, vs, in, 0, []byte(covering))
	if want := "sub/calc.go:4-5, 9"; strings.Join(got, "; ") != want {
		t.Errorf("uncovered are %q, want %s", got, want)
	}
	if err := os.Remove(in.Dir + "/Makefile"); err != nil {
		t.Fatal(err)
	}
	if got := rep.Uncovered(ctx, Detect(ctx, in, nil, Tasks{}), in, 0, []byte(covering)); got != nil {
		t.Errorf("a module that does not measure has uncovered lines: %q", got)
	}
}

// TestCoverageFormats: a line that ran and a line that did not, in each format.
func TestCoverageFormats(t *testing.T) {
	for name, content := range map[string]string{
		"coverage.xml": `<coverage><sources><source>TOP/sub</source></sources><packages><package><classes>` +
			`<class filename="a.py"><lines><line number="1" hits="2"/><line number="2" hits="0"/></lines></class>` +
			`</classes></package></packages></coverage>`,
		"cover.out": "mode: set\nexample.com/x/sub/a.py:1.2,1.5 1 1\nexample.com/x/sub/a.py:2.2,2.5 3 0\n",
		"lcov.info": "TN:\nSF:sub/a.py\nDA:1,4\nDA:2,0\nend_of_record\n",
	} {
		in := ExecEnv{Dir: tree(t, map[string]string{"go.mod": "module example.com/x\n"})}
		dir := tree(t, map[string]string{name: strings.ReplaceAll(content, "TOP", in.Dir)})
		v := Validator{coverage: &project.Coverage{}}
		got := v.measured(context.Background(), in, proc.Cmd{}, dir)["sub/a.py"]
		if len(got) != 2 || !got[1] || got[2] {
			t.Errorf("%s: read %v", name, got)
		}
	}
}

// TestCoverageOf: a project measures in its own test command, in another one, or not.
func TestCoverageOf(t *testing.T) {
	for name, c := range map[string]struct {
		runner, file, content string
		measures, own         bool
	}{
		"addopts": {"pytest", "pyproject.toml", "[tool.pytest.ini_options]\naddopts = [\n  \"-q\", '--cov=x',\n]\n",
			true, true},
		"addopts of ini": {"pytest", "pytest.ini", "[pytest]\naddopts =\n    -q\n    --cov\n", true, true},
		"a dependency":   {"pytest", "requirements-dev.txt", "pytest-cov\n", true, false},
		"of tox":         {"pytest", "tox.ini", "[testenv]\ncommands = pytest --cov\n", true, false},
		"without": {"pytest", "pyproject.toml", "[tool.pytest.ini_options]\naddopts = '-q'\n# covers\n",
			false, false},
		"go":     {"go test", ".github/workflows/test.yml", "run: go test -coverprofile=c.out ./...", true, false},
		"vitest": {"vitest", "package.json", `{"scripts": {"test": "vitest run --coverage"}}`, true, false},
		"vitest elsewhere": {"vitest", "package.json", `{"devDependencies": {"@vitest/coverage-v8": "1"}}`,
			true, false},
		"c8":           {"node --test", "package.json", `{"scripts": {"test": "c8 node --test"}}`, true, true},
		"c8 elsewhere": {"mocha", "package.json", `{"devDependencies": {"c8": "1"}}`, true, false},
	} {
		p := survey(ExecEnv{Dir: tree(t, map[string]string{c.file: c.content})}, nil, Tasks{})
		for _, k := range project.Kinds {
			for _, r := range k.Runners {
				if r.Name != c.runner {
					continue
				}
				got := p.coverageOf(Validator{runner: r})
				if (got != nil) != c.measures || got != nil && got.Own != c.own {
					t.Errorf("%s: %v", name, got)
				}
			}
		}
	}
}
