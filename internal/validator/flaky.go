package validator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/git-tilth/git-tilth/internal/project"
	"github.com/git-tilth/git-tilth/internal/testreport"
	"github.com/git-tilth/git-tilth/internal/text"
)

// maxRetried limits how many failing tests run again for one change.
const maxRetried = 10

// alone returns the check that runs test t and as few others as possible, and reports whether it can select tests.
func (v Validator) alone(root string, t test) (Validator, bool) {
	v.given, v.nothing, v.measuring = nil, 0, false
	exactly := "^" + regexp.QuoteMeta(t.Name) + "$"
	file := t.Where
	if dir := path.Clean(v.Dir); dir != "." {
		file = strings.TrimPrefix(file, dir+"/")
	}
	switch v.runner.Format {
	case project.JUnit:
		id := pytestID(filepath.Join(root, v.Dir), t)
		if id == "" {
			return v, false
		}
		v.Argv = append(slices.Clone(v.base), dashless(id))
	case project.GoTest:
		v.Argv = []string{"go", "test", "-count=1", "-run", goPattern(t), t.Where}
	case project.NodeLog:
		before, _, _ := strings.Cut(v.Command, reportArgs)
		v.Command = before + reportArgs + " " + text.ShellQuote("--test-name-pattern="+exactly) + " " + operands(file)
	case project.Jest:
		r := runners[slices.IndexFunc(runners, func(r runner) bool { return r.name == v.runner.Name })]
		v.Argv = slices.Concat(v.base, r.only([]string{dashless(file)}), []string{"-t", exactly})
	case project.Mocha:
		v.Argv = append(slices.Clone(v.base), "--grep", exactly)
	case project.Libtest:
		args := []string{"--", t.Name, "--exact"}
		if t.Where == testreport.DocTests { // the report has the name's beginning
			args = args[:2]
		}
		v = v.with(args...)
	default:
		return v, false
	}
	return v, t.Name != fileItself
}

// without returns the check without some tests. It reports whether the runner can leave tests out.
func (v Validator) without(root string, tests []test) (Validator, bool) {
	v.given = nil
	var names, goNames, ids, skip []string
	exact := []string{"--exact"}
	for _, t := range tests {
		names, goNames = append(names, regexp.QuoteMeta(t.Name)), append(goNames, goPattern(t))
		if skip = append(skip, "--skip", t.Name); t.Where == testreport.DocTests {
			exact = nil // the report has the name's beginning
		}
		if id := pytestID(filepath.Join(root, v.Dir), t); v.runner.Format == project.JUnit {
			if id == "" {
				return v, false
			}
			ids = append(ids, "--deselect", id, "--deselect", path.Join(v.Dir, id)) // of either root directory
		}
	}
	all := "(?:" + strings.Join(names, "|") + ")$"
	args, can := map[project.Format][]string{
		project.JUnit:   ids,
		project.GoTest:  {"-skip", strings.Join(goNames, "|")},
		project.Jest:    {"-t", "^(?!" + all + ")"},
		project.Mocha:   {"--grep", "^" + all, "--invert"},
		project.NodeLog: {"--test-skip-pattern=^" + all}, // of version 22 and newer
		project.Libtest: slices.Concat([]string{"--"}, exact, skip),
	}[v.runner.Format]
	return v.with(args...), can
}

// with adds arguments to those of the check's runner.
func (v Validator) with(args ...string) Validator {
	v.Argv = slices.Concat(v.Argv, args)
	v.Command = strings.Replace(v.Command, reportArgs, reportArgs+" "+text.ShellQuote(args...), 1)
	return v
}

// goPattern returns the pattern of go test for one test.
func goPattern(t test) string {
	return "^" + strings.ReplaceAll(regexp.QuoteMeta(t.Name), "/", "$/^") + "$"
}

// pytestID returns pytest's id of a test below a directory, "" if the test is not in a Python module.
func pytestID(root string, t test) string {
	file := moduleFile(root, t.Where)
	if file == "" {
		return ""
	}
	if class := strings.TrimPrefix(strings.TrimPrefix(t.Where, dotted(file)), "."); class != "" {
		file += "::" + strings.ReplaceAll(class, ".", "::")
	}
	return file + "::" + t.Name
}

// moduleFile returns the file of a Python module, or of a class in it, "" for none.
func moduleFile(root, name string) string {
	parts := strings.Split(name, ".")
	for n := len(parts); n > 0; n-- {
		file := path.Join(parts[:n]...) + ".py"
		if fi, err := os.Lstat(filepath.Join(root, file)); err == nil && fi.Mode().IsRegular() {
			return file
		}
	}
	return ""
}

// Retry runs failing tests again alone, each up to times. It returns the tests that pass then: they are flaky and no
// longer fail the report. It leaves out known failures and the acceptance tests of the task.
func (r *Report) Retry(ctx context.Context, vs []Validator, in ExecEnv, limit time.Duration, times int, known Known,
	task string) (flaky []string) {
	left := maxRetried
	r.Passed = ctx.Err() == nil
	for i := range r.Results {
		res := &r.Results[i]
		at := slices.IndexFunc(vs, func(v Validator) bool { return v.Name == res.Name })
		if names, is := known[keyOf(res.Name)]; at >= 0 && !res.Passed && !res.running && (!is || len(names) > 0) {
			found := vs[at].retry(ctx, res, in, limit, times, &left, func(t test) bool {
				return !slices.Contains(names, vs[at].named(t)) && !vs[at].isOf(task, t)
			})
			flaky = append(flaky, found...)
		}
		r.Passed = r.Passed && res.Passed
	}
	return flaky
}

// isOf reports whether a test is an acceptance test of the task.
func (v Validator) isOf(task string, t test) bool {
	return slices.ContainsFunc(v.given, func(g given) bool {
		id, _ := TaskOf(path.Base(g.file))
		return id == task && g.is(t)
	})
}

func (v Validator) retry(ctx context.Context, res *Result, in ExecEnv, limit time.Duration, times int, left *int,
	counts func(test) bool) (names []string) {
	flaky := map[test]bool{}
	passesAlone := func(t test) bool {
		one, ok := v.alone(in.Dir, t)
		if !ok || *left == 0 || !counts(t) {
			return false
		}
		*left--
		passes := false
		for n := 0; n < times && !passes && ctx.Err() == nil; n++ {
			passes = one.run(ctx, in, limit).all[t] == passed
		}
		return passes
	}
	for _, t := range res.failed() {
		parent, _, sub := strings.Cut(t.Name, "/")
		outer := test{Where: t.Where, Name: parent}
		withOuter := sub && v.runner.Format == project.GoTest && res.all[outer] == failed // it ran again with its test
		if name := v.named(t); withOuter && flaky[outer] || !withOuter && passesAlone(t) {
			flaky[t] = true
			res.Tests.Names = slices.DeleteFunc(res.Tests.Names, func(n string) bool { return n == name })
			res.Tests.Failed, res.Tests.Passed = res.Tests.Failed-1, res.Tests.Passed+1
		}
	}
	if len(flaky) == 0 {
		return nil
	}
	if res.Passed = len(res.Tests.Names) == 0 && !res.partial && res.exit > 0; res.Passed {
		if last := v.again(ctx, in, limit, times, flaky, passesAlone); !last.Passed {
			res.Passed, res.Output, res.Tests = false, last.Output, cmp.Or(last.Tests, res.Tests)
		}
	}
	for t := range flaky {
		names = append(names, v.named(t))
	}
	slices.Sort(names)
	res.Output += fmt.Sprintf("\n[flaky, passed when run again alone: %s]", strings.Join(names, ", "))
	return names
}

// failed returns the tests that failed, in the order of their names.
func (r Result) failed() (tests []test) {
	for t, s := range r.all {
		if s == failed {
			tests = append(tests, t)
		}
	}
	slices.SortFunc(tests, func(a, b test) int { return strings.Compare(a.String(), b.String()) })
	return tests
}

// again runs a whole check again, up to times, because its exit status may have another cause than the flaky tests. If
// only flaky tests fail each time, it runs the check without them, and fails if the runner cannot leave them out.
func (v Validator) again(ctx context.Context, in ExecEnv, limit time.Duration, times int, flaky map[test]bool,
	passesAlone func(test) bool) (res Result) {
	for n := 0; n < times && ctx.Err() == nil; n++ {
		res = v.run(ctx, in, limit)
		failing := res.failed()
		if res.Passed || res.partial || len(failing) == 0 {
			return res
		}
		for _, t := range failing {
			if !flaky[t] && !passesAlone(t) {
				return res
			}
			flaky[t] = true
		}
	}
	rest, can := v.without(in.Dir, slices.Collect(maps.Keys(flaky)))
	if can {
		if last := rest.run(ctx, in, limit); last.Passed || len(last.all) > 0 {
			return last
		}
	}
	res.Output += "\n[only flaky tests failed again, but this " + v.runner.Name + " cannot leave them out, so that " +
		"another failure may be hidden: the check counts as failed]"
	return res
}

// ErrNoTest is the error of Repeat for a name that no test of the project has.
var ErrNoTest = errors.New("no test of this name ran")

// Rate is how often a test failed, with the output of the last failure.
type Rate struct {
	Test   string `json:"test"`
	Runs   int    `json:"runs"`
	Failed int    `json:"failed"`
	Cause  string `json:"cause,omitempty"`
}

// Repeat runs the suites once to find a test by its name, and then the test alone, so many times.
func Repeat(ctx context.Context, vs []Validator, in ExecEnv, name string, times int,
	limit time.Duration) (Rate, error) {
	for _, v := range vs {
		if v.runner.Format == "" || !v.starts() {
			continue
		}
		wanted := name
		if file, rest, ok := strings.Cut(strings.TrimPrefix(name, v.Dir+"/"), ".py::"); ok {
			parts := strings.Split(dotted(file)+"::"+rest, "::")
			wanted = strings.Join(parts[:len(parts)-1], ".") + "::" + parts[len(parts)-1]
		}
		for t := range v.run(ctx, in, limit).all {
			one, ok := v.alone(in.Dir, t)
			if !ok || t.Name != wanted && t.String() != wanted && v.named(t) != name {
				continue
			}
			rate := Rate{Test: v.named(t)}
			for ; rate.Runs < times && ctx.Err() == nil; rate.Runs++ {
				if res := one.run(ctx, in, limit); res.all[t] != passed {
					rate.Failed, rate.Cause = rate.Failed+1, text.VisibleLine(res.Cause())
				}
			}
			return rate, ctx.Err()
		}
	}
	if err := ctx.Err(); err != nil {
		return Rate{}, err
	}
	return Rate{}, ErrNoTest
}
