package validator

import (
	"context"
	"path"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/packages"
	"github.com/git-tilth/git-tilth/internal/pattern"
	"github.com/git-tilth/git-tilth/internal/project"
)

func init() { finders[project.Rust] = rust }

// integrationTest matches the root file of an integration test of some package: tests/name.rs or tests/name/main.rs.
var integrationTest = pattern.New(`(?:^|/)tests/(?:([^/]+)\.rs|([^/]+)/main\.rs)$`)

// rust runs cargo test. Integration tests of later tasks, which may not compile
// yet, are left out by naming all other targets.
func rust(_ context.Context, p *layout) []Validator {
	var vs []Validator
	dirs := p.crates()
	for _, dir := range dirs {
		name := at("cargo test", dir)
		files := packages.Owned(packages.Ending(p.Files, ".rs"), dir, dirs)
		later := packages.Owned(packages.Ending(p.later, ".rs"), dir, dirs)
		base := Validator{Name: name, Dir: dir, Argv: []string{"cargo", "test", "--no-fail-fast"},
			Env: []string{"CARGO_TERM_COLOR=never"}, runner: project.ByName(project.Rust).Runner("cargo test")}
		base.given = givens(dir, packages.Owned(packages.Ending(p.required(), ".rs"), dir, dirs), joinedTo(dir))
		if p.isWorkspace(dir) {
			base.Argv = append(base.Argv, "--workspace")
		}
		switch {
		case len(packages.Without(files, later)) == 0:
			base.Skip = "there are no Rust files yet"
		case len(later) > 0:
			vs = append(vs, selected(base, files, later, p.hasLib(dir))...)
			continue
		}
		vs = append(vs, base)
	}
	return vs
}

// crates returns the directories in which cargo tests everything: workspaces, and packages outside of them.
func (p *layout) crates() []string {
	all := p.DirsOf("Cargo.toml")
	return slices.DeleteFunc(slices.Clone(all), func(dir string) bool {
		return slices.ContainsFunc(all, func(top string) bool {
			return top != dir && (top == "." || strings.HasPrefix(dir, top+"/")) && p.isWorkspace(top)
		})
	})
}

func (p *layout) isWorkspace(dir string) bool {
	_, ok := packages.Section(p.Read(path.Join(dir, "Cargo.toml")), "workspace")
	return ok
}

func (p *layout) hasLib(dir string) bool {
	for _, f := range packages.Below(p.Files, dir) {
		if f == "src/lib.rs" || strings.HasSuffix(f, "/src/lib.rs") {
			return true
		}
		if path.Base(f) == "Cargo.toml" {
			if _, ok := packages.Section(p.Read(path.Join(dir, f)), "lib"); ok {
				return true
			}
		}
	}
	return false
}

// selected is cargo test for all targets but the integration tests in later.
// Doc tests cannot be asked for together with others.
func selected(base Validator, files, later []string, lib bool) []Validator {
	test := base
	test.Argv = append(slices.Clone(base.Argv), "--bins")
	if lib {
		test.Argv = append(test.Argv, "--lib")
	}
	for _, f := range packages.Without(files, later) {
		if m := integrationTest().FindStringSubmatch(f); m != nil {
			test.Argv = append(test.Argv, "--test", m[1]+m[2])
		}
	}
	if !lib {
		return []Validator{test}
	}
	doc := base
	doc.given = nil
	doc.Name = strings.Replace(base.Name, "cargo test", "cargo test --doc", 1)
	doc.Argv = append(slices.Clone(base.Argv), "--doc")
	return []Validator{test, doc}
}
