package loop

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/judge"
	"github.com/git-tilth/git-tilth/internal/project"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/sandbox"
	"github.com/git-tilth/git-tilth/internal/seed"
	"github.com/git-tilth/git-tilth/internal/text"
	"github.com/git-tilth/git-tilth/internal/validator"
)

// judged is a change under judgement: the tree that will be committed, with its facts.
type judged struct {
	wt     gitx.Worktree
	tree   string
	dir    string            // where validators and evaluator programs run
	gitDir string            // of dir
	layer  string            // over dir, to which validators write; "" where they write to dir
	files  []gitx.FileChange // from base to tree
	patch  []byte            // the same as a patch, as much as a prompt holds
	cut    bool              // that is not all of it
	report validator.Report
	tests  string // the task's acceptance tests with their contents, as they were run

	// testsChanged are the acceptance tests of the seed that the change alters; testsPatch says how. They were run as
	// the seed has them.
	testsChanged []string
	testsPatch   string
	// reconfigured are the files that decide how tests run and are not as the seed has them; configPatch says how.
	reconfigured []string
	configPatch  string
	restored     bool     // the laid-out tree has the seed's for now
	onlyWith     []string // under which alone the acceptance tests pass
	underSeed    string   // what the validators said without them
	oldTests     []string // tests of the project itself that the change alters or deletes
	hidden       []string // changed files that cannot be shown as text
	// unseen are the changed files that the evaluator's diff does not show in full; nil if it shows all.
	unseen  []string
	empty   bool   // the worker changed nothing
	ticked  string // the checklist in which the harness ticked the task, "" for none
	unasked bool   // the verdict is the harness's own
	by      string // who gave the verdict, "" for the evaluator
	done    int    // tasks that were done when it was laid out
}

// validated stages the worker's changes, lays out the tree and runs the validators.
func (a *attempt) validated(ctx context.Context) (*judged, error) {
	j := &judged{done: a.run.doneTasks(), dir: a.at.place.Dir, gitDir: filepath.Join(a.at.place.Dir, ".git")}
	err := a.validate(ctx, j)
	if said, is := gitx.SaidOfTree(err); is && ctx.Err() == nil {
		return j, a.unfit(j, said)
	}
	return j, err
}

// unfit records the reason why a change cannot be judged as a failed validator.
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
	if err := a.at.beginJudgement(); err != nil {
		return err
	}
	if a.at.judgement != "" && !a.at.place.Builds() {
		j.layer = a.at.overPlace("change")
	}
	j.hidden = append(j.hidden, a.filtered(j)...)
	vs, err := a.validators(ctx, j, laid.Files)
	if err != nil {
		return err
	}
	altered, err := a.alteredTests(ctx, laid)
	if err != nil {
		return err
	}
	// The worker's version will be committed, and the evaluator program finds it there.
	if err := a.asGiven(ctx, j, laid, altered); err != nil {
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
	// Validators may have changed files that an evaluator program will read.
	if err := a.at.place.Close(); err != nil {
		return err
	}
	if _, err := a.at.place.Update(ctx, a.base, j.tree); err != nil {
		return err
	}
	return a.noteAltered(ctx, j, altered)
}

// takeTree names the tree of the worker's changes and their difference from the attempt's base. Files that must not be
// committed make it unfit, which is recorded like a failed validator.
func (a *attempt) takeTree(ctx context.Context, j *judged) (unfit bool, err error) {
	if j.wt, err = a.foldedWorktree(ctx); err != nil {
		return false, err
	}
	if a.run.HadRepository(a.at.path) {
		return true, a.unfit(j, "the .git of your working tree was a separate repository, which cannot be committed."+
			" It was removed, your files are unchanged: do not run git init here, and submit again")
	}
	boxes := 0
	if list := a.checklist(); list != "" {
		if boxes, err = seed.Tick(j.wt.Path, list, a.task); err != nil {
			return false, err
		}
		j.ticked = list
	}
	var leftOut []string
	if j.tree, leftOut, err = a.stage(ctx, j.wt); err != nil {
		return false, err
	}
	j.files, j.patch, j.cut, err = a.run.Git.Changes(ctx, a.run.Common, a.judged, j.tree, diffCap)
	if err != nil {
		return false, err
	}
	j.empty = len(j.files) == 0 || len(j.files) == 1 && j.files[0].Path == j.ticked &&
		j.files[0].Added == j.files[0].Deleted && j.files[0].Added <= boxes
	found, err := a.unfitFiles(ctx, j.wt, j.files, leftOut)
	if err != nil {
		return false, err
	}
	if len(found) == 0 {
		return false, a.inspect(ctx, j)
	}
	var said []string
	for _, path := range slices.Sorted(maps.Keys(found)) {
		said = append(said, path+": "+found[path])
	}
	return true, a.unfit(j, "cannot be committed: "+strings.Join(said, "\n"))
}

// inspect finds the facts about the change for the evaluator besides its diff.
func (a *attempt) inspect(ctx context.Context, j *judged) error {
	seed, err := a.run.seedOf(ctx)
	if err != nil {
		return err
	}
	for _, f := range j.files {
		was := cmp.Or(f.OldPath, f.Path)
		if _, given := seed.tests[was]; f.Status != "A" && !given && project.IsTest(was) {
			j.oldTests = append(j.oldTests, was)
		}
	}
	return a.showHidden(ctx, j)
}

// checklist is the checklist in the repository that is ticked as tasks are done, "" for none.
func (a *attempt) checklist() string {
	if meta, err := a.run.S.SeedMeta(); err == nil && filepath.IsLocal(meta.Checklist) {
		return meta.Checklist
	}
	return ""
}

// alteredTests are the seed's acceptance tests that the laid-out tree does not have as the seed has them.
func (a *attempt) alteredTests(ctx context.Context, laid judge.Laid) ([]string, error) {
	seed, err := a.run.seedOf(ctx)
	if err != nil {
		return nil, err
	}
	var altered []string
	for file, blob := range seed.tests {
		if laid.Blob(file) != blob {
			altered = append(altered, file)
		}
	}
	slices.Sort(altered)
	return altered, nil
}

// noteAltered finds out which of the altered tests this very change alters, and how.
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

// validators are those of the user, or else those that the project suggests, narrowed to the acceptance tests of this
// and earlier tasks. files are those of the place where they will run, nil for all that lies there.
func (a *attempt) validators(ctx context.Context, j *judged, files []string) ([]validator.Validator, error) {
	if len(a.run.o.Validators) > 0 {
		return validator.FromConfig(a.run.o.Validators, a.task.ID)
	}
	t, err := a.tests(ctx)
	if err != nil {
		return nil, err
	}
	return validator.Detect(ctx, a.judgingPlace(ctx, j), files, t), nil
}

// tests says which acceptance tests count.
func (a *attempt) tests(ctx context.Context) (validator.Tasks, error) {
	seed, err := a.run.seedOf(ctx)
	if err != nil {
		return validator.Tasks{}, err
	}
	t := validator.Tasks{Current: a.task.ID, Seed: seed.files}
	for _, other := range a.run.taskList() {
		t.All = append(t.All, other.ID)
		if other.Status == "done" {
			t.Done = append(t.Done, other.ID)
		}
	}
	return t, nil
}

// runValidators runs the validators and records their results.
func (a *attempt) runValidators(ctx context.Context, j *judged, laid judge.Laid, vs []validator.Validator) error {
	run := func() validator.Report { return a.overLayer(ctx, j, vs) }
	a.run.validating.RLock()
	j.report = run()
	a.run.validating.RUnlock()
	if a.at.lane != "" && j.report.TimedOut() { // it may have been the others' load: once more alone
		a.run.validating.Lock()
		j.report = run()
		a.run.validating.Unlock()
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	a.run.mu.Lock()
	validator.Known(a.run.Checkpoint.KnownFailures).Spare(&j.report)
	a.run.mu.Unlock()
	if j.report.Passed {
		if err := a.underSeed(ctx, j, laid, vs); err != nil {
			return err
		}
	}
	return a.recordValidators(j)
}

// overLayer runs validators once. Overlayfs cannot move directories of its lower layer (EXDEV): validators that fail
// over that run again in the checkout itself.
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
	run := record.ValidatorRun{Passed: j.report.Passed, Note: j.report.Note}
	for _, res := range j.report.Results {
		r := record.ValidatorResult{Name: res.Name, Passed: res.Passed, Skipped: res.Skipped, Known: res.Known,
			Seconds: res.Seconds, Tests: res.Tests, By: res.By,
			Output: new(a.run.forRecord(res.Output, promptCap))}
		run.Results = append(run.Results, r)
	}
	return a.emit(&run)
}

// firstFailure returns a report's first failure in a line.
func firstFailure(r validator.Report) string {
	for _, res := range r.Results {
		if !res.Passed && !res.Skipped && !res.Known {
			return strings.TrimSuffix(res.Name+": "+res.Cause()+"; "+res.Mend, "; ")
		}
	}
	return ""
}

// maxIgnored is how many ignored files are named to a worker.
const maxIgnored = 20

// failedValidators returns the answer to a case with a change that does not pass.
func (a *attempt) failedValidators(ctx context.Context, j *judged) (string, error) {
	feedback := "The validators failed. Fix what they report, run them yourself, and submit again.\n\n" +
		fenced("validators", clip(j.report.Text(), validatorCap))
	ignored, err := a.run.Untracked(ctx, j.wt, true)
	if err != nil {
		return "", err
	}
	if len(ignored) == 0 {
		return feedback, nil
	}
	more := ""
	if n := len(ignored) - maxIgnored; n > 0 {
		more = "\nand " + text.Plural(n, "more")
		ignored = ignored[:maxIgnored]
	}
	return feedback + "\n\nThey ran over exactly what will be committed. These files of your working tree are " +
		"ignored by git and were missing there; files that the tests need must be tracked, or made by the tests:\n\n" +
		fenced("ignored", strings.Join(ignored, "\n")+more), nil
}
