package validator

import (
	"context"
	"path"

	"github.com/git-tilth/git-tilth/internal/packages"
	"github.com/git-tilth/git-tilth/internal/project"
)

func init() { finders[project.Go] = golang }

// golang runs go vet and go test in every module. The seed puts the tests of later tasks into the tree, and these may
// not compile yet. An overlay hides them from the go command without changing the tree.
func golang(_ context.Context, p *layout) []Validator {
	var vs []Validator
	modules := p.DirsOf("go.mod")
	for _, dir := range modules {
		later := packages.Owned(project.ByName(project.Go).Tests(p.later), dir, modules)
		present := packages.Without(packages.Owned(packages.Ending(p.Files, ".go"), dir, modules), later)
		test := Validator{Name: at("go test", dir), Dir: dir, Argv: []string{"go", "test", "./..."}, hidden: later,
			runner: project.ByName(project.Go).Runner("go test"), given: p.goGiven(dir, modules)}
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

// goGiven returns the acceptance tests of the module in dir. go test names a test by its package.
func (p *layout) goGiven(dir string, modules []string) []given {
	module := packages.Module(p.Read(path.Join(dir, "go.mod")))
	files := packages.Owned(project.ByName(project.Go).Tests(p.required()), dir, modules)
	return givens(dir, files, func(f string) string { return path.Join(module, path.Dir(f)) })
}
