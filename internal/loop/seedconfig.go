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
	"github.com/git-tilth/git-tilth/internal/project"
	"github.com/git-tilth/git-tilth/internal/validator"
)

// linkMode is the mode of a symbolic link in a tree.
const linkMode = "120000"

// seedTree are the seed's files that decide how tests run, or that may, and its links, each with its mode and id. It is
// read once a run.
func (r *run) seedTree(ctx context.Context) (map[string]string, error) {
	facts, err := r.seedOf(ctx)
	if err != nil {
		return nil, err
	}
	if facts.tree != nil || facts.commit == "" {
		return facts.tree, nil
	}
	list, err := r.Git.List(ctx, gitx.InRepo(r.Common, "ls-tree", "-r", "-z", "--full-tree", facts.commit))
	if err != nil {
		return nil, err
	}
	tree := map[string]string{}
	for _, line := range list {
		head, file, _ := strings.Cut(line, "\t")
		words := strings.Fields(head)
		if len(words) != 3 {
			return nil, fmt.Errorf("git ls-tree: %q is not an entry", line)
		}
		if words[0] == linkMode || facts.configures(file) || project.MayBeLoaded(file) || isAttributes(file) {
			tree[file] = words[0] + " " + words[2]
		}
	}
	facts.tree = tree
	return tree, nil
}

// configures reports whether a file decides how tests run. That of a package of the seed's tests does.
func (f *seedFacts) configures(file string) bool {
	if project.Configures(file) {
		return true
	}
	dir := path.Dir(file) + "/"
	return path.Base(file) == "__init__.py" && slices.ContainsFunc(f.files, func(test string) bool {
		return strings.HasPrefix(test, dir)
	})
}

// isAttributes reports whether a file says how git lays out the files below it.
func isAttributes(file string) bool { return path.Base(file) == ".gitattributes" }

// asGiven makes the laid-out tree have acceptance tests as the seed has them: those that are altered, and all of them
// where the attributes under which they are laid out are.
func (a *attempt) asGiven(ctx context.Context, j *judged, laid judge.Laid, altered []string) error {
	was, err := a.run.seedTree(ctx)
	if err != nil || len(a.run.seed.tests) == 0 {
		return err
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
		for _, file := range tests { // git writes none that is there as its index says
			if err := a.at.place.Set(file, nil); err != nil {
				return err
			}
		}
		for _, file := range now { // for one that is gone git takes its index's
			if err := a.at.place.Set(file, []byte{}); err != nil {
				return err
			}
		}
	}
	for _, put := range []struct {
		of    string
		files []string
	}{{a.run.seed.commit, theirs}, {a.run.seed.commit, tests}, {j.tree, now}} {
		if len(put.files) > 0 {
			if err := a.at.place.Put(ctx, put.of, put.files); err != nil {
				return err
			}
		}
	}
	for _, file := range theirs {
		if laid.ID(file) == "" {
			if err := a.at.place.Set(file, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// reconfigured are the files that decide how tests run and are not as the seed has them.
func (a *attempt) reconfigured(ctx context.Context, laid judge.Laid) ([]string, error) {
	was, err := a.run.seedTree(ctx)
	if err != nil || was == nil {
		return nil, err
	}
	var out []string
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
	return out, nil
}

// underSeed runs the acceptance tests again with the seed's configuration if the change has another one. A test that is
// reported only there has not run; a check that can start only there is a failure; a test that passes only with the
// change's configuration is reported to the evaluator.
func (a *attempt) underSeed(ctx context.Context, j *judged, laid judge.Laid, vs []validator.Validator) (err error) {
	if j.reconfigured, err = a.reconfigured(ctx, laid); err != nil || len(j.reconfigured) == 0 {
		return err
	}
	patch, _, err := a.run.Git.Diff(ctx, a.run.Common, a.run.seed.commit, j.tree, testsCap, j.reconfigured...)
	if err != nil {
		return err
	}
	j.configPatch = strings.ToValidUTF8(string(patch), "\uFFFD")
	files, err := a.seedConfiguration(ctx, j, laid)
	if err != nil || !j.restored {
		return err
	}
	if j.layer != "" {
		j.layer = a.at.overPlace("seed") // the other one has files that were written under the change's
	}
	t, err := a.tests(ctx)
	if err != nil {
		return err
	}
	in := a.judgingPlace(ctx, j)
	theirs := vs
	if len(a.run.o.Validators) == 0 {
		theirs = validator.Detect(ctx, in, files, t)
		j.report.Lack(theirs)
	}
	if theirs = j.report.Again(theirs, len(a.run.seed.tests) > 0); len(theirs) == 0 || !j.report.Passed {
		return nil
	}
	second := a.overLayer(ctx, j, theirs)
	if err := ctx.Err(); err != nil {
		return err
	}
	if !j.report.Holds(second) {
		j.onlyWith, j.underSeed = j.reconfigured, second.Text()
	}
	return nil
}

// seedConfiguration gives the laid-out tree the configuration of the seed, and returns the files that it then has.
func (a *attempt) seedConfiguration(ctx context.Context, j *judged, laid judge.Laid) ([]string, error) {
	theirs, err := a.run.Git.FilesAt(ctx, a.run.Common, a.run.seed.commit, j.reconfigured)
	if err != nil {
		return nil, err
	}
	files := slices.Clone(laid.Files)
	var put []string
	for _, file := range j.reconfigured {
		at, there := slices.BinarySearch(files, file)
		switch {
		case there && project.Mixed(file):
			now, err := jsonl.ReadIn(a.at.place.Dir, filepath.FromSlash(file), maxText)
			if err != nil {
				now = nil
			}
			content := project.Restore(file, now, theirs[file])
			if now != nil && bytes.Equal(content, now) {
				continue // what differs is no configuration
			}
			if err := a.at.place.Set(file, content); err != nil {
				return nil, err
			}
		case a.run.seed.tree[file] != "":
			put = append(put, file)
			if !there {
				files = slices.Insert(files, at, file)
			}
		default:
			files = slices.Delete(files, at, at+1)
			if err := a.at.place.Set(file, nil); err != nil {
				return nil, err
			}
		}
		j.restored = true
	}
	if len(put) > 0 {
		err = a.at.place.Put(ctx, a.run.seed.commit, put)
	}
	return files, err
}
