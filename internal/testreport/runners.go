package testreport

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/pattern"
)

// suite is a part of a JUnit report; suites are nested.
type suite struct {
	Tests  int     `xml:"tests,attr"`
	Suites []suite `xml:"testsuite"`
	Cases  []struct {
		Class   string     `xml:"classname,attr"`
		File    string     `xml:"file,attr"`
		Name    string     `xml:"name,attr"`
		Status  string     `xml:"status,attr"`
		Failure []struct{} `xml:"failure"`
		Error   []struct{} `xml:"error"`
		Skipped []struct{} `xml:"skipped"`
	} `xml:"testcase"`
}

// documents decodes XML documents that follow each other, and calls read after each.
func documents(file []byte, into any, read func()) {
	for d := xml.NewDecoder(bytes.NewReader(file)); d.Decode(into) == nil; {
		read()
	}
}

// readJUnit reads JUnit's XML. pytest also reports a test case for its setup alone; the suite counts calls only.
func readJUnit(file []byte, name func(class, file string) string) (r Report) {
	var add func(s suite)
	add = func(s suite) {
		names := map[Test]bool{}
		for _, c := range s.Cases {
			names[Test{c.Class, c.Name}] = true
		}
		for _, c := range s.Cases {
			if len(names) > s.Tests {
				break
			}
			is := Passed
			switch {
			case len(c.Failure)+len(c.Error) > 0 || c.Status == "fail":
				is = Failed
			case len(c.Skipped) > 0:
				is = Skipped
			}
			short, _, _ := strings.Cut(c.Name, "[") // the case's parameters
			r.add(name(c.Class, c.File), short, is)
		}
		for _, inner := range s.Suites {
			add(inner)
		}
	}
	var doc suite
	documents(file, &doc, func() {
		add(doc)
		doc = suite{}
	})
	return r
}

// readTRX reads .NET's XML.
func readTRX(file []byte) (r Report) {
	type run struct {
		Results []struct {
			ID      string `xml:"testId,attr"`
			Outcome string `xml:"outcome,attr"`
		} `xml:"Results>UnitTestResult"`
		Tests []struct {
			ID     string `xml:"id,attr"`
			Method struct {
				Class string `xml:"className,attr"`
				Name  string `xml:"name,attr"`
			} `xml:"TestMethod"`
		} `xml:"TestDefinitions>UnitTest"`
	}
	var doc run
	documents(file, &doc, func() {
		for _, t := range doc.Tests {
			for _, res := range doc.Results {
				if res.ID == t.ID {
					r.add(t.Method.Class, t.Method.Name, states[res.Outcome])
				}
			}
		}
		doc = run{}
	})
	return r
}

// readGoTest reads test2json's lines. For display it keeps the output of `go test` without -v: lines of packages and of
// failed tests, each test's result first.
func readGoTest(output []byte) Report {
	var r Report
	said, head, bad := map[Test]*strings.Builder{}, map[Test]string{}, map[Test]bool{}
	var order []Test
	var loose strings.Builder
	for line := range strings.Lines(string(output)) {
		var e struct{ Action, Package, ImportPath, Test, Output string }
		if !strings.HasPrefix(line, "{") || json.Unmarshal([]byte(line), &e) != nil {
			loose.WriteString(line)
			continue
		}
		t := Test{e.Package, e.Test}
		switch e.Action {
		case "output", "build-output":
			if said[t] == nil {
				said[t], order = &strings.Builder{}, append(order, t)
			}
			if strings.HasPrefix(strings.TrimSpace(e.Output), "--- FAIL: "+e.Test+" (") {
				head[t] = e.Output
			} else {
				said[t].WriteString(e.Output)
			}
			r.Partial = r.Partial || strings.HasPrefix(e.Output, "panic: ") // a panic ends the package's other tests
		case "pass", "fail", "skip":
			bad[t] = e.Action == "fail"
			if e.Test != "" {
				r.add(e.Package, e.Test, states[e.Action])
			}
		}
	}
	for t, ended := range bad {
		inPackage := func(o Test) bool { return o.Where == t.Where && r.Tests[o] == Failed }
		if t.Name == "" && ended && !slices.ContainsFunc(slices.Collect(maps.Keys(r.Tests)), inPackage) {
			r.Partial = true // not built
		}
	}
	// Results of packages follow their tests, as in go test.
	slices.SortStableFunc(order, func(a, b Test) int {
		if a.Where != b.Where || (a.Name == "") == (b.Name == "") {
			return 0
		}
		if a.Name == "" {
			return 1
		}
		return -1
	})
	var text strings.Builder
	for _, t := range order {
		ended, is := bad[t]
		if t.Name != "" && is && !ended {
			continue
		}
		for line := range strings.Lines(head[t] + said[t].String()) {
			if !goNoise().MatchString(line) {
				text.WriteString(line)
			}
		}
	}
	r.Text = loose.String() + text.String()
	return r
}

var goNoise = pattern.New(`^(=== (RUN|PAUSE|CONT|NAME)\b|PASS\n$)`)

var (
	libtestRuns = pattern.New(`^\s*Running (?:unittests )?\S+ \((\S+)\)`)
	libtestTest = pattern.New(`^test (\S+)(?: - .*)? \.\.\. (ok|FAILED|ignored)`)
)

// DocTests is the place of Rust's documentation tests.
const DocTests = "doc"

// readLibtest reads the lines that Rust's tests print, below the name of the test program. Cargo's JSON has the
// program's source file; a file name alone may belong to several packages.
func readLibtest(output []byte, root string) Report {
	var r Report
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
			where = DocTests
		} else if m := libtestTest().FindStringSubmatch(line); m != nil {
			r.add(where, m[1], states[m[2]])
		}
	}
	r.Text = strings.Join(lines, "")
	return r
}
