package loop

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/judge"
	"github.com/git-tilth/git-tilth/internal/lifecycle"
	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/validator"
)

// Ahead describes a session that does not exist yet.
type Ahead struct {
	Base  string // commit at which its branch will begin
	Tasks []session.Task
	Tests map[string]string // acceptance tests of its seed, by path
}

// Checked is a preflight that passed before its session existed. The session's first run reuses it.
type Checked struct {
	found *record.Preflight
	of    string // hash of the inputs
	known map[string][]string
	place *judge.Checkout
}

// CheckAhead runs the preflight in a draft of a session, before its branch, worktree and record exist. It returns
// findings as a Stop.
func CheckAhead(ctx context.Context, draft *held.Handle, o Options, what Ahead) (*Checked, error) {
	c, err := lookAhead(ctx, draft, o, what)
	switch {
	case err != nil:
		return nil, err
	case !c.found.Passed:
		c.leave()
		return nil, preflightStop(c.found.Checks)
	}
	// Nothing may exist at the path of the future worktree.
	return c, proc.RemoveAll(draft.Path())
}

// LookAhead returns the findings of a session's preflight. It runs in a draft and creates no session.
func LookAhead(ctx context.Context, draft *held.Handle, o Options, what Ahead) (*record.Preflight, error) {
	c, err := lookAhead(ctx, draft, o, what)
	if err != nil {
		return nil, err
	}
	c.leave()
	return c.found, nil
}

// leave makes the checkout accessible to the user.
func (c *Checked) leave() {
	if c.place != nil {
		c.place.Open()
	}
}

// Repeat runs a test of the project alone, many times, in a draft of a session, and returns how often it failed.
func Repeat(ctx context.Context, draft *held.Handle, o Options, what Ahead, test string) (validator.Rate, error) {
	a, err := ahead(ctx, draft, o, what)
	if err != nil {
		return validator.Rate{}, err
	}
	defer a.at.removeTemp()
	defer a.at.place.Open()
	j, s, vs, unable, err := a.layBase(ctx)
	if unable != nil {
		err = preflightStop(unable)
	}
	if err != nil {
		return validator.Rate{}, err
	}
	s.ExecEnv = a.judgingPlace(ctx, j)
	rate, err := validator.Repeat(ctx, vs, s.ExecEnv, test, repeats, s.Timeout)
	if errors.Is(err, validator.ErrNoTest) {
		err = held.Refuse("git tilth config", "%s: %s", test, err)
	}
	return rate, err
}

// repeats is how many times Repeat runs a test.
const repeats = 20

// ahead begins an attempt in a draft of a session. The caller must call removeTemp of its workspace.
func ahead(ctx context.Context, draft *held.Handle, o Options, what Ahead) (*attempt, error) {
	r := newRun(draft, o)
	g := r.sessionWorkspace()
	r.ahead, r.tasks = &what, what.Tasks
	r.seed = &seedFacts{commit: what.Base, files: slices.Sorted(maps.Keys(what.Tests)), tests: map[string]string{}}
	a := &attempt{run: r, at: g, index: max(0, r.next()), base: what.Base}
	a.task = r.tasks[a.index]
	if err := a.writeManifests(ctx); err != nil {
		return nil, err
	}
	if err := g.enclose(); err != nil {
		return nil, err
	}
	if err := g.openPlace(ctx); err != nil {
		g.removeTemp()
		return nil, err
	}
	return a, nil
}

func lookAhead(ctx context.Context, draft *held.Handle, o Options, what Ahead) (*Checked, error) {
	a, err := ahead(ctx, draft, o, what)
	if err != nil {
		return nil, err
	}
	defer a.at.removeTemp()
	of, err := a.preflightOf(ctx)
	if err != nil {
		return nil, err
	}
	found, err := a.checkAll(ctx)
	if err != nil {
		return nil, err
	}
	return &Checked{found: found, of: of, known: a.run.Checkpoint.KnownFailures, place: a.at.place}, nil
}

// writeManifests writes the base's manifests and lock files to the path of the future worktree.
func (a *attempt) writeManifests(ctx context.Context) error {
	deciding, err := a.decidingFiles(ctx)
	if err != nil {
		return err
	}
	names := append(slices.Collect(maps.Keys(deciding)), ".gitmodules")
	files, err := a.run.Git.FilesAt(ctx, a.run.Common, a.base, names)
	for name, content := range files {
		if err == nil {
			err = writeBelow(a.at.path, name, content)
		}
	}
	return err
}

func writeBelow(dir, name string, content []byte) error {
	at := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
		return err
	}
	return os.WriteFile(at, content, 0o600)
}

// withTests adds the tests of the future seed to the checkout of the base, and to files.
func (a *attempt) withTests(files []string) ([]string, error) {
	if a.run.ahead == nil {
		return files, nil
	}
	files = slices.Clone(files)
	for name, content := range a.run.ahead.Tests {
		if err := writeBelow(a.at.place.Dir, name, []byte(content)); err != nil {
			return nil, err
		}
		if !slices.Contains(files, name) {
			files = append(files, name)
		}
	}
	slices.Sort(files)
	return files, nil
}

// worktreeToCheck returns the worktree of a preflight, or the path of the future worktree.
func (a *attempt) worktreeToCheck(ctx context.Context) (gitx.Worktree, error) {
	if a.run.ahead != nil {
		return gitx.Worktree{Path: a.at.path, Common: a.run.Common}, nil
	}
	return a.settledWorktree(ctx)
}

// hooksAt returns the worktree for trying hooks. Without a session's worktree that is the user's checkout.
func (a *attempt) hooksAt(ctx context.Context) (gitx.Worktree, error) {
	if a.run.ahead != nil {
		return lifecycle.Checkout(a.run.Handle)
	}
	return a.settledWorktree(ctx)
}

// belowSeed returns the tree without the seed's tests, or "" if it is unknown or there are no tests.
func (a *attempt) belowSeed(ctx context.Context, tasks validator.Tasks) (tree string, err error) {
	if len(tasks.Seed) == 0 {
		return "", nil
	}
	base := a.base
	if a.run.ahead == nil {
		beginning, err := a.run.S.State()
		if err != nil || beginning.Base == "" {
			return "", nil
		}
		base = beginning.Base
	}
	return a.run.Git.RevParse(ctx, a.run.Common, base+"^{tree}")
}

// takeOver reuses a preflight that passed before the session existed.
func (r *run) takeOver(c *Checked, of string) (taken bool, err error) {
	if c == nil || c.of != of {
		return false, nil
	}
	r.passed(of, c.known)
	if err := r.Record.Append(c.found); err != nil {
		return false, err
	}
	return true, r.Save()
}
