package validator

import (
	"context"
	"path"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/pattern"
	"github.com/git-tilth/git-tilth/internal/project"
)

func init() {
	kinds[project.Go] = kind{golang, "go.mod", goTests}
}

// golang runs go vet and go test over every module. The seed puts the tests of later tasks into the tree, where they
// may not even compile: an overlay makes them not exist for the go command, without touching the tree.
func golang(_ context.Context, p *layout) []Validator {
	var vs []Validator
	for _, dir := range p.dirsOf("go.mod") {
		later := p.inModule(goTests(p.later), dir)
		present := without(p.inModule(ending(p.files, ".go"), dir), later)
		test := Validator{Name: at("go test", dir), Dir: dir, Argv: []string{"go", "test", "./..."}, hidden: later,
			runner: project.ByName(project.Go).Runner("go test"), given: p.goGiven(dir)}
		vet := Validator{Name: at("go vet", dir), Dir: dir, Argv: []string{"go", "vet", "./..."}, hidden: later}
		if len(present) == 0 {
			test.Skip = "there are no Go files yet"
			vs = append(vs, test)
			continue
		}
		vs = append(vs, vet, test)
	}
	return vs
}

var moduleLine = pattern.New(`(?m)^module\s+"?([^\s"]+)`)

// goGiven are the acceptance tests of the module in dir. go test names a test by its package.
func (p *layout) goGiven(dir string) []given {
	module := ""
	if m := moduleLine().FindStringSubmatch(p.read(path.Join(dir, "go.mod"))); m != nil {
		module = m[1]
	}
	var out []given
	for _, f := range p.inModule(goTests(p.required()), dir) {
		out = append(out, given{file: path.Join(dir, f), where: path.Join(module, path.Dir(f))})
	}
	return out
}

func goTests(files []string) []string {
	return slices.DeleteFunc(slices.Clone(files), func(f string) bool { return !strings.HasSuffix(f, "_test.go") })
}

// inModule returns those of files that belong to the module in dir and not to one below it, relative to dir.
func (p *layout) inModule(files []string, dir string) []string {
	files = slices.Clone(below(files, dir))
	for _, other := range p.dirsOf("go.mod") {
		rel := other
		if dir != "." {
			var ok bool
			if rel, ok = strings.CutPrefix(other, dir+"/"); !ok {
				continue
			}
		}
		if other != dir {
			files = slices.DeleteFunc(files, func(f string) bool { return strings.HasPrefix(f, rel+"/") })
		}
	}
	return files
}
