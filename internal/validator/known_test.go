package validator

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/git-tilth/git-tilth/internal/project"
	"github.com/git-tilth/git-tilth/internal/record"
)

// failingRun is a check's run with failed tests; acceptance marks a run of acceptance tests.
func failingRun(name string, acceptance bool, tests ...string) Result {
	r := Result{Name: name, Tests: &record.Tests{Names: tests, Failed: len(tests)}}
	if acceptance {
		r.ran = map[given]map[test]state{{}: {}}
	}
	return r
}

func passingRun(name string) Result { return Result{Name: name, Passed: true} }

// A failure is known by its tests, in a run of the suite alone, as on the base, or with acceptance tests.
func TestSpare(t *testing.T) {
	const suite = "pytest (suite)"
	old, unnamed := Known{"pytest": {"old"}}, Known{"pytest": {}}
	for _, c := range []struct {
		name    string
		known   Known
		results []Result
		passes  bool
	}{
		{"alone", old, []Result{failingRun("pytest", false, "old")}, true},
		{"beside acceptance tests", old, []Result{passingRun("pytest"), failingRun(suite, false, "old")}, true},
		{"an acceptance test", old, []Result{failingRun("pytest", true, "t1"), failingRun(suite, false, "old")}, false},
		{"a new failure", old, []Result{passingRun("pytest"), failingRun(suite, false, "new", "old")}, false},
		{"no test named now", old, []Result{failingRun(suite, false)}, false},
		{"no test named then", unnamed, []Result{failingRun(suite, false, "old")}, true},
		{"no test named then, an acceptance test", unnamed, []Result{failingRun("pytest", true, "t001")}, false},
		{"another package", Known{"npm test (a)": {"old"}}, []Result{failingRun("npm test (b) (suite)", false, "old")},
			false},
		{"by exit status", Known{"test": {}}, []Result{{Name: "test"}}, true},
	} {
		r := Report{Results: c.results}
		if c.known.Spare(&r); r.Passed != c.passes {
			t.Errorf("%s: passed %v", c.name, r.Passed)
		}
	}
}

func TestSettle(t *testing.T) {
	k := Known{"pytest": {"a", "b"}, "test": {}}
	for _, c := range []struct {
		results []Result
		want    Known
	}{
		{[]Result{passingRun("pytest"), failingRun("pytest (suite)", false, "a", "b")},
			Known{"pytest": {"a", "b"}, "test": {}}},
		{[]Result{passingRun("pytest"), failingRun("pytest (suite)", false, "b")}, Known{"pytest": {"b"}, "test": {}}},
		{[]Result{passingRun("pytest"), passingRun("pytest (suite)"), passingRun("test")}, Known{}},
	} {
		if k.Settle(Report{Results: c.results}); !maps.EqualFunc(k, c.want, slices.Equal[[]string]) {
			t.Errorf("%v, want %v", k, c.want)
		}
	}
}

func TestSetBase(t *testing.T) {
	check := func(name, fails string) record.Check {
		if fails == "" {
			return record.Check{Name: name, Status: record.CheckOK}
		}
		return record.Check{Name: name, Status: record.CheckFails, Detail: fails}
	}
	for _, c := range []struct{ acceptance, suite, want string }{
		{"t001 is red", "old is red", "old is red"},
		{"", "old is red", "old is red"},
		{"t001 is red", "", ""},
	} {
		found := []record.Check{check("pytest", c.acceptance), check("pytest (suite)", c.suite)}
		SetBase(found, []record.Check{check("pytest", "old is red")})
		if found[0].Detail != "" || found[1].Detail != c.want {
			t.Errorf("%+v: %+v", c, found)
		}
	}
}

// TestOwn: acceptance tests and files that cannot be loaded are not the project's own tests.
func TestOwn(t *testing.T) {
	res := Result{}
	v := Validator{runner: project.ByName(project.Python).Runner("pytest"),
		given: []given{{"test_t001.py", "test_t001"}}}
	v.count(&res, report{Tests: map[test]state{{Where: "test_t001", Name: "a"}: passed, {Name: "test_t001"}: failed,
		{Where: "b", Name: fileItself}: failed, {Where: "c", Name: "c"}: passed, {Where: "c", Name: "d"}: skipped}},
		[]wanted{nil})
	if res.own != 1 {
		t.Errorf("%d own tests, want 1", res.own)
	}
}

// TestFewer: a check that ran fewer tests than on the base is named, unless it failed or the change did not need it.
func TestFewer(t *testing.T) {
	base := map[string]int{"pytest": 2, "npm test (a)": 3, "npm test (b)": 1}
	ran := func(name string, own int) Result { return Result{Name: name, Passed: true, own: own} }
	for _, c := range []struct {
		results []Result
		changed []string
		want    string
	}{
		{[]Result{ran("pytest (suite)", 2), ran("pytest", 0), ran("npm test (a)", 4), ran("npm test (b)", 1)}, nil, ""},
		{[]Result{ran("pytest", 1), ran("npm test (a)", 3), {Name: "npm test (b)"}}, nil,
			"pytest: 1 test ran, 2 on the base"},
		{[]Result{ran("pytest", 2)}, []string{"b/x.js"}, "npm test (b): 0 tests ran, 1 on the base"},
		{nil, []string{"c/x.js"}, "pytest: 0 tests ran, 2 on the base"},
	} {
		if got := (Report{Results: c.results}).Fewer(base, c.changed); strings.Join(got, "; ") != c.want {
			t.Errorf("%v: %q, want %q", c.results, got, c.want)
		}
	}
}
