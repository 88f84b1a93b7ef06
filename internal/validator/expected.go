package validator

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/pattern"
)

// given is an acceptance test file that a run has to report on.
type given struct {
	file  string // relative to the worktree
	where string // what the runner calls it, or the package that it is in
}

// wanted are tests that a static reading of a file found. Some may be left out: the file itself says so.
type wanted map[test]bool

// is reports whether a test that a runner reported is one of the file.
func (g given) is(t test) bool {
	switch path.Ext(g.file) {
	case ".py": // its classes follow
		return t.where == g.where || strings.HasPrefix(t.where, g.where+".")
	case ".rs": // a module of another file is named in its tests
		module := strings.TrimSuffix(strings.TrimSuffix(g.file, ".rs"), "/mod")
		return g.where == t.where || !integrationTest().MatchString(g.file) &&
			slices.Contains(strings.Split(t.name, "::"), path.Base(module))
	}
	return g.where == t.where
}

// tests reads the file's tests, nil where no tests can be told without running it.
func (g given) tests(root string) wanted {
	data, err := jsonl.ReadIn(root, filepath.FromSlash(g.file), readCap)
	if err != nil {
		return nil
	}
	switch path.Ext(g.file) {
	case ".py":
		return pythonTests(g.where, string(data))
	case ".go":
		return goTestsIn(g.where, data)
	case ".rs":
		return rustTests(g.where, string(data))
	}
	return nil
}

var (
	pyClass = pattern.New(`^class\s+(\w+)\s*(?:\(([^)]*)\))?\s*:`)
	pyTest  = pattern.New(`^(\s*)(?:async\s+)?def\s+(test\w*)\s*\(`)
	pyBlock = pattern.New(`^(?:async\s+def|def|class)\b`)
	pyLeft  = pattern.New(`\b(?:skip\w*|xfail|expectedFailure)\b`)
)

// pythonTests are the functions of a module, and the methods of its classes, that pytest takes for tests.
func pythonTests(where, source string) wanted {
	out := wanted{}
	class, classLeft, indent := "", false, ""
	left, module := false, false // by a decorator; by pytestmark
	quote := ""
	for line := range strings.Lines(source) {
		trimmed := strings.TrimSpace(line)
		if quote != "" || strings.HasPrefix(trimmed, "#") || trimmed == "" {
			if quote != "" && strings.Contains(line, quote) {
				quote = ""
			}
			continue
		}
		for _, q := range []string{`"""`, "'''"} {
			if strings.Count(line, q)%2 == 1 {
				quote = q
			}
		}
		outer := line[0] != ' ' && line[0] != '\t'
		switch {
		case strings.HasPrefix(trimmed, "@"):
			left = left || pyLeft().MatchString(trimmed)
			continue
		case outer && strings.HasPrefix(trimmed, "pytestmark"):
			module = module || pyLeft().MatchString(trimmed)
		case outer && trimmed[0] != ')':
			class, indent = "", ""
			if m := pyClass().FindStringSubmatch(line); m != nil &&
				(strings.HasPrefix(m[1], "Test") || strings.Contains(m[2], "TestCase")) {
				class, classLeft = m[1], left
			}
		}
		if m := pyTest().FindStringSubmatch(line); m != nil {
			if class != "" && indent == "" {
				indent = m[1]
			}
			switch {
			case m[1] == "":
				out[test{where, m[2]}] = left || module
			case class != "" && m[1] == indent:
				out[test{where + "." + class, m[2]}] = left || module || classLeft
			}
		} else if class != "" && indent == "" && !outer && strings.HasPrefix(trimmed, "def ") {
			indent = line[:len(line)-len(strings.TrimLeft(line, " \t"))]
		}
		if pyBlock().MatchString(trimmed) {
			left = false
		}
	}
	return out
}

// dotted returns the name of a test's file in pytest's report.
func dotted(file string) string {
	return strings.ReplaceAll(strings.TrimSuffix(file, ".py"), "/", ".")
}

// goTestsIn are the functions of a file that go test runs: tests, and fuzz tests with their seeds.
func goTestsIn(where string, source []byte) wanted {
	f, err := parser.ParseFile(token.NewFileSet(), "", source, parser.SkipObjectResolution)
	if f == nil || err != nil {
		return nil
	}
	out := wanted{}
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Recv != nil || fn.Type.Params.NumFields() != 1 || fn.Name.Name == "TestMain" {
			continue
		}
		for _, prefix := range []string{"Test", "Fuzz"} {
			rest, is := strings.CutPrefix(fn.Name.Name, prefix)
			if first, _ := utf8.DecodeRuneInString(rest); is && !unicode.IsLower(first) {
				out[test{where, fn.Name.Name}] = false
			}
		}
	}
	return out
}

var (
	rustTest = pattern.New(`^#\[(?:\w+::)*test\b`)
	rustFn   = pattern.New(`^(?:pub(?:\([^)]*\))?\s+)?(?:async\s+)?fn\s+(\w+)`)
)

// rustTests are the functions of a file that have a test attribute, by their names without those of modules.
func rustTests(where, source string) wanted {
	out := wanted{}
	is, left := false, false
	for line := range strings.Lines(source) {
		line = strings.TrimSpace(line)
		switch {
		case rustTest().MatchString(line):
			is = true
			if _, rest, ok := strings.Cut(line, "]"); ok && rustFn().MatchString(strings.TrimSpace(rest)) {
				out[test{where, rustFn().FindStringSubmatch(strings.TrimSpace(rest))[1]}] = left
				is, left = false, false
			}
		case strings.HasPrefix(line, "#[ignore"):
			left = true
		case rustFn().MatchString(line):
			if is {
				out[test{where, rustFn().FindStringSubmatch(line)[1]}] = left
			}
			is, left = false, false
		}
	}
	return out
}

// found returns the reported tests of a file with their outcomes.
func (g given) found(r report) map[test]state {
	out := map[test]state{}
	for t, s := range r.tests {
		if !g.is(t) {
			continue
		}
		if path.Ext(g.file) == ".rs" { // modules within a file are left out of its tests' names
			t = test{g.where, t.name[strings.LastIndex(t.name, ":")+1:]}
		}
		out[t] = max(s, out[t])
	}
	return out
}
