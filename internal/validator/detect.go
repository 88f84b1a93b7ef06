package validator

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/packages"
	"github.com/git-tilth/git-tilth/internal/project"
	"github.com/git-tilth/git-tilth/internal/text"
)

// Detect finds the checks of the project in a directory. files are the project's files, nil for all files there. A
// check without its tool is in the list too, and reported as not run.
func Detect(ctx context.Context, in ExecEnv, files []string, t Tasks) []Validator {
	return survey(in, files, t).detect(ctx, t)
}

func (p *layout) detect(ctx context.Context, t Tasks) []Validator {
	vs := p.missingTests(t)
	isNew := func(v Validator) bool { return !slices.Contains(t.Base, v.Name) }
	for _, k := range project.Kinds {
		found, last := p.listed(k, false), p.listed(k, true)
		if find := finders[k.Name]; find != nil {
			found = append(found, find(ctx, p)...)
		}
		if slices.ContainsFunc(found, func(v Validator) bool { return v.runner.Format != "" }) {
			last = slices.DeleteFunc(last, isNew)
		}
		if found = append(found, last...); k.Else && len(vs) > 0 {
			found = slices.DeleteFunc(found, isNew)
		}
		for _, v := range found {
			v.From = cmp.Or(v.From, p.ManifestIn(k, cmp.Or(v.Dir, ".")))
			v.coverage = p.coverageOf(v)
			v.measuring = v.coverage != nil && v.coverage.Own
			v.part = len(p.required())+len(p.later) > 0
			vs = append(vs, v)
		}
	}
	vs = p.affected(append(vs, shell(p)...), t.Changed)
	for i, v := range vs {
		program := cmp.Or(v.program, slices.Concat(v.Argv, []string{"node"})[0])
		if v.starts() && !strings.HasPrefix(program, "./") {
			vs[i].Skip = p.lacks(ctx, v.Name, program, packages.Environment(p.Env, v.Env))
		}
	}
	return append(vs, p.missingProject(vs)...)
}

// finders find the checks of kinds that a list of commands does not describe, by their names in project.Kinds.
var finders = map[string]func(context.Context, *layout) []Validator{}

// missingProject returns a failing check for acceptance tests without a project that would run them, so that they are
// not skipped silently, and a skipped one for the task's acceptance tests of no known kind.
func (p *layout) missingProject(vs []Validator) (out []Validator) {
	left := slices.DeleteFunc(p.required(), func(f string) bool {
		return slices.ContainsFunc(vs, func(v Validator) bool {
			return slices.ContainsFunc(v.given, func(g given) bool { return g.file == f })
		})
	})
	for _, k := range project.Kinds {
		// A kind that only the table describes runs only in its projects.
		if files := k.Tests(left); len(files) > 0 && (finders[k.Name] != nil || len(p.Homes(k)) > 0) {
			left = packages.Without(left, files)
			out = append(out, Validator{Name: acceptance, fail: fmt.Sprintf("these acceptance tests did not run, "+
				"since no %s is in their directory or above it: %s", k.Manifests[0], strings.Join(files, ", "))})
		}
	}
	left = slices.DeleteFunc(left, func(f string) bool {
		return path.Ext(f) == "" || project.IsData(f) || !slices.Contains(p.current, f)
	})
	if len(left) > 0 {
		out = append(out, Validator{Name: acceptance, Skip: fmt.Sprintf("no check is known that runs %s; name one "+
			"with git config tilth.validator name=command", strings.Join(left, ", "))})
	}
	return out
}

// acceptance is the name of a check for acceptance tests that no other check runs.
const acceptance = "acceptance tests"

// missingTests adds a failing check for removed acceptance tests, because everything else would pass.
func (p *layout) missingTests(t Tasks) []Validator {
	var gone []string
	current, done, _ := t.split(slices.Sorted(slices.Values(t.Seed)))
	for _, f := range slices.Concat(current, done) {
		// A link or directory in its place is not the seed's test either.
		at := filepath.Join(p.Root, filepath.FromSlash(f))
		dir, err := filepath.EvalSymlinks(filepath.Dir(at))
		fi, lerr := os.Lstat(at)
		if err != nil || lerr != nil || dir != filepath.Dir(at) || fi.IsDir() {
			gone = append(gone, f)
		}
	}
	if len(gone) == 0 {
		return nil
	}
	return []Validator{{Name: acceptance,
		fail: "these acceptance tests were deleted and must be restored: " + strings.Join(gone, ", ")}}
}

// shell runs the shell scripts among the seed's acceptance tests. A name alone makes no script a test.
func shell(p *layout) []Validator {
	if !p.seeded {
		return nil
	}
	var vs []Validator
	for _, f := range packages.Ending(p.required(), ".sh", ".bash") {
		program := "sh"
		if first, _, _ := strings.Cut(p.Read(f), "\n"); path.Ext(f) == ".bash" || strings.Contains(first, "bash") {
			program = "bash"
		}
		vs = append(vs, Validator{Name: path.Base(f), Argv: []string{program, dashless(f)},
			From: "the seed's tests", given: []given{{f, f}}})
	}
	return vs
}

// dashless prevents a file name from being read as an option.
func dashless(f string) string {
	if strings.HasPrefix(f, "-") {
		return "./" + f
	}
	return f
}

// operands quotes file names for a shell.
func operands(files ...string) string {
	quoted := make([]string, len(files))
	for i, f := range files {
		quoted[i] = text.ShellQuote(dashless(f))
	}
	return strings.Join(quoted, " ")
}

// at names a check, with its directory if that is not the top.
func at(name, dir string) string {
	if dir == "." {
		return name
	}
	return name + " (" + dir + ")"
}

// withoutDir returns the name of a check for any directory.
func withoutDir(name string) string { return strings.SplitN(name, " (", 2)[0] }
