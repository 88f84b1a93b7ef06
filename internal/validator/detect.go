package validator

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/project"
)

// Detect finds the checks of the project in a directory. files are the project's files, nil for all files there. A
// check without its tool is in the list too, and reported as not run.
func Detect(ctx context.Context, in ExecEnv, files []string, t Tasks) []Validator {
	p := survey(in, files, t)
	vs := p.missingTests(t)
	for _, k := range project.Kinds {
		kind, has := kinds[k.Name]
		if !has {
			continue
		}
		left := kind.tests(p.required())
		for _, v := range kind.find(ctx, p) {
			v.From = path.Join(v.Dir, kind.by)
			vs = append(vs, v)
			left = slices.DeleteFunc(left, func(f string) bool { return v.isGiven(f) })
		}
		if len(left) > 0 {
			vs = append(vs, Validator{Name: "acceptance tests", fail: fmt.Sprintf("these acceptance tests did "+
				"not run, since no %s is in their directory or above it: %s", kind.by, strings.Join(left, ", "))})
		}
	}
	vs = append(vs, shell(p)...)
	for i, v := range vs {
		program := "node" // what is found and is a line for the shell is one of node's
		if len(v.Argv) > 0 {
			program = v.Argv[0]
		}
		if v.starts() {
			vs[i].Skip = p.lacks(ctx, program)
		}
	}
	return append(vs, p.unknownTests()...)
}

// kind is how the tests of a kind of project are run. An acceptance test is given to one check of its kind: whatever
// lies elsewhere than its project is not passed over.
type kind struct {
	find  func(context.Context, *layout) []Validator
	by    string                        // what it is known by
	tests func(files []string) []string // those of acceptance test files that are its own
}

// kinds are those that have tests to run, by their names in project.Kinds. Each is declared in a file of its own.
var kinds = map[string]kind{}

// isGiven reports whether an acceptance test file is one of the check's.
func (v Validator) isGiven(file string) bool {
	return slices.ContainsFunc(v.given, func(g given) bool { return g.file == file })
}

// missingTests fails a task with removed acceptance tests, because everything else would pass.
func (p *layout) missingTests(t Tasks) []Validator {
	var gone []string
	for _, f := range t.Seed {
		id, ok := TaskOf(path.Base(f))
		if !ok || id != t.Current && !slices.Contains(t.Done, id) {
			continue
		}
		// What stands behind a link, or is a directory now, is not the seed's either.
		at := filepath.Join(p.root, filepath.FromSlash(f))
		dir, err := filepath.EvalSymlinks(filepath.Dir(at))
		fi, lerr := os.Lstat(at)
		if err != nil || lerr != nil || dir != filepath.Dir(at) || fi.IsDir() {
			gone = append(gone, f)
		}
	}
	if len(gone) == 0 {
		return nil
	}
	return []Validator{{
		Name: "acceptance tests",
		fail: "these acceptance tests were deleted and must be restored: " + strings.Join(gone, ", "),
	}}
}

// shell runs acceptance tests that are shell scripts. They are known only from
// the seed itself, never from a name alone.
func shell(p *layout) []Validator {
	if !p.seeded {
		return nil
	}
	var vs []Validator
	for _, f := range ending(p.required(), ".sh", ".bash") {
		program := "sh"
		if first, _, _ := strings.Cut(p.read(f), "\n"); path.Ext(f) == ".bash" || strings.Contains(first, "bash") {
			program = "bash"
		}
		vs = append(vs, Validator{Name: path.Base(f), Argv: []string{program, dashless(f)},
			From: "the seed's tests", given: []given{{f, f}}})
	}
	return vs
}

// dashless keeps a file name from being taken for an option.
func dashless(f string) string {
	if strings.HasPrefix(f, "-") {
		return "./" + f
	}
	return f
}

// isHandled reports whether some kind of project runs a test, or it is none but its data.
func isHandled(file string) bool {
	return project.IsData(file) || slices.ContainsFunc(project.Kinds, func(k project.Kind) bool {
		_, has := kinds[k.Name]
		return has && slices.Contains(k.Code, path.Ext(file))
	})
}

// unknownTests names the task's acceptance tests that nothing here runs.
func (p *layout) unknownTests() []Validator {
	var files []string
	for _, f := range p.current {
		ext := path.Ext(f)
		script := p.seeded && (ext == ".sh" || ext == ".bash")
		if ext != "" && !script && !isHandled(f) {
			files = append(files, f)
		}
	}
	if len(files) == 0 {
		return nil
	}
	return []Validator{{
		Name: "acceptance tests",
		Skip: fmt.Sprintf("no check is known that runs %s; name one with git config tilth.validator name=command",
			strings.Join(files, ", ")),
	}}
}

// dirsOf returns the directories that hold a file of that name, "." or "sub/dir", but for those of test data.
func (p *layout) dirsOf(name string) []string {
	var out []string
	for _, f := range p.files {
		if dir := path.Dir(f); path.Base(f) == name && !slices.Contains(strings.Split(dir, "/"), "testdata") {
			out = append(out, dir)
		}
	}
	return out
}

// tops is dirsOf without those below another one of them.
func (p *layout) tops(name string) []string {
	var out []string
	for _, dir := range p.dirsOf(name) {
		inner := func(top string) bool { return top == "." || strings.HasPrefix(dir, top+"/") }
		if !slices.ContainsFunc(out, inner) {
			out = append(out, dir)
		}
	}
	return out
}

// at names a check, with its directory if that is not the top.
func at(name, dir string) string {
	if dir == "." {
		return name
	}
	return name + " (" + dir + ")"
}
