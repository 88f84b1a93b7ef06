package validator

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/packages"
	"github.com/git-tilth/git-tilth/internal/testreport"
)

// given is an acceptance test file that a run must report.
type given struct {
	file  string // relative to the worktree
	where string // the runner's name for it, or its package
}

// givens returns the acceptance tests of a package, from files relative to dir and the runner's names of them.
func givens(dir string, files []string, where func(file string) string) (out []given) {
	for _, f := range files {
		out = append(out, given{path.Join(dir, f), where(f)})
	}
	return out
}

// joinedTo returns a function that names a file by its path from another directory.
func joinedTo(dir string) func(string) string {
	return func(file string) string { return path.Join(dir, file) }
}

// is reports whether a reported test is from the file.
func (g given) is(t test) bool {
	switch path.Ext(g.file) {
	case ".py": // its classes follow
		return t.Where == g.where || strings.HasPrefix(t.Where, g.where+".")
	case ".rs": // a module of another file is named in its tests
		module := strings.TrimSuffix(strings.TrimSuffix(g.file, ".rs"), "/mod")
		return g.where == t.Where || !integrationTest().MatchString(g.file) &&
			slices.Contains(strings.Split(t.Name, "::"), path.Base(module))
	}
	class := t.Where[strings.LastIndexAny(t.Where, `./\\$+`)+1:] // name used by runners that report no files
	stem := strings.TrimSuffix(path.Base(g.file), path.Ext(g.file))
	return g.where == t.Where || class == stem
}

// tests reads the file's tests; nil if that needs a run.
func (g given) tests(root string) wanted {
	data, err := jsonl.ReadIn(root, filepath.FromSlash(g.file), packages.ReadCap)
	if err != nil {
		return nil
	}
	return testreport.Static(g.file, g.where, data)
}

// dotted returns the name of a test's file in pytest's report.
func dotted(file string) string {
	return strings.ReplaceAll(strings.TrimSuffix(file, ".py"), "/", ".")
}

// found returns the reported tests of a file with their outcomes.
func (g given) found(r report) map[test]state {
	out := map[test]state{}
	for t, s := range r.Tests {
		if !g.is(t) {
			continue
		}
		if path.Ext(g.file) == ".rs" { // the expected names have no modules
			t = test{Where: g.where, Name: t.Name[strings.LastIndex(t.Name, ":")+1:]}
		}
		out[t] = max(s, out[t])
	}
	return out
}
