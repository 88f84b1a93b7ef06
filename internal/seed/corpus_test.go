package seed

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestCorpus imports the lists in testdata/lists/FORMAT. Beside each list NAME stands NAME.want:
//
//	--optional                      the list is read with optional tasks
//	2 tasks, 3 criteria             the line of counts
//	left out: tasks.md:3            the next line of those that name a part left out holds this text
//	context: words                  the context holds this text; "context!" that it does not
//	T-001 (US-001) Title            the next task, with the list's own id
//	  - criterion                   its criteria, in order
//	  needs T-002                   its needs
//	  | words                       its description holds this text; without such a line it is empty; "!" is not held
//	error: todo.md:3: words         the import fails, and the message holds this text
func TestCorpus(t *testing.T) {
	wants, _ := filepath.Glob("testdata/lists/*/*.want")
	formats, _ := filepath.Glob("testdata/lists/*")
	for _, format := range formats {
		if lists, _ := filepath.Glob(format + "/*.want"); len(lists) < 12 || len(formats) < 11 {
			t.Errorf("%s has %d lists", format, len(lists))
		}
	}
	for _, want := range wants {
		list := strings.TrimSuffix(want, ".want")
		t.Run(strings.TrimPrefix(list, "testdata/lists/"), func(t *testing.T) {
			raw, err := os.ReadFile(want)
			if err != nil {
				t.Fatal(err)
			}
			lines := strings.Split(strings.TrimSpace(string(raw)), "\n")
			optional := lines[0] == "--optional"
			if optional {
				lines = lines[1:]
			}
			im, err := Import(list, nil, optional)
			if said, fails := strings.CutPrefix(lines[0], "error: "); fails {
				var ie *ImportError
				if !errors.As(err, &ie) || !strings.Contains(err.Error(), said) || ie.Fix == "" {
					t.Errorf("error %v, want %s", err, said)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, fault := range differences(im, lines) {
				t.Error(fault)
			}
			if t.Failed() {
				t.Logf("%s\n%s\n%s", im.Counts(), strings.Join(im.Dropped, "\n"), shown(im))
			}
			if faults := Check(&im.Bundle, Rules{Root: t.TempDir()}); len(im.Tasks) > 0 && len(faults) > 0 {
				t.Errorf("the import breaks rules: %v", faults)
			}
		})
	}
}

// shown is an import in the form of the expectations, with all of its texts.
func shown(im *Imported) string {
	var b strings.Builder
	for _, task := range im.Tasks {
		source := ""
		if task.SourceID() != "" {
			source = "(" + task.SourceID() + ") "
		}
		fmt.Fprintf(&b, "%s %s%s\n", task.ID, source, task.Title)
		for _, c := range task.AcceptanceCriteria {
			fmt.Fprintf(&b, "  - %s\n", c)
		}
		if len(task.Needs) > 0 {
			fmt.Fprintf(&b, "  needs %s\n", strings.Join(task.Needs, " "))
		}
		for l := range strings.Lines(task.Description) {
			fmt.Fprintf(&b, "  | %s\n", strings.TrimRight(l, "\n"))
		}
	}
	for _, n := range im.Meta.ScopeNotes {
		fmt.Fprintf(&b, "context: %s\n", n)
	}
	return b.String()
}

// differences compares an import with the lines of an expectation.
func differences(im *Imported, want []string) (faults []string) {
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	if im.Counts() != want[0] {
		fault("counts %q, want %q", im.Counts(), want[0])
	}
	context, at, dropped := strings.Join(im.Meta.ScopeNotes, "\n"), -1, 0
	var shape []string
	described := map[int]bool{}
	for _, line := range want[1:] {
		key, words, _ := strings.Cut(strings.TrimLeft(line, " "), " ")
		body := ""
		if at >= 0 && at < len(im.Tasks) {
			body = im.Tasks[at].Description
		}
		switch key {
		case "":
		case "left":
			if said := strings.TrimPrefix(line, "left out: "); dropped >= len(im.Dropped) ||
				!strings.Contains(im.Dropped[dropped], said) {
				fault("not left out: %s", said)
			}
			dropped++
		case "context:", "context!":
			if strings.Contains(context, words) != (key == "context:") {
				fault("%s", line)
			}
		case "|", "!":
			described[at] = described[at] || key == "|"
			if strings.Contains(body, words) != (key == "|") {
				fault("task %d: %s", at+1, line)
			}
		default:
			if !strings.HasPrefix(line, " ") {
				at++
			}
			shape = append(shape, line)
		}
	}
	for i, t := range im.Tasks {
		if t.Description != "" && !described[i] {
			fault("%s has a description: %q", t.ID, t.Description)
		}
	}
	if dropped < len(im.Dropped) {
		fault("left out too: %q", im.Dropped[dropped:])
	}
	got := slices.DeleteFunc(strings.Split(strings.TrimRight(shown(im), "\n"), "\n"), func(l string) bool {
		return strings.HasPrefix(l, "  | ") || l == ""
	})
	if i := slices.IndexFunc(got, func(l string) bool { return strings.HasPrefix(l, "context: ") }); i >= 0 {
		got = got[:i]
	}
	if !slices.Equal(got, shape) {
		fault("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(shape, "\n"))
	}
	return faults
}
