package text

import (
	"cmp"
	"slices"
	"strings"
	"unicode"

	"github.com/git-tilth/git-tilth/internal/pattern"
)

// FailingLine returns the line with the reason in a failed program's output: pytest's error, the end of a traceback,
// else the first line that looks like an error, else the first line. For a chain of exceptions it returns the last
// one. It skips rules, headings and quoted source.
func FailingLine(output string) string {
	line, _ := failingLine(output)
	return line
}

// FailingLineOf returns the line with the reason why one test failed. ok is false if the output has none.
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
	var first, likely, raised, pytest, head, place string // head is that of a Go test, place that of a syntax error
	var block []string                                    // pytest's lines about one exception
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
		if m := syntaxPlace().FindStringSubmatch(line); m != nil {
			place = m[1] + m[3] + ":" + m[2] + m[4] + ": "
		} else if strings.Contains(line, "SyntaxError:") || strings.Contains(line, "IndentationError:") {
			line, place = place+line, ""
		}
		switch {
		case strings.HasPrefix(line, "__") || strings.HasPrefix(line, "=="):
			if pytest != "" { // the rest belongs to another test
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
		case strings.HasPrefix(line, "Caused by: "):
			likely = line
		case likely != "":
		case strings.HasPrefix(line, "--- FAIL: "):
			head = cmp.Or(head, line)
			if said := goError(lines[i+1:]); said != "" {
				name, _, _ := strings.Cut(strings.TrimPrefix(line, "--- FAIL: "), " ")
				likely = name + ": " + said
			}
		case head != "" && strings.HasPrefix(line, "FAIL"):
		case looksFailed(line):
			likely = line
		case first == "":
			first = line
		}
	}
	line = cmp.Or(pytest, raised, likely, head)
	return cmp.Or(line, first), line != ""
}

// isCaret reports whether a line only marks a place in the line above it.
func isCaret(line string) bool {
	line = strings.TrimSpace(line)
	return line != "" && strings.Trim(line, "^~ ") == ""
}

// syntaxPlace matches the line of Python or Node with the position of a syntax error.
var syntaxPlace = pattern.New(`^(?:File "([^"]+)", line (\d+)|(?:file://)?(/[^\s:]+):(\d+))$`)

// errorIn returns the error in pytest's lines about one exception: the first line with the least indentation. A syntax
// error has its file and its source above it.
func errorIn(block []string) string {
	indent := func(s string) int { return len(s) - len(strings.TrimLeft(s, " ")) }
	line := slices.MinFunc(block, func(a, b string) int { return cmp.Compare(indent(a), indent(b)) })
	m := syntaxPlace().FindStringSubmatch(strings.TrimSpace(block[0]))
	if line = strings.TrimSpace(line); m == nil || len(block) == 1 {
		return line
	}
	return m[1] + ":" + m[2] + ": " + line
}

// goError returns the last error below the head of a Go test, "" for none. testify's errors have several lines.
func goError(lines []string) (said string) {
	place, open := "", false
	for _, line := range lines {
		words := strings.Join(strings.Fields(line), " ")
		title, rest, _ := strings.Cut(words, ": ")
		switch {
		case strings.HasPrefix(line, "panic: "):
			return words
		case !strings.HasPrefix(line, " ") || strings.HasPrefix(words, "--- "):
			return said
		case saysPlace(line):
			said, place, open = words, words, strings.HasSuffix(words, ":")
		case open && title == "Error":
			said = place + " " + rest
		case title == "Test" || title == "Messages" || words == "Diff:":
			open = false
		case open && words != "" && title != "Error Trace":
			said += " " + words
		}
	}
	return said
}

// saysPlace reports whether a line of a Go test's output begins with a file and line.
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
