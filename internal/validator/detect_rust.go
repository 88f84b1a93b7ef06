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
	kinds[project.Rust] = kind{rust, "Cargo.toml", func(files []string) []string { return ending(files, ".rs") }}
}

// integrationTest matches the root file of an integration test of some package: tests/name.rs or tests/name/main.rs.
var integrationTest = pattern.New(`(?:^|/)tests/(?:([^/]+)\.rs|([^/]+)/main\.rs)$`)

// rust runs cargo test. Integration tests of later tasks, which may not compile
// yet, are left out by naming all other targets.
func rust(_ context.Context, p *layout) []Validator {
	var vs []Validator
	for _, dir := range p.tops("Cargo.toml") {
		name := at("cargo test", dir)
		files := below(ending(p.files, ".rs"), dir)
		later := below(ending(p.later, ".rs"), dir)
		base := Validator{Name: name, Dir: dir, Argv: []string{"cargo", "test"},
			Env: []string{"CARGO_TERM_COLOR=never"}, runner: project.ByName(project.Rust).Runner("cargo test")}
		for _, f := range ending(p.required(), ".rs") {
			if dir == "." || strings.HasPrefix(f, dir+"/") {
				base.given = append(base.given, given{f, f})
			}
		}
		if _, ok := section(p.read(path.Join(dir, "Cargo.toml")), "workspace"); ok {
			base.Argv = append(base.Argv, "--workspace")
		}
		switch {
		case len(without(files, later)) == 0:
			base.Skip = "there are no Rust files yet"
		case len(later) > 0:
			vs = append(vs, selected(base, files, later, p.hasLib(dir))...)
			continue
		}
		vs = append(vs, base)
	}
	return vs
}

func (p *layout) hasLib(dir string) bool {
	for _, f := range below(p.files, dir) {
		if f == "src/lib.rs" || strings.HasSuffix(f, "/src/lib.rs") {
			return true
		}
		if path.Base(f) == "Cargo.toml" {
			if _, ok := section(p.read(path.Join(dir, f)), "lib"); ok {
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
	for _, f := range without(files, later) {
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
