package validator

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/proc"
)

// golang runs go vet and go test over every module. The seed puts the tests of later tasks into the tree, where they
// may not even compile: an overlay makes them not exist for the go command, without touching the tree.
func golang(_ context.Context, p *project) []Validator {
	var vs []Validator
	modules := p.dirsOf("go.mod")
	if len(modules) == 0 && len(goTests(p.current)) > 0 {
		vs = append(vs, Validator{Name: "go test", fail: "the acceptance tests are in Go, but there is no go.mod"})
	}
	for _, dir := range modules {
		later := p.inModule(goTests(p.later), dir)
		present := without(p.inModule(ending(p.files, ".go"), dir), later)
		test := Validator{Name: at("go test", dir), Dir: dir, Argv: []string{"go", "test", "./..."}, hidden: later}
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

func goTests(files []string) []string {
	return slices.DeleteFunc(slices.Clone(files), func(f string) bool { return !strings.HasSuffix(f, "_test.go") })
}

// inModule returns those of files that belong to the module in dir and not to one below it, relative to dir.
func (p *project) inModule(files []string, dir string) []string {
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

// overlay makes the argument under which the go command does not see files, until done is called.
func overlay(files []string) (arg string, done func(), err error) {
	replace := map[string]string{}
	for _, f := range files {
		replace[f] = "" // an empty replacement means that there is no such file
	}
	data, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", nil, err
	}
	dir, done, err := proc.TempDir("overlay")
	if err != nil {
		return "", nil, err
	}
	file := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		done()
		return "", nil, err
	}
	return "-overlay=" + file, done, nil
}
