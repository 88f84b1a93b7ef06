package validator

import (
	"strings"
	"testing"

	"github.com/git-tilth/git-tilth/internal/packages"
)

// FuzzNodeScript reads any test script: the result names the tests to run and none of later tasks.
func FuzzNodeScript(f *testing.F) {
	for _, s := range []string{"node --test", "a && node --test 'x/**'", "jest",
		"cross-env A=1 tsx --test --import x y",
		"vitest | tee", "mocha &&", "&&"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, script string) {
		n := nodePackage{
			dir: ".", scripts: map[string]string{"test": script}, manager: []string{"npm", "test", "--"},
			all:      []string{"t001.test.js", "t002.test.js", "x.test.js"},
			required: []string{"t001.test.js"}, later: []string{"t002.test.js"},
		}
		vs := n.validators()
		if len(vs) == 0 {
			t.Errorf("%q: the acceptance test is not run", script)
		}
		for _, v := range vs {
			if v.Name == "" || v.Skip == "" && v.Command == "" && len(v.Argv) == 0 {
				t.Errorf("%q: %+v", script, v)
			}
			left := strings.HasPrefix(v.Command, "mv t002.test.js ") // out of the tree
			if strings.Contains(v.Command, "t002") && !left && !strings.Contains(script, "t002") {
				t.Errorf("%q runs a later task's test: %s", script, v.Command)
			}
		}
		n.required = nil
		n.validators()
	})
}

func FuzzSection(f *testing.F) {
	f.Add("[tool.ruff]\nx = 1\n[y]\n")
	f.Fuzz(func(t *testing.T, text string) {
		if body, ok := packages.Section(text, "tool.ruff"); body != "" && !ok {
			t.Errorf("%q has a body without a section", text)
		}
	})
}

func FuzzFromConfig(f *testing.F) {
	f.Add("test=make test", "")
	f.Fuzz(func(t *testing.T, a, b string) {
		vs, err := FromConfig([]string{a, b}, "")
		if err != nil && vs != nil {
			t.Error("an error with validators")
		}
		for _, v := range vs {
			if v.Name == "" || v.Command == "" || !v.Configured {
				t.Errorf("%q, %q: %+v", a, b, v)
			}
		}
	})
}

func TestCovers(t *testing.T) {
	for _, c := range []struct {
		pattern, file string
		want          bool
	}{
		{"test", "test/a.js", true}, {"test/", "test/a.js", true}, {"./test", "test/a.js", true}, {"test", "test2/a.js",
			false},
		{"test/**/*.test.js", "test/x/a.test.js", true}, {"a.js", "a.js", true}, {".", "a.js", true}, {"[", "a.js",
			false},
	} {
		if got := covers(c.pattern, c.file); got != c.want {
			t.Errorf("covers(%q, %q) is %v", c.pattern, c.file, got)
		}
	}
}
