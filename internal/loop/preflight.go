package loop

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/git-tilth/git-tilth/internal/config"
	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/project"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/text"
	"github.com/git-tilth/git-tilth/internal/validator"
)

// decides reports whether a project's validators and dependencies depend on a file.
func decides(file string) bool { return project.IsLock(file) || project.IsManifest(file) }

// recheck requests another preflight if a task changed files that validators need, possibly through a link.
func (r *run) recheck(files []gitx.FileChange) {
	decide := func(f gitx.FileChange) bool { return decides(f.Path) || decides(f.OldPath) }
	if r.branch.linked || slices.ContainsFunc(files, decide) {
		r.branch.checked = false
	}
}

// preflight opens the judged checkout, and checks before the first model call that the validators can run on task i's
// base. It runs once for the same validators, lock files and machine, because the checkpoint stores a passed
// preflight.
//
// A killed preflight has changed only the judged checkout; the next one starts again.
func (r *run) preflight(ctx context.Context, g *workspace, i int) (err error) {
	if r.o.NoPreflight || r.branch.checked {
		return g.openPlace(ctx)
	}
	a := &attempt{run: r, at: g, index: i, task: r.tasks[i]}
	if a.base, err = a.beginsAt(ctx); err != nil {
		return err
	}
	of, err := a.preflightOf(ctx)
	if err == nil {
		err = g.openPlace(ctx)
	}
	if err != nil {
		return err
	}
	if r.branch.checked = r.Checkpoint.Preflight == of && a.signs(ctx); r.branch.checked {
		return nil
	}
	defer g.shutPlace(&err)
	if taken, err := r.takeOver(r.o.Checked, of); err != nil || taken {
		return err
	}
	found, err := a.checkAll(ctx)
	if err != nil {
		return err
	}
	if err := r.Record.Append(found); err != nil {
		return err
	}
	if !found.Passed {
		return preflightStop(found.Checks)
	}
	r.passed(of, r.Checkpoint.KnownFailures)
	return r.Save()
}

// passed stores a passed preflight by its key, with the known failures.
func (r *run) passed(of string, known map[string][]string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.branch.checked, r.Checkpoint.Preflight, r.Checkpoint.KnownFailures = true, of, known
}

// Check is one check of preflight and doctor.
type Check struct {
	Name string // shown while it runs
	Run  func(context.Context) ([]record.Check, error)
}

// RunChecks runs checks in their order. It calls begins, which may be nil, with the name of each check, and with "" at
// the end.
func RunChecks(ctx context.Context, checks []Check, begins func(task, name string)) (all []record.Check, err error) {
	if begins == nil {
		begins = func(_, _ string) {}
	}
	defer begins("", "")
	for _, c := range checks {
		begins("", c.Name)
		found, err := c.Run(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, ctx.Err()
}

// checkAll runs all checks of a preflight.
func (a *attempt) checkAll(ctx context.Context) (*record.Preflight, error) {
	found := &record.Preflight{}
	checks := []Check{
		{"setup", func(ctx context.Context) (checks []record.Check, err error) {
			checks, found.PassesOnBase, err = a.checkValidators(ctx)
			return checks, err
		}},
		{"submodules", a.checkModules}, {"commit hooks", a.checkHooks}, {"signature", a.checkSignature},
		{"identity", a.checkIdentity},
	}
	if a.run.o.Ready != nil {
		checks = append(checks, Check{"agents", a.run.o.Ready})
	}
	var err error
	if found.Checks, err = RunChecks(ctx, checks, a.run.o.Validating); err != nil {
		return nil, err
	}
	if slices.ContainsFunc(found.Checks, func(c record.Check) bool { return c.Name == modulesCheck }) {
		validator.SetBase(found.Checks, nil) // a missing test can neither pass nor fail yet
	}
	found.Passed = !slices.ContainsFunc(found.Checks, record.Check.IsFinding)
	return found, nil
}

// decidingFiles maps the manifests and lock files of the attempt's first commit to their mode, kind and id.
func (a *attempt) decidingFiles(ctx context.Context) (map[string]string, error) {
	entries, err := a.run.Git.List(ctx, gitx.InRepo(a.run.Common, "ls-tree", "-r", "-z", "--full-tree", a.base))
	files := map[string]string{}
	for _, e := range entries {
		if object, name, _ := strings.Cut(e, "\t"); decides(name) {
			files[name] = object
		}
	}
	return files, err
}

// preflightOf returns the key of a preflight: a hash of everything it depends on.
func (a *attempt) preflightOf(ctx context.Context) (string, error) {
	files, err := a.decidingFiles(ctx)
	if err != nil {
		return "", err
	}
	host, _ := os.Hostname() // "" counts as a machine
	sum := sha256.New()
	fmt.Fprintf(sum, "%q %q %q %q %q\n", host, a.run.o.Validators, a.run.Setup.Copy, a.run.Setup.In(a.at.path),
		a.run.o.RedFirst)
	names := slices.Sorted(maps.Keys(files))
	isNone := func(f string) bool { return !strings.HasPrefix(files[f], "120000") }
	links := slices.DeleteFunc(slices.Clone(names), isNone)
	var behind map[string][]byte // contents of link targets
	if a.run.branch.linked = len(links) > 0; a.run.branch.linked {
		if behind, err = a.run.Git.FilesAt(ctx, a.run.Common, a.base, links); err != nil {
			return "", err
		}
	}
	for _, f := range names {
		fmt.Fprintf(sum, "%q %s\n%s", f, files[f], behind[f])
	}
	if err := a.hooksBy(ctx, sum); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)[:8]), nil
}

// layBase checks out the task's base and detects the validators that will run in it. It returns a finding if setup
// fails.
func (a *attempt) layBase(ctx context.Context) (j *judged, s validator.Scene, vs []validator.Validator,
	unable []record.Check, err error) {
	wt, err := a.worktreeToCheck(ctx)
	if err != nil {
		return nil, s, nil, nil, err
	}
	j = &judged{wt: wt, dir: wt.Path}
	s = validator.Scene{Timeout: a.run.o.Limits.Validator, Config: a.run.o.ValidatorConfig,
		Setup: a.run.Setup.In(wt.Path), Setting: a.run.Setup.Setting}
	// The worktree may be older than the setup setting.
	if a.run.o.From.LastStop == record.PreflightFailed {
		if err := a.run.RunSetup(ctx, wt.Path); err != nil {
			s.Dir = wt.Path
			unable, err = a.run.setupFails(err, s)
			return nil, s, nil, unable, err
		}
	}
	if a.at.place != nil {
		tree, err := a.run.Git.RevParse(ctx, a.run.Common, a.base+"^{tree}")
		if err != nil {
			return nil, s, nil, nil, err
		}
		laid, err := a.at.place.Update(ctx, a.base, tree)
		j.dir, s.Dir, s.Files = a.at.place.Dir, a.at.place.Dir, laid.Files
		if err != nil {
			unable, err = a.run.setupFails(err, s)
			return nil, s, nil, unable, err
		}
		if s.Files, err = a.withTests(laid.Files); err != nil {
			return nil, s, nil, nil, err
		}
	}
	s.Tasks = a.tests()
	vs, err = a.validators(ctx, j, s.Files)
	return j, s, vs, nil, err
}

// checkValidators runs each validator on the task's base. It returns the acceptance tests that pass there.
func (a *attempt) checkValidators(ctx context.Context) (checks []record.Check, passes map[string][]string, err error) {
	j, s, vs, unable, err := a.layBase(ctx)
	if err != nil || unable != nil {
		return unable, nil, err
	}
	s.ExecEnv = a.judgingPlace(ctx, j)
	if a.run.o.Validating != nil {
		s.Begins = func(name string) { a.run.o.Validating("", name) }
	}
	s.Ignored = func(file string) bool {
		files, err := a.run.IgnoredInSource(ctx, file)
		return err == nil && len(files) > 0
	}
	s.Source = sync.OnceValue(func() validator.Source { return a.run.sourceFiles(ctx) })
	if checks, err = validator.Preflight(ctx, vs, s); err != nil {
		return nil, nil, err
	}
	unables := func(c record.Check) bool { return c.Status == record.CheckUnable }
	var red []record.Check
	if a.run.o.RedFirst != "off" && !slices.ContainsFunc(checks, unables) {
		if red, passes, err = a.redFirst(ctx, s); err != nil {
			return nil, nil, err
		}
	}
	if err := a.failsOnBase(ctx, checks, j, s); err != nil {
		return nil, nil, err
	}
	a.goOnWith(checks)
	return append(checks, red...), passes, nil
}

// redFirst runs the acceptance tests of pending tasks on the base, once per task and session. It reports tests that
// pass there, because such tests prove nothing.
func (a *attempt) redFirst(ctx context.Context, s validator.Scene) (checks []record.Check, passes map[string][]string,
	err error) {
	state, err := a.run.onBase()
	if err != nil {
		return nil, nil, err
	}
	tried := state.PassesOnBase
	pending := slices.DeleteFunc(a.run.taskList(), hasEnded)
	var tasks []string
	for _, t := range pending {
		if _, is := tried[t.ID]; !is {
			tasks = append(tasks, t.ID)
		}
	}
	if passes, err = validator.OnBase(ctx, s, tasks); err != nil {
		return nil, nil, err
	}
	for _, t := range pending {
		of := record.ValidatorRun{PassesOnBase: slices.Concat(tried[t.ID], passes[t.ID])}
		c := record.Check{Name: t.ID, From: "tilth.redFirst", Detail: strings.Join(of.Doubts(), "; ")}
		switch {
		case c.Detail == "":
			continue
		case a.run.o.RedFirst == "require":
			c.Status, c.Command = record.CheckFinding, "git config tilth.redFirst warn"
		default:
			c.Status, c.Detail = record.CheckNote, t.ID+": "+c.Detail
		}
		checks = append(checks, c)
	}
	return checks, passes, nil
}

// onBase returns the session's state, which has the preflight's results on the base. A draft has none.
func (r *run) onBase() (*record.State, error) {
	if r.ahead != nil {
		return &record.State{}, nil
	}
	return r.S.State()
}

// sourceFiles lists the files that only the user's checkout has. If git cannot list them, it returns none.
func (r *run) sourceFiles(ctx context.Context) (s validator.Source) {
	s.Top = r.Checkpoint.Source
	changed, _ := r.Git.List(ctx, r.Git.In(r.Checkpoint.Source, "status", "--porcelain=v1", "-z", "--no-renames",
		"--untracked-files=normal", "--ignore-submodules=dirty"))
	for _, line := range changed {
		s.Changed = append(s.Changed, line[min(3, len(line)):])
	}
	s.Ignored, _ = r.Git.List(ctx, r.Git.In(r.Checkpoint.Source, "ls-files", "-z", "--others", "--ignored",
		"--exclude-standard", "--directory"))
	return s
}

// failsOnBase finds failures from before any work. Acceptance tests of later tasks are expected to fail. If there are
// such tests, it tries again on the commit below the seed.
func (a *attempt) failsOnBase(ctx context.Context, found []record.Check, j *judged, s validator.Scene) error {
	fails := func(c record.Check) bool { return c.Status == record.CheckFails }
	if !slices.ContainsFunc(found, fails) {
		return nil
	}
	begun := len(s.Tasks.Done) > 0 // tests of accepted tasks have passed since
	var base []record.Check
	below, err := a.belowSeed(ctx, s.Tasks)
	if err != nil {
		return err
	}
	if !begun && below != "" {
		laid, err := a.at.place.Update(ctx, a.base, below)
		if err != nil {
			return err
		}
		before := *a
		before.task.ID = ""
		vs, err := before.validators(ctx, j, laid.Files)
		if err != nil {
			return err
		}
		vs = slices.DeleteFunc(vs, func(v validator.Validator) bool {
			return !slices.ContainsFunc(found, func(c record.Check) bool {
				return validator.SameCheck(c.Name, v.Name) && fails(c)
			})
		})
		s.Files, s.Tasks.Current = laid.Files, ""
		if base, err = validator.Preflight(ctx, vs, s); err != nil {
			return err
		}
	} else if !begun {
		return nil
	}
	validator.SetBase(found, base)
	return nil
}

// goOnWith marks the known failures and stores them.
func (a *attempt) goOnWith(found []record.Check) {
	known := map[string][]string{} // a copy, because running lanes read the checkpoint's map
	maps.Copy(known, a.run.Checkpoint.KnownFailures)
	validator.Known(known).GoOn(found, a.run.o.KnownFailures)
	a.run.mu.Lock()
	a.run.Checkpoint.KnownFailures = known // saved with the preflight's result
	a.run.mu.Unlock()
}

// checkModules finds submodules that neither the user's repository nor setup provides.
func (a *attempt) checkModules(ctx context.Context) ([]record.Check, error) {
	missing, err := a.run.Git.MissingModules(ctx, a.run.Common, a.base)
	missing = slices.DeleteFunc(missing, func(at string) bool {
		there, err := os.ReadDir(filepath.Join(a.at.place.Dir, filepath.FromSlash(at)))
		return err == nil && len(there) > 0
	})
	if err != nil || len(missing) == 0 {
		return nil, err
	}
	return []record.Check{{Name: modulesCheck, From: ".gitmodules", Status: record.CheckFinding,
		Detail:  strings.Join(missing, ", ") + " missing: the repository does not have the commits of these submodules",
		Command: "git submodule update --init --recursive"}}, nil
}

// checkIdentity prints a note if commits will not have the user as author.
func (a *attempt) checkIdentity(ctx context.Context) ([]record.Check, error) {
	wt, err := a.hooksAt(ctx)
	if err != nil || !slices.ContainsFunc(a.run.Git.Identity(ctx, wt.Path, false), func(v string) bool {
		return strings.HasPrefix(v, "GIT_COMMITTER_EMAIL=") && strings.HasSuffix(v, "@localhost")
	}) {
		return nil, err
	}
	return []record.Check{{Name: "identity", From: "user.email", Status: record.CheckNote,
		Detail: "user.name and user.email are not set: commits are by git-tilth@localhost"}}, nil
}

const modulesCheck = "submodules"

// setupFails returns the finding of a preflight for a failed setup command, or for a filter whose program is missing.
// It returns any other error unchanged.
func (r *run) setupFails(err error, s validator.Scene) ([]record.Check, error) {
	var command *held.SetupError
	if !errors.As(err, &command) {
		why, fix := validator.MissingProgram(err.Error())
		if why == "" {
			return nil, err
		}
		return []record.Check{{Name: "filter", From: ".gitattributes", Status: record.CheckFinding, Detail: why,
			Command: fix}}, nil
	}
	first, _, _ := strings.Cut(command.Error(), "\n")
	c := record.Check{Name: "setup", From: "detected", Status: record.CheckUnable,
		Detail: strings.TrimSuffix(first, ":"), Command: s.Setting.Off()}
	if command.Output != "" {
		c.Detail += ": " + text.FailingLine(command.Output)
	}
	if r.Setup.Configured {
		c.From, c.Command = "tilth.setup", validator.SetupFor(s)
		same := func(v string) bool { return s.Setting.Only(v) == c.Command } // would fail again
		if c.Command == "" || slices.ContainsFunc(s.Setting.Values, same) {
			c.Command = s.Setting.Config + " --unset-all tilth.setup"
		}
	}
	return []record.Check{c}, nil
}

const knownFailures = "--known-failures"

// preflightStop ends the run with the fixes for the findings.
func preflightStop(checks []record.Check) error {
	stop, away, red := Stop{Reason: record.PreflightFailed}, true, false
	var why, fix []string
	for _, c := range checks {
		if !c.IsFinding() {
			continue
		}
		why = append(why, c.Says())
		problem := Problem{Why: c.Says(), Hint: c.Command}
		if c.Status == record.CheckFails {
			red, problem.Hint = true, cmp.Or(c.Command, knownFailures+" continues anyway")
			if c.Command == "" {
				stop.Flags = []string{knownFailures}
			}
		}
		away = away && slices.Contains([]string{string(config.Worker), string(config.Evaluator)}, c.Name)
		stop.Problems = append(stop.Problems, problem)
		if c.Command != "" && !slices.Contains(fix, c.Command) {
			fix = append(fix, c.Command)
		}
	}
	if red {
		why = append(why, "with "+knownFailures+" a run ignores these failures until the tests pass once")
	}
	stop.Away = away
	stop.Detail, stop.Hint = strings.Join(why, "; "), strings.Join(fix, " && ")
	return stop
}
