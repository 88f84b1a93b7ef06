package validator

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/packages"
	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/project"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/testreport"
	"github.com/git-tilth/git-tilth/internal/text"
)

// reportCap limits the size of a report, in bytes.
const reportCap = 64 << 20

// asked is a check's command line, made so that its runner reports by test.
type asked struct {
	argv []string
	file string // path of the report; "" for standard output
	keep int    // bytes of output to keep

	without bool // pytest loads no plugin of some

	coverage string   // directory of the coverage, "" for none
	env      []string // KEY=value
}

// asked builds the command line. Its files are in temp, and the report has a random name. For acceptance tests pytest
// loads none of the plugins in in.Without.
func (v Validator) asked(temp string, in ExecEnv) (a asked, err error) {
	a = asked{argv: v.Argv, keep: outputCap}
	var more []string
	if v.runner.Format != "" {
		dir := filepath.Join(temp, rand.Text())
		if err := os.Mkdir(dir, 0o700); err != nil {
			return a, err
		}
		a.file = filepath.Join(dir, "report")
		reporter := filepath.Join(dir, "reporter.mjs")
		for _, arg := range v.runner.Report {
			arg = strings.ReplaceAll(arg, project.ReportFile, a.file)
			more = append(more, strings.ReplaceAll(arg, project.Reporter, reporter))
		}
		switch v.runner.Format {
		case project.GoTest, project.Libtest:
			a.file, a.keep = "", reportCap
		case project.NodeLog:
			err = os.WriteFile(reporter, []byte(testreport.NodeReporter), 0o600)
		}
	}
	if v.runner.Name == pytestRunner && len(v.given) > 0 {
		for _, name := range in.Without {
			a.without, more = true, append(more, "-p", "no:"+name)
		}
	}
	if a.without {
		v.coverage, v.measuring = nil, false // coverage may come from one of the plugins
	}
	if v.coverage != nil && v.part && (v.coverage.Own || !v.measuring) {
		more = append(more, v.coverage.Part...)
	}
	if v.measuring {
		a.coverage = filepath.Join(temp, "coverage")
		err = errors.Join(err, os.Mkdir(a.coverage, 0o700))
		into := func(s string) string { return strings.ReplaceAll(s, project.CoverageDir, a.coverage) }
		for _, arg := range v.coverage.Args {
			more = append(more, into(arg))
		}
		for _, kv := range v.coverage.Env {
			a.env = append(a.env, into(kv))
		}
	}
	if len(a.argv) > 2 && a.argv[1] == "-m" {
		launcher := filepath.Join(temp, rand.Text()+".py")
		err = errors.Join(err, os.WriteFile(launcher, []byte(pythonLauncher), 0o600))
		a.argv = slices.Concat(a.argv[:1], []string{launcher}, a.argv[2:])
	}
	if v.plain {
		more = append(more, "-p", "tilth_top")
		own := proc.Getenv(packages.Environment(in.Env, nil), "PYTHONPATH")
		a.env = append(a.env, "PYTHONPATH="+joinPath(temp, own))
		err = errors.Join(err, os.WriteFile(filepath.Join(temp, "tilth_top.py"), []byte(topPlugin), 0o600))
	}
	if len(v.hidden) > 0 {
		file := filepath.Join(temp, "overlay.json")
		err = errors.Join(err, overlay(v.hidden, file))
		more = append(more, "-overlay="+file)
	}
	switch {
	case v.Command != "":
		line := strings.ReplaceAll(v.Command, reportArgs, text.ShellQuote(more...))
		if a.file != "" {
			line = strings.ReplaceAll(line, project.ReportFile, text.ShellQuote(a.file))
		}
		a.argv = []string{"sh", "-c", line}
	case v.runner.Format == project.GoTest || len(v.hidden) > 0:
		a.argv = slices.Insert(slices.Clone(a.argv), 2, more...) // before the packages
	default:
		a.argv = slices.Concat(a.argv, more)
	}
	return a, err
}

// reportArgs is the placeholder of the runner's arguments in a shell command.
const reportArgs = "{report arguments}"

// overlay writes the overlay file that hides files from the go command.
func overlay(files []string, to string) error {
	replace := map[string]string{}
	for _, f := range files {
		replace[f] = "" // an empty replacement means no such file
	}
	data, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o600)
}

// wanted reads the tests of the acceptance test files, before anything can run that changes them.
func (v Validator) wanted(root string) []wanted {
	var out []wanted
	for _, g := range v.given {
		out = append(out, g.tests(root))
	}
	return out
}

// reported reads the runner's report.
func (v Validator) reported(file string, output []byte, root string) report {
	if v.program != "" {
		root = filepath.Join(root, v.Dir)
	}
	var data []byte
	if file != "" {
		data, _ = jsonl.ReadIn(filepath.Dir(file), filepath.Base(file), reportCap) // none: no test was reported
	}
	return testreport.Read(v.runner.Format, data, output, proc.RealPath(root))
}

// withoutReport removes a runner's lines about its report file. An error line keeps it as {report}.
func withoutReport(output, file string) string {
	if file == "" {
		return output
	}
	var kept strings.Builder
	for line := range strings.Lines(output) {
		without := strings.ReplaceAll(line, file, project.ReportFile)
		if without == line || strings.Contains(without, "rror") {
			kept.WriteString(without)
		}
	}
	return kept.String()
}

// count adds a report to a result. An acceptance test passed only if it is reported as run and as passed.
func (v Validator) count(res *Result, r report, read []wanted) {
	if v.runner.Format == "" {
		return
	}
	res.all, res.partial = r.Tests, r.Partial
	t := &record.Tests{}
	for name, s := range r.Tests {
		whole := name.Where == "" || name.Name == fileItself // a file that could not be loaded
		if s != skipped && !whole && !slices.ContainsFunc(v.given, func(g given) bool { return g.is(name) }) {
			res.own++
		}
		switch s {
		case passed:
			t.Passed++
		case failed:
			t.Failed++
			t.Names = append(t.Names, v.named(name))
		}
	}
	t.Ran = t.Passed + t.Failed
	slices.Sort(t.Names)
	var missing []string
	res.ran = map[given]map[test]state{}
	for i, g := range v.given {
		found := g.found(r)
		res.ran[g] = found
		missing = append(missing, g.missing(read[i], found)...)
	}
	res.Tests = t
	t.Names = append(t.Names, missing...)
	if r.Empty && res.Passed {
		res.nothingToDo()
	}
	if len(missing) > 0 || t.Failed > 0 && res.Passed {
		res.Passed, res.Skipped = false, false
	}
	if len(missing) > 0 {
		res.Output = strings.TrimRight(res.Output, "\n") + "\nFAILED: these acceptance tests did not run: " +
			strings.Join(missing, ", ")
	}
}

// missing returns the tests of the file that were not reported as run; the file itself if its tests are unknown.
func (g given) missing(want wanted, found map[test]state) []string {
	if want == nil {
		ran := slices.ContainsFunc(slices.Collect(maps.Values(found)), func(s state) bool { return s != skipped })
		if ran {
			return nil
		}
		return []string{g.file}
	}
	var out []string
	for t, left := range want {
		if s, is := found[t]; !is || s == skipped && !left {
			out = append(out, g.named(t))
		}
	}
	slices.Sort(out)
	return out
}

// named returns the usual name of a test of the file.
func (g given) named(t test) string {
	class := strings.TrimPrefix(strings.TrimPrefix(t.Where, g.where), ".")
	if class == "" || class == g.file {
		return g.file + "::" + t.Name
	}
	return g.file + "::" + class + "::" + t.Name
}

// named returns the usual name of a test.
func (v Validator) named(t test) string {
	if i := slices.IndexFunc(v.given, func(g given) bool { return g.is(t) }); i >= 0 {
		return v.given[i].named(t)
	}
	return t.String()
}

// capped keeps the head and the tail of a text that is too long.
func capped(s string) string {
	if len(s) <= outputCap {
		return s
	}
	half := outputCap / 2
	return strings.ToValidUTF8(s[:half], "") + fmt.Sprintf("\n[... %d bytes left out ...]\n", len(s)-2*half) +
		strings.ToValidUTF8(s[len(s)-half:], "")
}

// Again returns the checks that must run again with the seed's configuration: those that run, or may run, acceptance
// tests, and those that had nothing to do.
func (r Report) Again(vs []Validator, any bool) []Validator {
	return slices.DeleteFunc(slices.Clone(vs), func(v Validator) bool {
		idle := slices.ContainsFunc(r.Results, func(res Result) bool { return res.Name == v.Name && res.idle })
		return !v.starts() || len(v.given) == 0 && !(v.Configured && any) && !idle
	})
}

func (v Validator) starts() bool { return v.Skip == "" && v.fail == "" }

// Lack fails the report if a check that could run before, in any directory, is missing.
func (r *Report) Lack(before []Validator) {
	for _, v := range before {
		has := slices.ContainsFunc(r.Results, func(res Result) bool {
			return withoutDir(res.Name) == withoutDir(v.Name) && (!res.Skipped || res.idle)
		})
		if v.starts() && !has {
			r.Passed = false
			r.Results = append(r.Results, Result{Name: v.Name, Output: "FAILED: this check could run " +
				"before the configuration changed, and cannot run now"})
		}
	}
}

// Holds reports whether all tests that passed under another configuration also passed in this report. The report fails
// if it lacks some of these tests.
func (r *Report) Holds(other Report) bool {
	holds := other.Passed
	for i, res := range r.Results {
		at := slices.IndexFunc(other.Results, func(o Result) bool { return o.Name == res.Name })
		if at < 0 {
			holds = holds && len(res.ran) == 0
			continue
		}
		var missing []string
		for g, tests := range other.Results[at].ran {
			for t, s := range tests {
				if s != skipped && res.ran[g][t] == skipped {
					missing = append(missing, g.named(t))
				}
			}
		}
		if t := other.Results[at].Tests; res.idle && t != nil && t.Ran > 0 {
			missing = append(missing, text.Plural(t.Ran, "test")+" of the project")
		}
		if len(missing) > 0 {
			slices.Sort(missing)
			r.Passed, r.Results[i].Passed, r.Results[i].Skipped = false, false, false
			if r.Results[i].Tests == nil {
				r.Results[i].Tests = &record.Tests{}
			}
			r.Results[i].Tests.Names = append(r.Results[i].Tests.Names, missing...)
			r.Results[i].Output = strings.TrimRight(res.Output, "\n") + "\nFAILED: these did not run, but run " +
				"with the seed's configuration of the tests: " + strings.Join(missing, ", ")
		}
	}
	return holds
}

// The words of test reports.
type (
	test   = testreport.Test
	state  = testreport.State
	report = testreport.Report
	wanted = testreport.Wanted
)

const (
	skipped    = testreport.Skipped
	passed     = testreport.Passed
	failed     = testreport.Failed
	fileItself = testreport.FileItself
)
