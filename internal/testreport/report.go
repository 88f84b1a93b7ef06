// Package testreport reads the reports of test runners and of coverage, and finds the tests of a source file.
package testreport

import (
	"cmp"
	"encoding/json"
	"path"
	"path/filepath"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/git-tilth/git-tilth/internal/project"
)

// State is the outcome of one test.
type State int

// The outcomes. A skipped test was left out, or is expected to fail.
const (
	Skipped State = iota
	Passed
	Failed
)

// states are the outcomes by the words of the runners. Every other word means a skipped test.
var states = map[string]State{"passed": Passed, "Passed": Passed, "pass": Passed, "ok": Passed, "success": Passed,
	"failed": Failed, "Failed": Failed, "fail": Failed, "FAILED": Failed, "failure": Failed, "error": Failed}

// Report is a runner's report of its tests.
type Report struct {
	Tests   map[Test]State
	Text    string // readable output, if it differs from the printed one
	Empty   bool   // reports that there were no tests
	Partial bool   // may lack tests that failed
}

// Test names one test. Where is the runner's name for its place: a file, a package, a module with classes.
type Test struct{ Where, Name string }

func (t Test) String() string {
	if t.Where == "" {
		return t.Name
	}
	return t.Where + "::" + t.Name
}

// add adds a test. Cases of one test (parameters, retries in other projects) count together: a failed case fails it,
// and a passed case runs it.
func (r *Report) add(where, name string, s State) {
	if r.Tests == nil {
		r.Tests = map[Test]State{}
	}
	t := Test{where, name}
	r.Tests[t] = max(s, r.Tests[t])
}

// FileItself is the test name of a file without tests, or of a file that cannot be loaded.
const FileItself = "the file itself"

// Read reads a report in a format. file is the content of the report file, output the runner's output; root is the base
// of paths.
func Read(format project.Format, file, output []byte, root string) (r Report) {
	switch doc := gjson.ParseBytes(file); format {
	case project.JUnit:
		return readJUnit(file, func(class, _ string) string { return class })
	case project.JUnitFiles:
		return readJUnit(file, func(class, file string) string {
			return cmp.Or(relative(root, file), path.Clean(class))
		})
	case project.TRX:
		return readTRX(file)
	case project.GoTest:
		return readGoTest(output)
	case project.Libtest:
		return readLibtest(output, root)
	case project.NodeLog:
		r.readNodeLog(file, root)
	case project.DartJSON:
		r.readDart(file, root)
	case project.Jest, project.Mocha, project.RSpec:
		if gjson.ValidBytes(file) {
			r.readJest(doc, root)
			r.readMocha(doc, root)
			r.readRSpec(doc)
		}
	}
	return r
}

// readJest reads jest's JSON, or vitest's.
func (r *Report) readJest(doc gjson.Result, root string) {
	files := doc.Get("testResults")
	r.Empty = files.IsArray() && len(files.Array()) == 0
	for _, f := range files.Array() {
		where, tests := relative(root, f.Get("name").String()), f.Get("assertionResults").Array()
		if len(tests) == 0 && f.Get("status").String() == "failed" {
			r.add(where, FileItself, Failed)
		}
		for _, t := range tests {
			r.add(where, t.Get("fullName").String(), states[t.Get("status").String()])
		}
	}
}

// readMocha reads mocha's JSON and returns mocha's usual output.
func (r *Report) readMocha(doc gjson.Result, root string) {
	for list, state := range map[string]State{"passes": Passed, "pending": Skipped, "failures": Failed} {
		for _, t := range doc.Get(list).Array() {
			name := t.Get("fullTitle").String()
			r.add(relative(root, t.Get("file").String()), name, state)
			if state == Failed {
				r.Text += name + "\n" + t.Get("err.message").String() + "\n" + t.Get("err.stack").String() + "\n"
			}
		}
	}
}

// readRSpec reads rspec's JSON.
func (r *Report) readRSpec(doc gjson.Result) {
	for _, e := range doc.Get("examples").Array() {
		r.add(path.Clean(e.Get("file_path").String()), e.Get("full_description").String(),
			states[e.Get("status").String()])
	}
	if doc.Get("summary.errors_outside_of_examples_count").Int() > 0 {
		r.add("", FileItself, Failed)
	}
}

// readDart reads the lines of JSON of dart and flutter.
func (r *Report) readDart(file []byte, root string) {
	paths, tests := map[int64]string{}, map[int64]Test{}
	for line := range strings.Lines(string(file)) {
		e := gjson.Parse(line)
		switch e.Get("type").String() {
		case "suite":
			paths[e.Get("suite.id").Int()] = relative(root, e.Get("suite.path").String())
		case "testStart":
			tests[e.Get("test.id").Int()] = Test{paths[e.Get("test.suiteID").Int()], e.Get("test.name").String()}
		case "testDone":
			t, state := tests[e.Get("testID").Int()], states[e.Get("result").String()]
			if e.Get("skipped").Bool() {
				state = Skipped
			}
			if !e.Get("hidden").Bool() {
				r.add(t.Where, t.Name, state)
			}
		}
	}
}

// NodeReporter makes node's runner write a line for each test, because its other reporters do not name the file.
const NodeReporter = `export default async function* (source) {
  for await (const { type, data } of source)
    if (type === 'test:pass' || type === 'test:fail')
      yield JSON.stringify({ type, name: data.name, file: data.file,
        suite: data.details?.type === 'suite', left: data.skip !== undefined || data.todo !== undefined }) + '\n';
}
`

// readNodeLog reads the lines of NodeReporter. node reports a file without a test as a test of the file's name.
func (r *Report) readNodeLog(file []byte, root string) {
	for line := range strings.Lines(string(file)) {
		var e struct {
			Type, Name, File string
			Suite, Left      bool
		}
		if json.Unmarshal([]byte(line), &e) != nil || e.Suite {
			continue
		}
		name, state := e.Name, states[strings.TrimPrefix(e.Type, "test:")]
		if e.Left {
			state = Skipped
		}
		if name == e.File || strings.HasSuffix(e.File, string(filepath.Separator)+filepath.Clean(name)) {
			if name = FileItself; state != Failed {
				continue
			}
		}
		r.add(relative(root, e.File), name, state)
	}
}

func relative(root, file string) string {
	if rel, err := filepath.Rel(root, file); err == nil && filepath.IsAbs(file) {
		return filepath.ToSlash(rel)
	}
	return filepath.ToSlash(file)
}
