package testreport

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/git-tilth/git-tilth/internal/pattern"
)

// Wanted are the tests found by static reading of a file. Some may be skipped by the file itself.
type Wanted map[Test]bool

// Static reads the tests of a source file without running it, nil if that is not possible. where is the runner's name
// of the file or its package.
func Static(file, where string, source []byte) Wanted {
	switch path.Ext(file) {
	case ".py":
		return pythonTests(where, string(source))
	case ".go":
		return goTestsIn(where, source)
	case ".rs":
		return rustTests(where, string(source))
	}
	return nil
}

var (
	pyClass = pattern.New(`^class\s+(\w+)\s*(?:\(([^)]*)\))?\s*:`)
	pyTest  = pattern.New(`^(\s*)(?:async\s+)?def\s+(test\w*)\s*\(`)
	pyBlock = pattern.New(`^(?:async\s+def|def|class)\b`)
	pyLeft  = pattern.New(`\b(?:skip\w*|xfail|expectedFailure)\b`)
)

// pythonTests returns the functions of a module, and the methods of its classes, that pytest runs as tests.
func pythonTests(where, source string) Wanted {
	out := Wanted{}
	class, classLeft, indent := "", false, ""
	left, module := false, false // skipped by a decorator, by pytestmark
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
				out[Test{where, m[2]}] = left || module
			case class != "" && m[1] == indent:
				out[Test{where + "." + class, m[2]}] = left || module || classLeft
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

// goTestsIn returns the functions of a file that go test runs: tests, and fuzz tests with their seeds.
func goTestsIn(where string, source []byte) Wanted {
	f, err := parser.ParseFile(token.NewFileSet(), "", source, parser.SkipObjectResolution)
	if f == nil || err != nil {
		return nil
	}
	out := Wanted{}
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Recv != nil || fn.Type.Params.NumFields() != 1 || fn.Name.Name == "TestMain" {
			continue
		}
		for _, prefix := range []string{"Test", "Fuzz"} {
			rest, is := strings.CutPrefix(fn.Name.Name, prefix)
			if first, _ := utf8.DecodeRuneInString(rest); is && !unicode.IsLower(first) {
				out[Test{where, fn.Name.Name}] = false
			}
		}
	}
	return out
}

var (
	rustTest = pattern.New(`^#\[(?:\w+::)*test\b`)
	rustFn   = pattern.New(`^(?:pub(?:\([^)]*\))?\s+)?(?:async\s+)?fn\s+(\w+)`)
)

// rustTests returns the functions of a file that have a test attribute, by their names without those of modules.
func rustTests(where, source string) Wanted {
	out := Wanted{}
	is, left := false, false
	for line := range strings.Lines(source) {
		line = strings.TrimSpace(line)
		switch {
		case rustTest().MatchString(line):
			is = true
			if _, rest, ok := strings.Cut(line, "]"); ok && rustFn().MatchString(strings.TrimSpace(rest)) {
				out[Test{where, rustFn().FindStringSubmatch(strings.TrimSpace(rest))[1]}] = left
				is, left = false, false
			}
		case strings.HasPrefix(line, "#[ignore"):
			left = true
		case rustFn().MatchString(line):
			if is {
				out[Test{where, rustFn().FindStringSubmatch(line)[1]}] = left
			}
			is, left = false, false
		}
	}
	return out
}
