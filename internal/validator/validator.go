// Package validator finds the checks that a project has and runs them over a worktree.
//
// The acceptance tests of later tasks are in the tree from the start, cannot pass yet, and are left out. A check that
// could not run is reported. A check cannot hang, and leaves no process behind.
package validator

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/git-tilth/git-tilth/internal/packages"
	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/project"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/sandbox"
	"github.com/git-tilth/git-tilth/internal/text"
)

const (
	defaultTimeout = 10 * time.Minute
	outputCap      = 64 << 10 // bytes of a command's output that are kept
)

// Validator is one check.
type Validator struct {
	Name       string // name in the record and in feedback
	Command    string // a shell command; if it is empty, Argv is run
	Argv       []string
	Dir        string   // working directory relative to the worktree; empty is its top
	Env        []string // added to the environment given to Run, as KEY=value
	Configured bool     // set by the user, not detected
	From       string   // the file by which it was detected, or tilth.validator
	Skip       string   // why it cannot run here; it is then reported as skipped

	program string         // the program of a Command, "" for node
	runner  project.Runner // test runner; without a format the exit status counts
	given   []given        // acceptance tests that it must report
	base    []string       // command line up to the names of tests
	hidden  []string       // files that its go command must not see
	fail    string         // why it fails without being run
	plain   bool           // pytest, called by its own name
	nothing int            // the tool's exit code if it had nothing to do

	coverage  *project.Coverage // how to measure the lines that tests run; nil if the project does not
	measuring bool              // this run measures coverage
	part      bool              // this run leaves out acceptance tests, or the rest of the suite
}

// Result is the result of one validator.
type Result struct {
	Name    string  `json:"name"`
	Passed  bool    `json:"passed"`
	Seconds float64 `json:"seconds"`
	// Skipped means that it did not run, for the reason in Output. It counts as passed.
	Skipped bool   `json:"skipped,omitempty"`
	Known   bool   `json:"known,omitempty"` // also failed before any work; ignored
	Output  string `json:"-"`               // output, shortened to head and tail
	// Tests is its runner's report; nil without one.
	Tests *record.Tests `json:"tests,omitempty"`
	By    string        `json:"by,omitempty"`

	Fix string `json:"-"` // a command that may fix the failure, or ""

	roots   []string                 // the directory in which it ran, by each of its names
	idle    bool                     // ran and had nothing to do
	exit    int                      // exit code; 0 if it was killed
	running bool                     // killed at its time limit
	ran     map[given]map[test]state // reported results by acceptance test file
	all     map[test]state           // reported results
	own     int                      // the tests that ran and are no acceptance tests
	partial bool                     // the report may lack failed tests
	lines   lines                    // lines run by its tests, if the run measures them
}

// Cause returns the reason of a failure in one line.
func (r Result) Cause() string {
	return record.ValidatorResult{Output: new(r.Relative()), Tests: r.Tests}.Cause()
}

// Relative returns the output with paths that are relative to the tree.
func (r Result) Relative() string {
	output := r.Output
	for _, root := range r.roots {
		output = strings.ReplaceAll(output, strings.TrimSuffix(root, "/")+"/", "")
	}
	return output
}

// Report is the outcome of all validators.
type Report struct {
	Passed  bool // none failed, and the context did not end the run
	Results []Result
	Note    string // a note besides the results: no validators, or validators that were not run, with the reason
}

// ExecEnv is where commands run.
type ExecEnv struct {
	Dir string
	Env []string     // the whole environment; nil means this process's own
	Box *sandbox.Box // their rights; nil is no sandbox
	// Dropped are variables of the user's shell that Env lacks.
	Dropped []string
	Clean   func(string) string // redacts secrets in output before it is shortened; may be nil
	// Without are plugins that pytest does not load for acceptance tests.
	Without []string
	Begins  func(name string) // called before each validator; may be nil
}

func (in ExecEnv) begins(name string) {
	if in.Begins != nil {
		in.Begins(name)
	}
}

// Run runs the validators one after the other, each within perTimeout (0: 10 minutes). All are run, whichever fails.
func Run(ctx context.Context, vs []Validator, in ExecEnv, perTimeout time.Duration) Report {
	rep := Report{Passed: true}
	for _, v := range vs {
		if ctx.Err() != nil {
			break
		}
		in.begins(v.Name)
		res := v.run(ctx, in, perTimeout)
		rep.Results = append(rep.Results, res)
		rep.Passed = rep.Passed && res.Passed
	}
	rep.Passed = rep.Passed && ctx.Err() == nil
	rep.Note = note(rep.Results, in.Dir)
	return rep
}

// TimedOut reports whether a validator ran into its time limit.
func (r Report) TimedOut() bool {
	return slices.ContainsFunc(r.Results, func(res Result) bool { return res.running })
}

func note(results []Result, dir string) string {
	if len(results) == 0 {
		return notChecked(dir)
	}
	var notes []string
	for _, r := range results {
		if r.Skipped {
			notes = append(notes, r.Name+" was not run: "+r.Output)
		}
	}
	if len(notes) == len(results) {
		notes = append(notes, "no validator was run")
	}
	return strings.Join(notes, "; ")
}

// notChecked returns the message that there are no validators, with the setting that adds one for the project in dir.
func notChecked(dir string) string {
	entries, _ := os.ReadDir(dir)
	command := "make test"
	for _, kind := range slices.Backward(project.Kinds) {
		if test := kind.TestCommand(); test != "" && slices.ContainsFunc(entries, func(e os.DirEntry) bool {
			return project.Named(e.Name(), kind.Manifests...) || slices.Contains(kind.Code, filepath.Ext(e.Name()))
		}) {
			command = test
		}
	}
	return "NOT checked: no validators (git config --add tilth.validator " + text.ShellQuote("test="+command) + ")"
}

func (v Validator) run(ctx context.Context, in ExecEnv, limit time.Duration) Result {
	res := Result{Name: v.Name, roots: []string{in.Box.Inside(in.Dir), in.Dir}}
	if v.Skip != "" {
		res.Passed, res.Skipped, res.Output = true, true, v.Skip
		return res
	}
	if v.fail != "" {
		res.Output = v.fail
		return res
	}
	fault := func(err error) Result {
		res.Output = err.Error()
		return res
	}
	// A new directory, without temporary files of other checks or the worker.
	temp, remove, err := proc.TempDir()
	if err != nil {
		return fault(err)
	}
	defer remove()
	ask, err := v.asked(temp, in)
	if err != nil {
		return fault(err)
	}
	read := v.wanted(in.Dir)
	limit = cmp.Or(limit, defaultTimeout)
	env := packages.Environment(in.Env, slices.Concat(v.Env, []string{"TMPDIR=" + temp}, ask.env))
	command := proc.Cmd{Argv: ask.argv, Dir: filepath.Join(in.Dir, v.Dir), Env: env, Timeout: limit,
		OutputCap: ask.keep, Clean: in.Clean, Box: in.Box.In(temp)}
	o, err := proc.Run(ctx, command)
	if err == nil && ask.without && o.ExitCode == usageError { // because of an option of such a plugin
		command.Argv = append(command.Argv, "-o", "addopts=")
		o, err = proc.Run(ctx, command)
	}
	res.Seconds = o.Took.Seconds()
	if err != nil {
		return fault(err)
	}
	if v.runner.Format == "" {
		res.By = "exit status" // without a report
	}
	rep := v.reported(ask.file, o.Output, in.Box.Inside(in.Dir))
	said := strings.ToValidUTF8(cmp.Or(rep.Text, string(o.Output)), "\uFFFD")
	said = withoutReport(withoutReport(said, ask.file), ask.coverage)
	if in.Clean != nil && len(said) > outputCap {
		said = in.Clean(said)
	}
	res.Output = capped(said)
	v.judge(&res, o, limit)
	v.count(&res, rep, read)
	res.lines = v.measured(ctx, in, command, ask.coverage)
	if !res.Passed {
		res.blame(in.Dropped)
	}
	return res
}

// blame names a variable in a failed check's output that was kept from it, with the setting that lets it through.
func (r *Result) blame(dropped []string) {
	if name := text.NamedIn(r.Output, dropped); name != "" {
		r.Fix = "git config --add tilth.sandboxEnv " + name
		r.Output += "\n[" + name + " looks like a key and is not in the environment; to let it in: " + r.Fix + "]"
	}
}

// judge decides whether the check passed. It adds how it ended if that is unusual.
func (v Validator) judge(res *Result, o proc.Outcome, limit time.Duration) {
	end := ""
	res.exit, res.running = o.ExitCode, o.TimedOut
	switch {
	case o.TimedOut:
		end = fmt.Sprintf("[ended after the time limit of %s]", limit)
	case o.Canceled:
		end = "[interrupted]"
	case o.Signal != "":
		end = "[ended by " + o.Signal + "]"
	case o.ExitCode == 0:
		res.Passed = true
	case v.nothing != 0 && o.ExitCode == v.nothing:
		res.nothingToDo()
	default:
		end = fmt.Sprintf("[exit code %d]", o.ExitCode)
	}
	if end != "" {
		res.Output = strings.TrimPrefix(strings.TrimSuffix(res.Output, "\n")+"\n"+end, "\n")
	}
}

// nothingToDo marks the result of a check that ran and had nothing to check.
func (r *Result) nothingToDo() {
	r.Passed, r.Skipped, r.idle, r.Output = true, true, true, "there was nothing for it to do"
}

// Text returns the report as a worker or an evaluator reads it.
func (r Report) Text() string {
	var out strings.Builder
	if r.Note != "" {
		out.WriteString(r.Note + "\n")
	}
	for _, res := range r.Results {
		fmt.Fprintf(&out, "## %s: %s (%.1f s)\n", res.Name, res.state()+res.how(), res.Seconds)
		if says := strings.TrimSpace(res.Output); says != "" {
			out.WriteString(says + "\n")
		}
	}
	return out.String()
}

func (r Result) state() string {
	switch {
	case r.Skipped:
		return "NOT RUN"
	case r.Passed:
		return "passed"
	case r.Known:
		return "FAILED, as before any work (known, does not block)"
	}
	return "FAILED"
}

// how returns the evidence that the result rests on.
func (r Result) how() string {
	switch {
	case r.Skipped:
		return ""
	case r.Tests != nil:
		return fmt.Sprintf(", %d of %s", r.Tests.Passed, text.Plural(r.Tests.Ran, "test"))
	case r.By != "":
		return " by " + r.By
	}
	return ""
}

// Ran reports whether any validator ran.
func (r Report) Ran() bool {
	return slices.ContainsFunc(r.Results, func(res Result) bool { return !res.Skipped })
}
