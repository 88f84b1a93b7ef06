package loop

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/judge"
	"github.com/git-tilth/git-tilth/internal/project"
	"github.com/git-tilth/git-tilth/internal/validator"
)

// pins reports whether setup installs dependencies from a file.
func (j *judged) pins(file string) bool {
	return project.IsLock(file) || j.place != nil && project.IsUnlocked(file, j.place.Has)
}

// dependencies returns the altered files that pin dependencies and the altered directories of vendored code.
func (j *judged) dependencies() (names []string) {
	for _, f := range j.files {
		for _, file := range []string{f.Path, f.OldPath} {
			if dir := project.Vendored(file); dir != "" {
				names = append(names, dir+"/")
			} else if j.pins(file) {
				names = append(names, file)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// layOutOnSeed checks out the change a second time with the seed's dependencies, if the change alters them or if
// Python's differ from the seed's.
func (a *attempt) layOutOnSeed(ctx context.Context, j *judged, laid judge.Laid) error {
	was := a.run.seed.tree
	if a.run.seed.commit == "" {
		return nil
	}
	var repinned []string
	for _, file := range slices.Concat(laid.Files, slices.Collect(maps.Keys(was))) {
		names := project.IsLock(file) || project.IsManifest(file)
		if names && laid.ID(file) != was[file] && project.Vendored(file) == "" {
			repinned = append(repinned, file)
		}
	}
	slices.Sort(repinned)
	repinned = slices.Compact(repinned)
	python := slices.ContainsFunc(repinned, project.ByName(project.Python).IsLock)
	altered := len(a.run.seed.tests) > 0 && slices.ContainsFunc(j.dependencies(), func(name string) bool {
		return !strings.HasSuffix(name, "/")
	})
	if len(repinned) == 0 || !altered && !python {
		return nil
	}
	place, err := a.at.seedPlace(ctx)
	if err != nil {
		return err
	}
	on := judgedIn(place)
	on.wt, on.tree, on.files, on.repinned, on.altered = j.wt, j.tree, j.files, repinned, altered
	on.laid, err = place.Update(ctx, a.base, j.tree)
	if setup, ok := errors.AsType[*judge.SetupError](err); ok {
		on.fault, err = setup.Error(), nil
	}
	j.onSeed = on
	return err
}

// leaveOutPlugins finds the plugins that pytest would load and that the seed's environment lacks.
func (a *attempt) leaveOutPlugins(ctx context.Context, j *judged, laid judge.Laid) error {
	on := j.onSeed
	if on == nil || on.fault != "" {
		return nil
	}
	if a.at.judgement != "" && !on.place.Builds() {
		on.layer = a.at.overPlace("on-seed")
	}
	was := validator.PytestPlugins(ctx, a.judgingPlace(ctx, on), on.laid.Files)
	for _, plugin := range validator.PytestPlugins(ctx, a.judgingPlace(ctx, j), laid.Files) {
		if name, _, _ := strings.Cut(plugin, " "); !slices.Contains(was, plugin) && !slices.Contains(j.without, name) {
			j.without = append(j.without, name)
		}
	}
	return ctx.Err()
}

// underSeedDependencies runs the acceptance tests again with the seed's dependencies. It also uses the seed's
// configuration, unless the tests failed with that configuration alone.
func (a *attempt) underSeedDependencies(ctx context.Context, j *judged, vs []validator.Validator) error {
	on := j.onSeed
	names := slices.Clone(on.repinned)
	if len(j.onlyWith) == 0 {
		names = append(names, j.reconfigured...)
	}
	slices.Sort(names)
	on.reconfigured = on.repinned
	if on.fault != "" {
		j.onlyWith, j.underSeed = append(j.onlyWith, on.reconfigured...), on.fault
		return nil
	}
	if err := a.restoreTests(ctx, on, on.laid, a.alteredTests(on.laid)); err != nil {
		return err
	}
	files, err := a.restore(ctx, on, on.laid, slices.Compact(names))
	if err != nil {
		return err
	}
	return a.again(ctx, j, on, files, vs)
}

// seedPlace returns the checkout for tests with the seed's dependencies.
func (g *workspace) seedPlace(ctx context.Context) (_ *judge.Checkout, err error) {
	if g.onSeed != nil && held.Exists(g.onSeed.Dir) {
		return g.onSeed, nil
	}
	dir, o := held.LaneJudgeOnSeed(g.run.S, g.number), g.judgeOptions(ctx)
	o.Seed = g.run.seed.commit
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return nil, err
	}
	g.onSeed, err = judge.New(ctx, dir, o)
	return g.onSeed, err
}
