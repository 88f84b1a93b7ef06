package validator

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/git-tilth/git-tilth/internal/packages"
	"github.com/git-tilth/git-tilth/internal/pattern"
	"github.com/git-tilth/git-tilth/internal/project"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/text"
)

// preflightTimeout limits a validator in a preflight. After that time the validator clearly works.
const preflightTimeout = 2 * time.Minute

// Scene is the input of a preflight.
type Scene struct {
	ExecEnv          // environment in the checkout of the tree
	Files   []string // files of the tree; nil for all files in the directory
	Tasks   Tasks
	Timeout time.Duration
	// Ignored reports whether a path is an ignored file of the user's checkout, which the tree lacks.
	Ignored func(path string) bool
	// Source lists the files of the user's checkout that the tree lacks; nil for none.
	Source  func() Source
	Config  string   // git command for the config file that sets tilth.validator
	Setup   []string // commands that were run in the place
	Setting packages.SetupSetting
}

// Preflight runs each validator once to find those that cannot start, and those that fail before any work.
func Preflight(ctx context.Context, vs []Validator, s Scene) ([]record.Check, error) {
	if s.Source == nil {
		s.Source = func() Source { return Source{} }
	}
	p := survey(s.ExecEnv, s.Files, s.Tasks)
	limit := min(cmp.Or(s.Timeout, preflightTimeout), preflightTimeout)
	checks := []record.Check{}
	for _, v := range vs {
		s.begins(v.Name)
		res := v.run(ctx, s.ExecEnv, limit)
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		c := record.Check{Name: v.Name, From: v.From, Seconds: math.Round(res.Seconds*100) / 100, Own: res.own,
			Status: record.CheckOK}
		switch {
		case v.fail != "": // acceptance tests without a runner
			c.Status, c.Detail = record.CheckNote, v.Name+": "+v.fail
		case res.running && limit == s.Timeout:
			c.Status, c.Command = record.CheckFails, MoreTime(limit)
			c.Detail = fmt.Sprintf("it has not ended after %s", limit)
		case res.Skipped && v.Skip != "":
			c.Status, c.Detail = record.CheckNotRun, res.Output
		case !res.Passed && !res.running:
			c.Status = record.CheckUnable
			if c.Command = s.committing(res.Output); c.Command == "" {
				c.Detail, c.Command = p.obstacle(v, res, s)
			}
			if c.Detail == "" {
				c.Status, c.Tests = record.CheckFails, res.failing()
				c.Detail = clipped(res.Cause())
				if c.Command == "" {
					fix, note := p.cause(res.Output, s)
					c.Command, c.Detail = fix, c.Detail+note
				}
			}
			if slices.ContainsFunc(s.Setup, func(run string) bool { return c.Command == s.Setting.Add(run) }) {
				c.Command = "" // it ran already and did not help
			}
		}
		checks = append(checks, c)
	}
	if !slices.ContainsFunc(checks, func(c record.Check) bool { return c.Command != "" }) {
		for i, c := range checks {
			switch {
			case c.Status != record.CheckUnable:
			case vs[i].Configured:
				checks[i].Command = s.withoutValidator(c.Name)
			default:
				checks[i].Command = p.instead(s, vs, checks)
			}
		}
	}
	if len(vs) == 0 {
		checks = append(checks, record.Check{Name: "validators", From: "tilth.validator", Status: record.CheckNote,
			Detail: notChecked(s.Dir)})
	}
	return checks, nil
}

// MoreTime returns the command that raises the time limit of validators.
func MoreTime(limit time.Duration) string {
	return "git config tilth.validatorTimeout " + (4 * limit).String()
}

// SlowOnBase returns the name of a validator that reached its time limit although the change may be innocent. On the
// base it took at least half as long, or the preflight did not wait for its end.
func (r Report) SlowOnBase(seconds map[string]float64, limit time.Duration) string {
	limit = cmp.Or(limit, defaultTimeout)
	for _, res := range r.Results {
		took, is := seconds[res.Name]
		if res.running && is && took >= min(limit/2, preflightTimeout).Seconds() {
			return res.Name
		}
	}
	return ""
}

// obstacle returns the reason why a failed validator could not even start, with the fix, or "".
func (p *layout) obstacle(v Validator, res Result, s Scene) (why, fix string) {
	if why, fix := emptyShim(res.Output); why != "" {
		return why, fix
	}
	if why, fix := closedFile(res.Output, s.Box); why != "" {
		return why, fix
	}
	for _, o := range obstacles {
		for _, sign := range o.signs {
			for line := range strings.Lines(res.Output) {
				m := sign().FindStringSubmatch(line)
				if m == nil {
					continue
				}
				if fix, ok := o.fix(p, s, v, res, m[1]); ok {
					return clipped(line), fix
				}
			}
		}
	}
	if v.Configured && (res.exit == 127 || res.exit == 126 || recipe().MatchString(res.Output)) {
		return clipped(res.Cause()), s.withoutValidator(v.Name)
	}
	return "", ""
}

// instead returns the setting with only those detected validators that can start, "" if they depend on the tasks.
func (p *layout) instead(s Scene, vs []Validator, checks []record.Check) string {
	var lines []string
	for i, v := range vs {
		if checks[i].Status == record.CheckUnable || checks[i].Status == record.CheckNotRun {
			continue
		}
		if len(p.required())+len(p.later) > 0 {
			return ""
		}
		command := strings.NewReplacer(reportArgs+" ", "", " "+reportArgs, "", project.ReportFile, os.DevNull).Replace(
			cmp.Or(v.Command, text.ShellQuote(v.Argv...)))
		if v.runner.Name == "node --test" { // its command names the test files of now
			command = withoutDir(v.Name)
		}
		lines = append(lines, v.Name+"="+packages.In(v.Dir, command))
	}
	if len(lines) == 0 {
		lines = []string{"none=true"}
	}
	for i, line := range lines {
		lines[i] = s.Config + " --add tilth.validator " + text.ShellQuote(line)
	}
	return strings.Join(lines, " && ")
}

// recipe matches make's message about a missing program.
var recipe = pattern.New(`(?m)^g?make(?:\[\d+\])?: \*\*\* .*\bError 12[67]$`)

// withoutValidator returns the command that removes a configured validator.
func (s Scene) withoutValidator(name string) string {
	return s.Config + " --unset-all tilth.validator " + text.ShellQuote("^"+regexp.QuoteMeta(name)+"=")
}

// SetupFor returns the command that sets tilth.setup to the project's installer, "" if none is known.
func SetupFor(s Scene) string {
	p := survey(s.ExecEnv, s.Files, s.Tasks)
	for _, kind := range project.Kinds {
		for _, manifest := range kind.Manifests {
			for _, dir := range packages.Outermost(p.DirsOf(manifest)) {
				if command := p.install(kind.Name, dir); command != "" {
					return s.Setting.Only(command)
				}
			}
		}
	}
	return ""
}
