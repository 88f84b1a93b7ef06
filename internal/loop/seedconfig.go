package loop

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/judge"
	"github.com/git-tilth/git-tilth/internal/packages"
	"github.com/git-tilth/git-tilth/internal/project"
	"github.com/git-tilth/git-tilth/internal/validator"
)

// linkMode is the mode of a symbolic link in a tree.
const linkMode = "120000"

// seedFacts are the loop's facts about the seed's commit, which is "" for a session without one.
type seedFacts struct {
	commit string
	files  []string          // files added by the seed; never nil
	tests  map[string]string // its acceptance tests with their object ids
	// tree has the links, and the files that decide or may decide how tests run, each with its mode and id.
	tree map[string]string
}

// readSeed reads the seed's commit. Tests of an older feature may have the same task number, so only the seed's own
// tests count.
func (r *run) readSeed(ctx context.Context) error {
	seed := &seedFacts{files: []string{}, tests: map[string]string{}, tree: map[string]string{}}
	r.seed = seed
	commit, files, err := r.SeedFiles(ctx)
	if commit == "" || err != nil {
		if commit == "" {
			err = nil
		}
		return err
	}
	seed.commit = commit
	for _, f := range files {
		seed.files = append(seed.files, f.Path)
		if _, ok := validator.TaskOf(path.Base(f.Path)); ok && f.Status != "D" {
			seed.tests[f.Path] = f.OID
		}
	}
	list, err := r.Git.List(ctx, gitx.InRepo(r.Common, "ls-tree", "-r", "-z", "--full-tree", commit))
	for _, line := range list {
		head, file, _ := strings.Cut(line, "\t")
		words := strings.Fields(head)
		if len(words) != 3 {
			return fmt.Errorf("git ls-tree: %q is not an entry", line)
		}
		if words[0] == linkMode || seed.configures(file) || project.MayBeLoaded(file) || isAttributes(file) ||
			project.IsLock(file) || project.IsManifest(file) {
			seed.tree[file] = words[0] + " " + words[2]
		}
	}
	return err
}

// configures reports whether a file decides how tests run: configuration, vendored code, or a file in or above a
// directory with tests of the seed that makes a package, an inner module, or a module in place of one that the runner
// imports. Python loads a package in place of a module of the same name.
func (f *seedFacts) configures(file string) bool {
	if project.Configures(file) || project.Vendored(file) != "" {
		return true
	}
	dir, base := path.Split(file)
	module := strings.TrimSuffix(dir, "/") + ".py"
	switch {
	case base == "__init__.py" && f.configures(module):
		return true
	case base == "go.mod":
		outer := func(up string) bool { return f.tree[path.Join(up, base)] != "" }
		if f.tree[file] != "" || !slices.ContainsFunc(packages.Above(path.Dir(path.Clean(dir))), outer) {
			return false
		}
	case base != "__init__.py" && !project.Shadows(base):
		return false
	}
	return slices.ContainsFunc(f.files, func(test string) bool {
		return strings.HasPrefix(test, dir) || test == module
	})
}

// isAttributes reports whether a file sets git attributes.
func isAttributes(file string) bool { return path.Base(file) == ".gitattributes" }

// restoreTests restores the seed's acceptance tests in the checkout: the altered ones, or all if their attributes were
// altered.
func (a *attempt) restoreTests(ctx context.Context, j *judged, laid judge.Laid, altered []string) error {
	was := a.run.seed.tree
	if len(a.run.seed.tests) == 0 {
		return nil
	}
	tests, now, theirs := altered, []string{}, []string{}
	for file := range was {
		if isAttributes(file) && laid.ID(file) != was[file] {
			theirs = append(theirs, file)
		}
	}
	for _, file := range laid.Files {
		if isAttributes(file) && laid.ID(file) != was[file] {
			now = append(now, file)
		}
	}
	if len(now)+len(theirs) > 0 {
		tests = slices.Sorted(maps.Keys(a.run.seed.tests))
		j.restored = true
		for _, file := range tests { // git skips a file that matches its index
			if err := j.place.Set(file, nil); err != nil {
				return err
			}
		}
		for _, file := range now { // for a missing file git uses its index
			if err := j.place.Set(file, []byte{}); err != nil {
				return err
			}
		}
	}
	for _, put := range []struct {
		of    string
		files []string
	}{{a.run.seed.commit, theirs}, {a.run.seed.commit, tests}, {j.tree, now}} {
		if len(put.files) > 0 {
			if err := j.place.Put(ctx, put.of, put.files); err != nil {
				return err
			}
		}
	}
	for _, file := range theirs {
		if laid.ID(file) == "" {
			if err := j.place.Set(file, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// reconfigured returns the files that decide how tests run and that differ from the seed's.
func (a *attempt) reconfigured(laid judge.Laid) (out []string) {
	was := a.run.seed.tree
	if a.run.seed.commit == "" {
		return nil
	}
	for _, file := range laid.Files {
		may := project.MayBeLoaded(file)
		if !may && !a.run.seed.configures(file) || laid.ID(file) == was[file] {
			continue
		}
		if may {
			data, err := jsonl.ReadIn(a.at.place.Dir, filepath.FromSlash(file), maxText)
			if err != nil || !project.IsLoaded(file, data) {
				continue
			}
		}
		out = append(out, file)
	}
	for file := range was {
		if a.run.seed.configures(file) && laid.ID(file) == "" {
			out = append(out, file)
		}
	}
	slices.Sort(out)
	return out
}

// underSeed runs the acceptance tests again with the seed's configuration and dependencies, if the change has others.
// A test that only this run reports did not run before. A check that starts only in this run fails. A test that needs
// the change's configuration or dependencies is reported to the evaluator.
func (a *attempt) underSeed(ctx context.Context, j *judged, laid judge.Laid, vs []validator.Validator) (err error) {
	if j.reconfigured = a.reconfigured(laid); len(j.reconfigured) > 0 {
		patch, _, err := a.run.Git.Diff(ctx, a.run.Common, a.run.seed.commit, j.tree, testsCap, j.reconfigured...)
		if err != nil {
			return err
		}
		j.configPatch = strings.ToValidUTF8(string(patch), "\uFFFD")
		files, err := a.restore(ctx, j, laid, j.reconfigured)
		if err != nil {
			return err
		}
		if j.restored {
			if j.layer != "" {
				j.layer = a.at.overPlace("seed") // the other layer has files written with the change's configuration
			}
			if err := a.again(ctx, j, j, files, vs); err != nil {
				return err
			}
		}
	}
	if j.onSeed == nil || !j.onSeed.altered || !j.report.Passed {
		return nil
	}
	return a.underSeedDependencies(ctx, j, vs)
}

// again runs the acceptance tests of j in the checkout of other.
func (a *attempt) again(ctx context.Context, j, other *judged, files []string, vs []validator.Validator) error {
	theirs := vs
	if len(a.run.o.Validators) == 0 {
		t := a.tests()
		t.Changed = a.narrowed(j)
		theirs = validator.Detect(ctx, a.judgingPlace(ctx, other), files, t)
		j.report.Lack(theirs)
	}
	theirs = j.report.Again(theirs, len(a.run.seed.tests) > 0)
	if len(theirs) == 0 && other == j || !j.report.Passed {
		return nil
	}
	second := a.overLayer(ctx, other, theirs)
	if err := ctx.Err(); err != nil {
		return err
	}
	a.run.known().Spare(&second)
	if !j.report.Holds(second) {
		j.onlyWith = append(j.onlyWith, other.reconfigured...)
		j.underSeed = strings.TrimSpace(j.underSeed + "\n\n" + second.Text())
	}
	return nil
}

// restore writes the seed's content to files in the checkout. In a file that has more than configuration, it replaces
// only the configuration. It returns the tree's files after that.
func (a *attempt) restore(ctx context.Context, j *judged, laid judge.Laid, names []string) ([]string, error) {
	theirs, err := a.run.Git.FilesAt(ctx, a.run.Common, a.run.seed.commit, names)
	if err != nil {
		return nil, err
	}
	files := slices.Clone(laid.Files)
	var put []string
	for _, file := range names {
		at, there := slices.BinarySearch(files, file)
		switch {
		case there && project.Mixed(file) && project.Vendored(file) == "" && !slices.Contains(j.repinned, file):
			now, err := jsonl.ReadIn(j.dir, filepath.FromSlash(file), maxText)
			if err != nil {
				now = nil
			}
			content := restoreConfig(file, now, theirs[file])
			if now != nil && bytes.Equal(content, now) {
				continue // the configuration is the same
			}
			if err := j.place.Set(file, content); err != nil {
				return nil, err
			}
		case a.run.seed.tree[file] != "":
			put = append(put, file)
			if !there {
				files = slices.Insert(files, at, file)
			}
		default:
			files = slices.Delete(files, at, at+1)
			if err := j.place.Set(file, nil); err != nil {
				return nil, err
			}
		}
		j.restored = true
	}
	if len(put) > 0 {
		err = j.place.Put(ctx, a.run.seed.commit, put)
	}
	return files, err
}
