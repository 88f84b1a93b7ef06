package validator

import (
	"encoding/json"
	"encoding/xml"
	"path/filepath"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/pattern"
	"github.com/git-tilth/git-tilth/internal/project"
)

// state is the outcome of one test.
type state int

const (
	skipped state = iota // it was left out, or is expected to fail
	passed
	failed
)

// report is a runner's report of its tests.
type report struct {
	tests map[test]state
	text  string // its output for people, where that is not what it printed
	empty bool   // it says that there were no tests
}

// test names one test. where is the runner's name for its place: a file, a package, a module with classes.
type test struct{ where, name string }

func (t test) String() string {
	if t.where == "" {
		return t.name
	}
	return t.where + "::" + t.name
}

// add adds a test. Cases of one test (parameters, retries in other projects) count together: a failed case fails it,
// and a passed case runs it.
func (r *report) add(where, name string, s state) {
	if r.tests == nil {
		r.tests = map[test]state{}
	}
	t := test{where, name}
	r.tests[t] = max(s, r.tests[t])
}

// readers read the formats. file is the runner's report file, output its output; root is the base of paths.
var readers = map[project.Format]func(file, output []byte, root string) report{
	project.JUnit:   readJUnit,
	project.GoTest:  func(_, output []byte, _ string) report { return readGoTest(output) },
	project.NodeLog: func(file, _ []byte, root string) report { return readNodeLog(file, root) },
	project.Jest:    func(file, _ []byte, root string) report { return readJest(file, root) },
	project.Mocha:   func(file, _ []byte, root string) report { return readMocha(file, root) },
	project.Libtest: func(_, output []byte, root string) report { return readLibtest(output, root) },
}

// readJUnit reads pytest's XML. A test case stands there with its setup alone, too; the suite counts calls only.
func readJUnit(file, _ []byte, _ string) report {
	type none struct{}
	var doc struct {
		Suites []struct {
			Tests int `xml:"tests,attr"`
			Cases []struct {
				Class   string `xml:"classname,attr"`
				Name    string `xml:"name,attr"`
				Failure []none `xml:"failure"`
				Error   []none `xml:"error"`
				Skipped []none `xml:"skipped"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	var r report
	if xml.Unmarshal(file, &doc) != nil {
		return r
	}
	for _, suite := range doc.Suites {
		names := map[test]bool{}
		for _, c := range suite.Cases {
			names[test{c.Class, c.Name}] = true
		}
		if len(names) > suite.Tests {
			continue
		}
		for _, c := range suite.Cases {
			s := passed
			switch {
			case len(c.Failure)+len(c.Error) > 0:
				s = failed
			case len(c.Skipped) > 0:
				s = skipped
			}
			name, _, _ := strings.Cut(c.Name, "[") // the case's parameters
			r.add(c.Class, name, s)
		}
	}
	return r
}

// readGoTest reads test2json's lines. For display it keeps the output of `go test` without -v: lines of packages and of
// failed tests.
func readGoTest(output []byte) report {
	var r report
	said, bad := map[test]*strings.Builder{}, map[test]bool{}
	var order []test
	var loose strings.Builder
	for line := range strings.Lines(string(output)) {
		var e struct{ Action, Package, ImportPath, Test, Output string }
		if !strings.HasPrefix(line, "{") || json.Unmarshal([]byte(line), &e) != nil {
			loose.WriteString(line)
			continue
		}
		t := test{e.Package, e.Test}
		switch e.Action {
		case "output", "build-output":
			if said[t] == nil {
				said[t], order = &strings.Builder{}, append(order, t)
			}
			said[t].WriteString(e.Output)
		case "pass", "fail", "skip":
			bad[t] = e.Action == "fail"
			if e.Test != "" {
				r.add(e.Package, e.Test, map[string]state{"pass": passed, "fail": failed}[e.Action])
			}
		}
	}
	// What is said of packages comes after their tests, as go test has it.
	slices.SortStableFunc(order, func(a, b test) int {
		if a.where != b.where || (a.name == "") == (b.name == "") {
			return 0
		}
		if a.name == "" {
			return 1
		}
		return -1
	})
	var text strings.Builder
	for _, t := range order {
		ended, is := bad[t]
		if t.name != "" && is && !ended {
			continue
		}
		for line := range strings.Lines(said[t].String()) {
			if !goNoise().MatchString(line) {
				text.WriteString(line)
			}
		}
	}
	r.text = loose.String() + text.String()
	return r
}

var goNoise = pattern.New(`^(=== (RUN|PAUSE|CONT|NAME)\b|PASS\n$)`)

// nodeReporter makes node's own runner write a line for each test. Its other reporters do not name the file.
const nodeReporter = `export default async function* (source) {
  for await (const { type, data } of source)
    if (type === 'test:pass' || type === 'test:fail')
      yield JSON.stringify({ type, name: data.name, file: data.file,
        suite: data.details?.type === 'suite', left: data.skip !== undefined || data.todo !== undefined }) + '\n';
}
`

// readNodeLog reads the lines of nodeReporter. A file without a test is reported as a test of its own name.
func readNodeLog(file []byte, root string) report {
	var r report
	for line := range strings.Lines(string(file)) {
		var e struct {
			Type, Name, File string
			Suite, Left      bool
		}
		if json.Unmarshal([]byte(line), &e) != nil || e.Suite {
			continue
		}
		ran := e.Name != e.File && !strings.HasSuffix(e.File, string(filepath.Separator)+filepath.Clean(e.Name))
		switch {
		case e.Type == "test:fail" && !e.Left:
			r.add(relative(root, e.File), e.Name, failed)
		case ran && e.Left:
			r.add(relative(root, e.File), e.Name, skipped)
		case ran:
			r.add(relative(root, e.File), e.Name, passed)
		}
	}
	return r
}

// readJest reads jest's JSON, or vitest's.
func readJest(file []byte, root string) report {
	var doc struct {
		TestResults []struct {
			Name, Status, Message string
			AssertionResults      []struct{ FullName, Status string }
		}
	}
	var r report
	if json.Unmarshal(file, &doc) != nil {
		return r
	}
	r.empty = doc.TestResults != nil && len(doc.TestResults) == 0
	for _, f := range doc.TestResults {
		where := relative(root, f.Name)
		if f.Status == "failed" && len(f.AssertionResults) == 0 {
			r.add(where, "the file itself", failed)
		}
		for _, t := range f.AssertionResults {
			r.add(where, t.FullName, map[string]state{"passed": passed, "failed": failed}[t.Status])
		}
	}
	return r
}

// readMocha reads mocha's JSON, and makes mocha's usual output for display.
func readMocha(file []byte, root string) report {
	type entry struct {
		FullTitle, File string
		Err             struct{ Stack, Message string }
	}
	var doc struct{ Passes, Pending, Failures []entry }
	var r report
	if json.Unmarshal(file, &doc) != nil {
		return r
	}
	var text strings.Builder
	for _, of := range []struct {
		entries []entry
		state   state
	}{{doc.Passes, passed}, {doc.Pending, skipped}, {doc.Failures, failed}} {
		for _, t := range of.entries {
			r.add(relative(root, t.File), t.FullTitle, of.state)
			if of.state == failed {
				text.WriteString(t.FullTitle + "\n" + t.Err.Message + "\n" + t.Err.Stack + "\n")
			}
		}
	}
	r.text = text.String()
	return r
}

var (
	libtestRuns = pattern.New(`^\s*Running (?:unittests )?\S+ \((\S+)\)`)
	libtestTest = pattern.New(`^test (\S+)(?: - .*)? \.\.\. (ok|FAILED|ignored)`)
)

// readLibtest reads the lines that Rust's tests print, each below the program that cargo names. From which file that
// was built is in cargo's JSON: the name of a file alone may be that of several packages.
func readLibtest(output []byte, root string) report {
	var r report
	built := map[string]string{}
	var lines []string
	for line := range strings.Lines(string(output)) {
		var m struct {
			Reason, Executable string
			Target             struct {
				Source string `json:"src_path"`
			}
		}
		if !strings.HasPrefix(line, `{"reason":`) || json.Unmarshal([]byte(line), &m) != nil {
			lines = append(lines, line)
		} else if m.Executable != "" {
			built[filepath.Base(m.Executable)] = relative(root, m.Target.Source)
		}
	}
	where := ""
	for _, line := range lines {
		if m := libtestRuns().FindStringSubmatch(line); m != nil {
			where = built[filepath.Base(m[1])]
		} else if strings.HasPrefix(strings.TrimSpace(line), "Doc-tests ") {
			where = "doc"
		} else if m := libtestTest().FindStringSubmatch(line); m != nil {
			r.add(where, m[1], map[string]state{"ok": passed, "FAILED": failed}[m[2]])
		}
	}
	r.text = strings.Join(lines, "")
	return r
}

func relative(root, file string) string {
	if rel, err := filepath.Rel(root, file); err == nil && filepath.IsAbs(file) {
		return filepath.ToSlash(rel)
	}
	return filepath.ToSlash(file)
}
