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

// rust runs cargo test, without the tests of later tasks, which may not compile yet.
func rust(_ context.Context, p *layout) (vs []Validator) {
	dirs := p.crates()
	for _, dir := range dirs {
		files := packages.Owned(packages.Ending(p.Files, ".rs"), dir, dirs)
		later := packages.Owned(packages.Ending(p.later, ".rs"), dir, dirs)
		run := "cargo test --no-fail-fast "
		if p.isWorkspace(dir) {
			run += "--workspace "
		}
		v := Validator{Name: at("cargo test", dir), Dir: dir, Env: []string{"CARGO_TERM_COLOR=never"}, program: "cargo",
			Command: lineOf("", project.Check{Run: run + reportArgs}, later),
			runner:  project.ByName(project.Rust).Runner("cargo test")}
		v.given = givens(dir, packages.Owned(packages.Ending(p.required(), ".rs"), dir, dirs), joinedTo("."))
		if len(packages.Without(files, later)) == 0 {
			v.Skip = "there are no Rust files yet"
		}
		vs = append(vs, v)
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
