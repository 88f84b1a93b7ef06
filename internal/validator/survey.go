package validator

import (
	"slices"

	"github.com/git-tilth/git-tilth/internal/packages"
)

// layout has the files of a worktree, read once.
type layout struct {
	*packages.Tree

	current, done, later []string // acceptance tests, see Tasks
	seeded               bool     // the tests are in the seed, not only named like its tests

	pyTools map[string][]string // command lines of Python tools, by module
}

// required returns the acceptance tests that have to pass.
func (p *layout) required() []string {
	out := slices.Concat(p.current, p.done)
	slices.Sort(out)
	return out
}

// survey reads a worktree once. files are its files, nil for a walk.
func survey(in ExecEnv, files []string, t Tasks) *layout {
	p := &layout{Tree: packages.Survey(in.Dir, packages.Environment(in.Env, nil), in.Box, files),
		pyTools: map[string][]string{}}
	p.current, p.done, p.later = t.split(p.Files)
	p.seeded = t.Seed != nil
	return p
}
