package loop

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/judge"
	"github.com/git-tilth/git-tilth/internal/project"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/sandbox"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/validator"
)

// judged is a change under judgement: the tree that will be committed, and facts about it.
type judged struct {
	wt     gitx.Worktree
	tree   string
	place  *judge.Checkout   // checkout of the tree; nil in a preflight without one
	dir    string            // directory of place, where validators and evaluator programs run
	gitDir string            // git directory of dir
	layer  string            // layer over dir for validators' writes; "" if they write to dir
	files  []gitx.FileChange // changes from base to tree
	patch  []byte            // patch from base to tree, as much as a prompt holds
	cut    bool              // the patch is incomplete
	report validator.Report
	tests  string // the task's acceptance tests as run, with their contents

	// testsChanged are the seed's acceptance tests that the change alters, and testsPatch is the alteration. The
	// seed's versions ran.
	testsChanged []string
	testsPatch   string
	// reconfigured are the test configuration files that differ from the seed's. configPatch is the difference.
	reconfigured []string
	configPatch  string
	restored     bool     // the checkout has the seed's configuration at present
	onlyWith     []string // configuration without which the acceptance tests fail
	underSeed    string   // the validators' output with the seed's configuration
	// onSeed is a checkout of the change with the seed's dependencies; nil if the change has the same dependencies.
	onSeed   *judged
	laid     judge.Laid
	repinned []string // files of dependencies that differ from the seed's
	altered  bool     // this change alters them
	fault    string   // why setup fails in that checkout
	without  []string // pytest plugins that the seed's environment lacks
	oldTests []string // tests of the project that the change alters or deletes
	flaky    []string // tests that failed, then passed alone
	// uncovered are the lines of the change that no test ran.
	uncovered []string
	doubts    []string // reasons to trust the tests less
	hidden    []string // changed files that cannot be shown as text
	// unseen are the changed files that the evaluator's diff does not show in full.
	unseen  []string
	ignored []string // ignored files created by the attempt, each with the ignore rule
	empty   bool     // the worker changed nothing
	unasked bool     // the verdict is git-tilth's own
	by      string   // author of the verdict; "" is the evaluator
	done    int      // number of done tasks at the checkout of the tree
}

// judgedIn returns a change that is judged in a checkout.
func judgedIn(place *judge.Checkout) *judged {
	return &judged{place: place, dir: place.Dir, gitDir: filepath.Join(place.Dir, ".git")}
}

// validated stages the worker's changes, checks out the tree and runs the validators.
func (a *attempt) validated(ctx context.Context) (*judged, error) {
	j := judgedIn(a.at.place)
	j.done = a.run.doneTasks()
	err := a.validate(ctx, j)
	if said, is := gitx.SaidOfTree(err); is && ctx.Err() == nil {
		return j, a.unfit(j, said)
	}
	return j, err
}

// unfit records, as a failed validator, the reason why a change cannot be judged.
func (a *attempt) unfit(j *judged, said string) error {
	j.report = validator.Report{Results: []validator.Result{{Name: "commit", Output: said}}}
	return a.recordValidators(j)
}

func (a *attempt) validate(ctx context.Context, j *judged) error {
	if unfit, err := a.takeTree(ctx, j); err != nil || unfit {
		return err
	}
	laid, err := a.at.place.Update(ctx, a.base, j.tree)
	if setup, ok := errors.AsType[*judge.SetupError](err); ok {
		j.report = validator.Report{Results: []validator.Result{{Name: "setup", Output: setup.Error()}}}
		return a.recordValidators(j)
	}
	if err != nil {
		return err
	}
	if j.ignored, err = a.madeIgnored(ctx, j); err != nil {
		return err
	}
	if err := a.layOutOnSeed(ctx, j, laid); err != nil {
		return err
	}
	if err := a.at.beginJudgement(); err != nil {
		return err
	}
	if a.at.judgement != "" && !a.at.place.Builds() {
		j.layer = a.at.overPlace("change")
	}
	if err := a.leaveOutPlugins(ctx, j, laid); err != nil {
		return err
	}
	filtered, loaded := a.filtered(j)
	if len(loaded) > 0 {
		return a.unfitFiles(j, loaded)
	}
	j.hidden = append(j.hidden, filtered...)
	vs, err := a.validators(ctx, j, laid.Files)
	if err != nil {
		return err
	}
	altered := a.alteredTests(laid)
	// The commit will have the worker's version, and the evaluator program must find it there.
	if err := a.restoreTests(ctx, j, laid, altered); err != nil {
		return err
	}
	j.tests = testTexts(j.dir, a.context.Tests)
	if err := a.runValidators(ctx, j, laid, vs); err != nil {
		return err
	}
	layered := j.layer != "" && sandbox.Layered(j.layer)
	looked := a.run.o.Evaluator.Program != nil && len(vs) > 0 && !layered
	if !j.report.Passed || len(altered) == 0 && !looked && !j.restored {
		return nil
	}
	// Validators may have changed files that an evaluator program reads.
	if err := a.at.place.Close(); err != nil {
		return err
	}
	if _, err := a.at.place.Update(ctx, a.base, j.tree); err != nil {
		return err
	}
	return a.noteAltered(ctx, j, altered)
}

// takeTree stages the worker's changes, and sets the tree and its difference from the attempt's base. If files cannot
// be committed, it records a failed validator.
func (a *attempt) takeTree(ctx context.Context, j *judged) (unfit bool, err error) {
	if j.wt, err = a.foldedWorktree(ctx); err != nil {
		return false, err
	}
	if a.run.HadRepository(a.at.path) {
		return true, a.unfit(j, "the .git of your working tree was a separate repository, which cannot be committed."+
			" It was removed, your files are unchanged: do not run git init here, and submit again")
	}
	var leftOut []string
	if j.tree, leftOut, err = a.stage(ctx, a.run.Git.Strict(), j.wt); err != nil {
		return false, err
	}
	j.files, j.patch, j.cut, err = a.run.Git.Changes(ctx, a.run.Common, a.judged, j.tree, diffCap)
	if err != nil {
		return false, err
	}
	j.empty = len(j.files) == 0
	of, err := a.contents(ctx, j.wt, j.tree, j.files, leftOut)
	if err != nil {
		return false, err
	}
	if len(of.unfit) == 0 {
		for _, f := range j.files {
			was := cmp.Or(f.OldPath, f.Path)
			if _, given := a.run.seed.tests[was]; f.Status != "A" && !given && project.IsTest(was) {
				j.oldTests = append(j.oldTests, was)
			}
		}
		return false, a.showHidden(ctx, j, of.readable)
	}
	return true, a.unfitFiles(j, of.unfit)
}

// unfitFiles records, by path, why files of the change cannot be committed.
func (a *attempt) unfitFiles(j *judged, found map[string]string) error {
	var said []string
	for _, path := range slices.Sorted(maps.Keys(found)) {
		said = append(said, path+": "+found[path])
	}
	return a.unfit(j, "cannot be committed: "+strings.Join(said, "\n"))
}

// alteredTests returns the seed's acceptance tests that differ in the checked out tree.
func (a *attempt) alteredTests(laid judge.Laid) (altered []string) {
	for file, blob := range a.run.seed.tests {
		if laid.Blob(file) != blob {
			altered = append(altered, file)
		}
	}
	slices.Sort(altered)
	return altered
}

// noteAltered finds the altered tests that are files of this change, and their diff from the seed.
func (a *attempt) noteAltered(ctx context.Context, j *judged, altered []string) error {
	for _, f := range altered {
		if slices.ContainsFunc(j.files, func(c gitx.FileChange) bool { return c.Path == f || c.OldPath == f }) {
			j.testsChanged = append(j.testsChanged, f)
		}
	}
	if len(j.testsChanged) == 0 {
		return nil
	}
	patch, _, err := a.run.Git.Diff(ctx, a.run.Common, a.run.seed.commit, j.tree, testsCap, j.testsChanged...)
	j.testsPatch = strings.ToValidUTF8(string(patch), "\uFFFD")
	return err
}

// validators returns the user's validators, else the detected ones. It limits them to the acceptance tests of this
// task and earlier ones. files are the files of the checkout in which they run; nil for all files.
func (a *attempt) validators(ctx context.Context, j *judged, files []string) ([]validator.Validator, error) {
	if len(a.run.o.Validators) > 0 {
		return validator.FromConfig(a.run.o.Validators, a.task.ID)
	}
	t := a.tests()
	t.Changed = a.narrowed(j)
	return validator.Detect(ctx, a.judgingPlace(ctx, j), files, t), nil
}

// narrowed returns the changed files, or nil for the last task, which is checked in all packages.
func (a *attempt) narrowed(j *judged) (changed []string) {
	if !slices.ContainsFunc(a.run.taskList(), func(t session.Task) bool { return t.ID != a.task.ID && !hasEnded(t) }) {
		return nil
	}
	for _, f := range j.files {
		changed = append(changed, f.Path, cmp.Or(f.OldPath, f.Path))
	}
	return changed
}

// tests returns the acceptance tests that must pass.
func (a *attempt) tests() validator.Tasks {
	t := validator.Tasks{Current: a.task.ID, Seed: a.run.seed.files}
	if base, err := a.run.onBase(); err == nil { // recordValidators returns the error
		t.Base = slices.Collect(maps.Keys(base.BaseSeconds))
	}
	for _, other := range a.run.taskList() {
		t.All = append(t.All, other.ID)
		if other.Status == "done" {
			t.Done = append(t.Done, other.ID)
		}
	}
	return t
}

// known returns the failures from before any work.
func (r *run) known() validator.Known {
	r.mu.Lock()
	defer r.mu.Unlock()
	return validator.Known(maps.Clone(r.Checkpoint.KnownFailures))
}

// runValidators runs the validators and records their results.
func (a *attempt) runValidators(ctx context.Context, j *judged, laid judge.Laid, vs []validator.Validator) error {
	known := a.run.known()
	run := func() {
		j.report = a.overLayer(ctx, j, vs)
		if len(j.without) > 0 {
			j.report.Note = strings.TrimPrefix(j.report.Note+"; acceptance tests ran without pytest plugins that the "+
				"seed's environment lacks: "+strings.Join(j.without, ", "), "; ")
		}
		known.Spare(&j.report)
	}
	a.run.validating.RLock()
	shared, turn := a.run.testing.Add(1) > 1, a.run.tested.Add(1)
	run()
	a.run.testing.Add(-1)
	a.run.validating.RUnlock()
	shared = shared || a.run.tested.Load() != turn
	if !j.report.Passed && (shared || a.at.lane != "" && j.report.TimedOut()) { // once more, without other lanes
		a.run.validating.Lock()
		run()
		a.run.validating.Unlock()
		if j.report.Passed {
			a.run.notAlone.Do(func() {
				a.run.Say("validators fail while other lanes test, and pass without them: " + session.LaneVar +
					" (1 to N) lets each lane have its own port or database")
			})
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := a.slowOnBase(j); err != nil {
		return err
	}
	if !j.report.Passed && a.run.o.RetryTests > 0 {
		j.flaky = j.report.Retry(ctx, vs, a.judgingPlace(ctx, j), a.run.o.Limits.Validator, a.run.o.RetryTests, known,
			a.task.ID)
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	known.Spare(&j.report)
	if j.report.Passed {
		if err := a.measure(ctx, j, vs); err != nil {
			return err
		}
		if err := a.underSeed(ctx, j, laid, vs); err != nil {
			return err
		}
	}
	return a.recordValidators(j)
}

// measure finds the lines of the change that no test ran, if the project measures coverage.
func (a *attempt) measure(ctx context.Context, j *judged, vs []validator.Validator) error {
	if !slices.ContainsFunc(vs, validator.Validator.Measures) {
		return nil
	}
	patch, _, err := a.run.Git.Diff(ctx, a.run.Common, a.judged, j.tree, maxText)
	if err != nil {
		return err
	}
	a.run.validating.RLock()
	defer a.run.validating.RUnlock()
	j.uncovered = j.report.Uncovered(ctx, vs, a.judgingPlace(ctx, j), a.run.o.Limits.Validator, patch)
	return ctx.Err()
}

// slowOnBase ends the run if a validator reached its time limit and was not much faster on the base.
func (a *attempt) slowOnBase(j *judged) error {
	if !j.report.TimedOut() {
		return nil
	}
	state, err := a.run.onBase()
	if err != nil {
		return err
	}
	limit := a.run.o.Limits.Validator
	name := j.report.SlowOnBase(state.BaseSeconds, limit)
	if name == "" {
		return nil
	}
	return Stop{Reason: record.PreflightFailed, Hint: validator.MoreTime(limit), Detail: fmt.Sprintf(
		"%s reached tilth.validatorTimeout (%s); on the base it takes %.0f s or more", name, limit,
		state.BaseSeconds[name])}
}

// overLayer runs the validators once. Overlayfs cannot move directories of its lower layer (EXDEV), so validators that
// fail over it run again in the checkout itself.
func (a *attempt) overLayer(ctx context.Context, j *judged, vs []validator.Validator) validator.Report {
	rep := validator.Run(ctx, vs, a.judgingPlace(ctx, j), a.run.o.Limits.Validator)
	if j.layer != "" && !rep.Passed && strings.Contains(rep.Text(), "cross-device link") {
		j.layer = ""
		rep = validator.Run(ctx, vs, a.judgingPlace(ctx, j), a.run.o.Limits.Validator)
	}
	return rep
}

// recordValidators writes validator_run.
func (a *attempt) recordValidators(j *judged) error {
	base, err := a.run.onBase()
	if err != nil {
		return err
	}
	run := record.ValidatorRun{Passed: j.report.Passed, Note: j.report.Note, PassesOnBase: base.PassesOnBase[a.task.ID],
		FewerTests: j.report.Fewer(base.BaseTests, a.narrowed(j)), Flaky: j.flaky, Uncovered: j.uncovered,
		Dependencies: j.dependencies(), Ignored: j.ignored}
	for _, res := range j.report.Results {
		r := record.ValidatorResult{Name: res.Name, Passed: res.Passed, Skipped: res.Skipped, Known: res.Known,
			Seconds: res.Seconds, Tests: res.Tests, By: res.By,
			Output: new(a.run.forRecord(res.Relative(), promptCap))}
		run.Results = append(run.Results, r)
	}
	j.doubts = run.Doubts()
	return a.emit(&run)
}

// firstFailure returns a report's first failure as one line.
func firstFailure(r validator.Report) string {
	for _, res := range r.Results {
		if !res.Passed && !res.Skipped && !res.Known {
			return strings.TrimSuffix(res.Name+": "+res.Cause()+"; "+res.Fix, "; ")
		}
	}
	return ""
}

// failedValidators returns the message to the worker about failed validators.
func (a *attempt) failedValidators(ctx context.Context, j *judged) (string, error) {
	feedback := "The validators failed. Fix what they report, run them yourself, and submit again.\n\n" +
		fenced("validators", clip(j.report.Text(), validatorCap))
	ignored, err := a.run.Untracked(ctx, j.wt, true)
	if ignored, err = a.ruled(ctx, j.wt, ignored, err); err != nil || len(ignored) == 0 {
		return feedback, err
	}
	return feedback + "\n\nThey ran over exactly what will be committed. These files of your working tree are " +
		"ignored by git and were missing there; files that the tests need must be tracked, or made by the tests:\n\n" +
		fenced("ignored", strings.Join(ignored, "\n")), nil
}
