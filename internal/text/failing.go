package text

import (
	"cmp"
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/git-tilth/git-tilth/internal/pattern"
)

// FailingLine returns the line of a failed program's output that says why it failed: pytest's error, the end of a
// traceback, else the first line that looks like an error, else the first line. Of a chain of exceptions it is the last
// one. It skips rules, headings and the source that a runner shows.
func FailingLine(output string) string {
	line, _ := failingLine(output)
	return line
}

// FailingLineOf returns the line that says why one test failed. It reports false if the output does not say it.
func FailingLineOf(output, file, test string) (line string, found bool) {
	var header, named, collecting []string
	lines := strings.Split(output, "\n")
	for i, line := range lines {
		words := strings.FieldsFunc(line, func(r rune) bool {
			return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
		})
		switch is := slices.Contains(words, test); {
		case strings.HasPrefix(line, "__"):
			header = lines[i:]
			if is && named == nil {
				named = header
			} else if collecting == nil && (strings.Contains(line, file) && file != "" ||
				strings.Contains(line, strings.ReplaceAll(test, ".", "/")+".py")) {
				collecting = header
			}
		case is && header == nil && named == nil && !strings.HasPrefix(line, "FAILED: "):
			named = lines[i:]
		}
	}
	switch {
	case named != nil:
		lines = named
	case header != nil:
		lines = collecting
	}
	return failingLine(strings.Join(lines, "\n"))
}

// failingLine is FailingLine. It reports false if no line looks like an error.
func failingLine(output string) (line string, sure bool) {
	var first, likely, raised, pytest string
	var block []string // pytest's lines about one exception
	traced, chained := false, false
	lines := strings.Split(output, "\n")
	for i, whole := range lines {
		line := strings.TrimSpace(whole)
		if said, is := strings.CutPrefix(line, "E  "); is {
			block = append(block, said)
			pytest = errorIn(block)
			continue
		}
		if line == "E" {
			continue
		}
		block = nil
		switch {
		case strings.HasPrefix(line, "__") || strings.HasPrefix(line, "=="):
			if pytest != "" { // what follows is of another test
				return pytest, true
			}
		case strings.Trim(line, "=_-*#^~ ") == "" || i+1 < len(lines) && isCaret(lines[i+1]):
		case strings.HasPrefix(line, "> "), strings.HasPrefix(line, "$ "): // the command, as npm and yarn show it
		case strings.HasPrefix(line, "During handling of"), strings.HasPrefix(line, "The above exception was"):
			chained = true
		case strings.HasPrefix(line, "Traceback ("):
			traced = raised == "" || chained
		case traced && whole != strings.TrimLeft(whole, " \t"):
		case traced:
			raised, traced, chained = line, false, false
		case likely != "":
		case strings.HasPrefix(line, "--- FAIL: ") && i+1 < len(lines) && saysPlace(lines[i+1]):
			name, _, _ := strings.Cut(strings.TrimPrefix(line, "--- FAIL: "), " ")
			likely = name + ": " + strings.TrimSpace(lines[i+1])
		case looksFailed(line):
			likely = line
		case first == "":
			first = line
		}
	}
	line = cmp.Or(pytest, raised, likely)
	return cmp.Or(line, first), line != ""
}

// isCaret reports whether a line only marks a place in the line above it.
func isCaret(line string) bool {
	line = strings.TrimSpace(line)
	return line != "" && strings.Trim(line, "^~ ") == ""
}

var sourceLine = pattern.New(`^\s*File "([^"]+)", (line \d+)`)

// errorIn returns the error in pytest's lines about one exception: the first of those that are indented least. Above a
// syntax error are its file and its source.
func errorIn(block []string) string {
	indent := func(s string) int { return len(s) - len(strings.TrimLeft(s, " ")) }
	line := slices.MinFunc(block, func(a, b string) int { return cmp.Compare(indent(a), indent(b)) })
	m := sourceLine().FindStringSubmatch(block[0])
	if line = strings.TrimSpace(line); m == nil || len(block) == 1 {
		return line
	}
	return line + " (" + path.Base(m[1]) + ", " + m[2] + ")"
}

// saysPlace reports whether a line of Go's test begins with a place, as each that a test writes does.
func saysPlace(line string) bool {
	place, _, _ := strings.Cut(strings.TrimSpace(line), " ")
	return strings.HasPrefix(line, " ") && strings.Contains(place, ".go:") && strings.HasSuffix(place, ":")
}

func looksFailed(line string) bool {
	for _, word := range []string{"FAIL", "rror", "not found", "panic:", "not ok ", "cannot ", "undefined"} {
		if strings.Contains(line, word) {
			return true
		}
	}
	return false
}
