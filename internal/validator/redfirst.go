package validator

import (
	"cmp"
	"context"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/packages"
	"github.com/git-tilth/git-tilth/internal/pattern"
	"github.com/git-tilth/git-tilth/internal/project"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/text"
)

// OnBase runs the acceptance tests of each task alone, on a tree without the tasks' work. For each task it returns the
// tests that pass there, and the broken files. It skips a test without a runner on this machine.
func OnBase(ctx context.Context, s Scene, tasks []string) (map[string][]string, error) {
	out := map[string][]string{}
	t := s.Tasks
	t.Done = nil
	p := survey(s.ExecEnv, s.Files, t)
	limit := min(cmp.Or(s.Timeout, preflightTimeout), preflightTimeout)
	for _, id := range tasks {
		t.Current = id
		if p.current, p.done, p.later = t.split(p.Files); len(p.current) == 0 {
			continue
		}
		for _, v := range p.detect(ctx, t) {
			if !v.starts() || len(v.given) == 0 {
				continue
			}
			s.begins("the tests of " + id)
			res := v.onlyGiven().run(ctx, s.ExecEnv, limit)
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			out[id] = append(out[id], p.passing(v, res)...)
		}
		slices.Sort(out[id])
		out[id] = append([]string{}, out[id]...)
	}
	return out, nil
}

// onlyGiven returns the check without packages that have no acceptance test.
func (v Validator) onlyGiven() Validator {
	if v.runner.Format == project.GoTest {
		v.Argv = []string{"go", "test"}
		for _, g := range v.given {
			v.Argv = append(v.Argv, "./"+path.Dir(packages.Below([]string{g.file}, path.Clean(v.Dir))[0]))
		}
	}
	return v
}

// passing returns the acceptance tests of a result that passed, and the files that are broken.
func (p *layout) passing(v Validator, res Result) (names []string) {
	if res.running {
		return nil
	}
	why := p.breaks(res.Output)
	for _, g := range v.given {
		found := maps.Clone(res.ran[g])
		maps.DeleteFunc(found, func(t test, _ state) bool { return t.Name == fileItself })
		switch {
		case v.runner.Format == "" && res.Passed:
			names = append(names, g.file)
		case why != "" && len(found) == 0:
			names = append(names, g.file+record.Broken+why)
		}
		for t, s := range found {
			if s == passed {
				names = append(names, g.named(t))
			}
		}
	}
	return names
}

var (
	unparsed = pattern.New(`\b(?:Syntax|Indentation|Tab)Error: |(?i:\bsyntax error\b)|: expected .*, found |` +
		`^error: (?:expected|unexpected|mismatched|unclosed|this file)`)
	missingProgram = pattern.New(`: (?:line )?\d+: ([\w.+-]+): (?:command )?not found`)
)

// breaks returns the line of a test's output that no work on a task can fix: a syntax error or a missing program. It
// returns "" if there is none. A missing name or module does not count, because the task may add it.
func (p *layout) breaks(output string) string {
	for line := range strings.Lines(output) {
		m := missingProgram().FindStringSubmatch(line)
		missing := m != nil && !packages.Has(m[1], p.Root, p.Env)
		if missing || unparsed().MatchString(line) && !strings.Contains(line, "does not provide an export") {
			return text.Clip(text.VisibleLine(strings.TrimSpace(line)), 200)
		}
	}
	return ""
}
