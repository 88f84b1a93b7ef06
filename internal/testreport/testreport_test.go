package testreport

import (
	"testing"

	"github.com/git-tilth/git-tilth/internal/project"
)

// TestReports reads reports of runners that need installation.
func TestReports(t *testing.T) {
	jest := `{"testResults": [{"name": "/w/a.test.js", "assertionResults": [{"fullName": "adds", "status": "passed"},
		{"fullName": "later", "status": "pending"}, {"fullName": "bad", "status": "failed"}]},
		{"name": "/w/b.test.js", "status": "failed", "assertionResults": []}]}`
	mocha := `{"passes": [{"fullTitle": "adds", "file": "/w/a.test.js"}], "pending": [{"fullTitle": "later",
		"file": "/w/a.test.js"}], "failures": [{"fullTitle": "bad", "file": "/w/a.test.js", "err": {"message": "no"}}]}`
	for _, read := range []Report{Read(project.Jest, []byte(jest), nil, "/w"),
		Read(project.Mocha, []byte(mocha), nil, "/w")} {
		for name, want := range map[string]State{"adds": Passed, "later": Skipped, "bad": Failed} {
			if got, ok := read.Tests[Test{"a.test.js", name}]; !ok || got != want {
				t.Errorf("%s: %v %v", name, got, ok)
			}
		}
	}
}

func TestPythonStatic(t *testing.T) {
	source := "import unittest\n\n\n@pytest.mark.skipif(\n    True)\ndef test_a(\n):\n    def test_inner():\n" +
		"        pass\n\n\n" +
		"async def test_b():\n    x = '''\ndef test_no():\n'''\n\n\nclass TestC(Base):\n    @x\n" +
		"    def test_d(self):\n" +
		"        pass\n\n    def helper(self):\n        def test_e(): pass\n\n\nclass Odd(unittest.TestCase):\n" +
		"    def test_f(self): pass\n\n\nclass Other:\n    def test_g(self): pass\n"
	got := pythonTests("m", source)
	want := Wanted{{"m", "test_a"}: true, {"m", "test_b"}: false, {"m.TestC", "test_d"}: false,
		{"m.Odd", "test_f"}: false}
	if len(got) != len(want) {
		t.Errorf("got %v", got)
	}
	for name, left := range want {
		if l, ok := got[name]; !ok || l != left {
			t.Errorf("%v: %v %v", name, l, ok)
		}
	}
}

// FuzzReports also reads texts that are no report.
func FuzzReports(f *testing.F) {
	f.Add([]byte(`<testsuites><testsuite tests="1"><testcase classname="a" name="b[1]"/></testsuite></testsuites>`))
	f.Add([]byte(`{"Action":"pass","Package":"a","Test":"TestB"}` + "\ntest a ... ok\n"))
	f.Add([]byte(`{"testResults":[{"name":"/a","assertionResults":[{"fullName":"b","status":"passed"}]}]}`))
	f.Add([]byte(`{"passes":[{"fullTitle":"a","file":"/b"}],"failures":[{"err":{"stack":"x"}}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, format := range []project.Format{project.JUnit, project.JUnitFiles, project.TRX, project.RSpec,
			project.DartJSON, project.GoTest, project.Jest, project.Mocha, project.NodeLog, project.Libtest} {
			Read(format, data, data, "/")
		}
	})
}

// FuzzStatic reads sources without valid tests.
func FuzzStatic(f *testing.F) {
	f.Add("class TestA:\n    def test_b(self):\n        pass\n")
	f.Add("package a\nfunc TestA(t *testing.T) {}\n")
	f.Add("#[test]\nfn a() {}\n")
	f.Fuzz(func(t *testing.T, source string) {
		of := []Wanted{pythonTests("m", source), goTestsIn("p", []byte(source)), rustTests("f", source)}
		for _, found := range of {
			for name := range found {
				if name.Name == "" || name.Where == "" {
					t.Errorf("%q: %+v", source, name)
				}
			}
		}
	})
}
