package validator

import (
	"slices"
	"strings"
	"testing"
)

// TestOnBase reports tests that pass before any work or cannot be loaded, but not tests that only lack the task's work.
func TestOnBase(t *testing.T) {
	for _, c := range []struct {
		name, test, content string
		want                []string
	}{
		{"python passes", "test_t001_x.py", "def test_a():\n    pass\n\n\ndef test_b():\n    assert 0\n",
			[]string{"test_t001_x.py::test_a"}},
		{"python fails", "test_t001_x.py", "def test_a():\n    assert 0\n", nil},
		{"python misses the module", "test_t001_x.py", "import new\n\n\ndef test_a():\n    pass\n", nil},
		{"python is broken", "test_t001_x.py", "def test_a(:\n    pass\n", []string{"test_t001_x.py: cannot run: "}},
		{"a test about a SyntaxError", "test_t001_x.py", "def test_a():\n    compile('(', '', 'eval')\n", nil},
		{"go passes", "t001_x_test.go", "package x\n\nimport \"testing\"\n\nfunc TestA(t *testing.T) {}\n",
			[]string{"t001_x_test.go::TestA"}},
		{"go misses the name", "t001_x_test.go",
			"package x\n\nimport \"testing\"\n\nfunc TestA(t *testing.T) { New() }\n", nil},
		{"go is broken", "t001_x_test.go", "package x\n\nfunc {\n", []string{"t001_x_test.go: cannot run: "}},
		{"shell passes", "t001_x.sh", "exit 0\n", []string{"t001_x.sh"}},
		{"shell misses the task's program", "t001_x.sh", "./tool\n", nil},
		{"shell misses a program", "t001_x.sh", "no-such-program\n", []string{"t001_x.sh: cannot run: "}},
		{"node passes", "t001-x.test.js", "require('node:test')('a', () => {});\n", []string{"t001-x.test.js::a"}},
		{"node misses the export", "t001-x.test.mjs", "import { sub } from './x.mjs';\n" +
			"import test from 'node:test';\ntest('a', () => sub());\n", nil},
		{"node is broken", "t001-x.test.js", "require('node:test')('a', () => {;\n",
			[]string{"t001-x.test.js: cannot run: "}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := tree(t, map[string]string{c.test: c.content, "go.mod": "module example.com/x\n\ngo 1.21\n",
				"x.go": "package x\n", "x.mjs": "export const add = 1;\n", "package.json": "{}",
				"t002_x_test.go": "package x\n\nfunc {\n", "test_t002_x.py": "import y\n"})
			s := Scene{ExecEnv: ExecEnv{Dir: dir}, Tasks: Tasks{All: three, Seed: []string{c.test, "t002_x_test.go",
				"test_t002_x.py"}}}
			got, err := OnBase(t.Context(), s, []string{"T-001", "T-003"})
			if err != nil {
				t.Fatal(err)
			}
			same := slices.EqualFunc(got["T-001"], c.want, strings.HasPrefix)
			if _, tried := got["T-003"]; !same || tried {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
