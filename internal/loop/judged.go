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
	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/seed"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
	"github.com/git-tilth/git-tilth/internal/validator"
)

// judged is a change under judgement: the tree that will be committed, and what is known of it.
type judged struct {
	wt       gitx.Worktree
	tree     string
	dir      string // where validators and evaluator programs run
	gitDir   string // of dir
	borrowed []string
	withheld []string
	files    []gitx.FileChange // from base to tree
	patch    []byte            // the same as a patch, as much as a prompt holds
	cut      bool              // that is not all of it
	report   validator.Report
	tests    string // the task's acceptance tests with their contents, as they were run

	// testsChanged are the acceptance tests of the seed that the change alters; testsPatch says how. They were run as
	// the seed has them.
	testsChanged []string
	testsPatch   string
	// unseen are the changed files of which the evaluator's diff shows nothing, or not all; nil where it shows all.
	unseen  []string
	empty   bool   // the worker changed nothing
	ticked  string // the checklist in which the harness ticked the task, "" for none
	unasked bool   // the verdict is the harness's own
}

// validated stages what the worker did, lays it out and runs the validators over it.
func (a *attempt) validated(ctx context.Context) (*judged, error) {
	if a.o.InWorktree {
		return a.validatedInWorktree(ctx)
	}
	j := &judged{dir: a.place.Dir, gitDir: filepath.Join(a.place.Dir, ".git")}
	if unfit, err := a.takeTree(ctx, j); err != nil || unfit {
		return j, err
	}
	laid, err := a.place.LayOut(ctx, a.base, j.tree)
	if setup, ok := errors.AsType[*judge.SetupError](err); ok {
		j.report = validator.Report{Results: []validator.Result{{Name: "setup", Output: setup.Error()}}}
		return j, a.recordValidators(j)
	}
	if err != nil {
		return nil, err
	}
	j.borrowed, j.withheld = laid.Borrowed, laid.Withheld
	vs, err := a.validators(ctx, j, laid.Files)
	if err != nil {
		return nil, err
	}
	altered, err := a.alteredTests(ctx, laid)
	if err != nil {
		return nil, err
	}
	if len(altered) > 0 {
		// The worker's version is what will be committed, and what the evaluator program finds there.
		if err := a.place.Put(ctx, a.seed.commit, altered); err != nil {
			return nil, err
		}
	}
	j.tests = testTexts(j.dir, a.context.Tests)
	if err := a.validate(ctx, j, vs); err != nil {
		return nil, err
	}
	looked := a.o.Evaluator.Program != nil && len(vs) > 0
	if !j.report.Passed || len(altered) == 0 && !looked {
		return j, nil
	}
	// What the validators ran can have changed what a program will look at.
	if err := a.place.Shut(); err != nil {
		return nil, err
	}
	if _, err := a.place.LayOut(ctx, a.base, j.tree); err != nil {
		return nil, err
	}
	return j, a.noteAltered(ctx, j, altered)
}

// validatedInWorktree is the old way: the validators see whatever lies in the worktree, and what they leave is staged.
func (a *attempt) validatedInWorktree(ctx context.Context) (*judged, error) {
	wt, err := a.settledWorktree(ctx)
	if err != nil {
		return nil, err
	}
	j := &judged{wt: wt, dir: wt.Path, gitDir: wt.AdminDir}
	vs, err := a.validators(ctx, j, nil)
	if err != nil {
		return nil, err
	}
	if err := a.validate(ctx, j, vs); err != nil || !j.report.Passed {
		return j, err
	}
	j.tests = testTexts(j.dir, a.context.Tests)
	_, err = a.takeTree(ctx, j)
	return j, err
}

// takeTree names the tree of what the worker did, and how it differs from where the attempt began. What must not be
// committed makes it unfit, which is on record like a validator that failed.
func (a *attempt) takeTree(ctx context.Context, j *judged) (unfit bool, err error) {
	if j.wt, err = a.foldedWorktree(ctx); err != nil {
		return false, err
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
	if err := a.objects(ctx, a.judged, j.tree); ctx.Err() != nil {
		return false, ctx.Err()
	} else if err != nil {
		return false, Stop{Reason: Errored, Detail: err.Error(), Hint: "git fsck, and put the object right"}
	}
	j.files, j.patch, j.cut, err = a.Git.Changes(ctx, a.Common, a.judged, j.tree, diffCap)
	if err != nil {
		return false, err
	}
	j.empty = len(j.files) == 0 || len(j.files) == 1 && j.files[0].Path == j.ticked &&
		j.files[0].Added == j.files[0].Deleted && j.files[0].Added <= boxes
	found, err := checkFit(ctx, a.Git, j.wt, j.files, leftOut, a.o.MaxFile)
	if err != nil || len(found) == 0 {
		return false, err
	}
	said := "these files cannot be committed:"
	for _, path := range slices.Sorted(maps.Keys(found)) {
		said += "\n" + path + ": " + found[path]
	}
	j.report = validator.Report{Results: []validator.Result{{Name: "commit", Output: said}}}
	return true, a.recordValidators(j)
}

// checklist is the checklist in the repository that is ticked as tasks are done, "" for none.
func (a *attempt) checklist() string {
	if meta, err := a.S.SeedMeta(); err == nil && filepath.IsLocal(meta.Checklist) {
		return meta.Checklist
	}
	return ""
}

// alteredTests are the seed's acceptance tests that the laid-out tree does not have as the seed has them.
func (a *attempt) alteredTests(ctx context.Context, laid judge.Laid) ([]string, error) {
	seed, err := a.seedOf(ctx)
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
	patch, _, err := a.Git.Diff(ctx, a.Common, a.seed.commit, j.tree, testsCap, j.testsChanged...)
	j.testsPatch = strings.ToValidUTF8(string(patch), "\uFFFD")
	return err
}

// validators are those of the user, or else those that the project suggests, narrowed to the acceptance tests of this
// and earlier tasks. files are those of the place where they will run, nil for all that lies there.
func (a *attempt) validators(ctx context.Context, j *judged, files []string) ([]validator.Validator, error) {
	if len(a.o.Validators) > 0 {
		return validator.FromConfig(a.o.Validators, a.task.ID)
	}
	t, err := a.tests(ctx)
	if err != nil {
		return nil, err
	}
	return validator.Detect(ctx, a.judgingPlace(ctx, j), files, t), nil
}

// tests says which acceptance tests count.
func (a *attempt) tests(ctx context.Context) (validator.Tasks, error) {
	seed, err := a.seedOf(ctx)
	if err != nil {
		return validator.Tasks{}, err
	}
	t := validator.Tasks{Current: a.task.ID, Seed: seed.files}
	for _, other := range a.tasks {
		t.All = append(t.All, other.ID)
		if other.Status == "done" {
			t.Done = append(t.Done, other.ID)
		}
	}
	return t, nil
}

// validate runs the validators and writes down what became of them.
func (a *attempt) validate(ctx context.Context, j *judged, vs []validator.Validator) error {
	// A worker can have left something in its own directory for temporary files, or in everybody's.
	temp, remove, err := proc.TempDir("judge")
	if err != nil {
		return err
	}
	defer remove()
	in := a.judgingPlace(ctx, j)
	in.Env, in.Box = append(in.Env, "TMPDIR="+temp), in.Box.In(temp)
	j.report = validator.Run(ctx, vs, in, a.o.Limits.Validator)
	if err := ctx.Err(); err != nil {
		return err
	}
	j.report.Note = strings.TrimSpace(strings.Join(slices.Concat(j.withheld, []string{j.report.Note}), "\n"))
	return a.recordValidators(j)
}

// recordValidators writes validator_run.
func (a *attempt) recordValidators(j *judged) error {
	run := record.ValidatorRun{Passed: j.report.Passed, Note: j.report.Note, Borrowed: j.borrowed}
	if a.o.InWorktree {
		run.Judge = "worktree"
	}
	for _, res := range j.report.Results {
		r := record.ValidatorResult{Name: res.Name, Passed: res.Passed, Skipped: res.Skipped, Seconds: res.Seconds}
		if !res.Passed || res.Skipped {
			r.Output = new(clip(res.Output, promptCap))
		}
		run.Results = append(run.Results, r)
	}
	failed := func(r record.ValidatorResult) bool { return !r.Passed && !r.Skipped }
	if i := slices.IndexFunc(run.Results, failed); i >= 0 {
		a.hears(run.Results[i].Name + ": " + text.FailingLine(*run.Results[i].Output))
	}
	return a.emit(&run)
}

// hears notes what is said against the change.
func (a *attempt) hears(says string) {
	a.objection = text.Clip(text.OneLine(a.Redact.String(says)), 300)
}

// maxIgnored is how many ignored files are named to a worker.
const maxIgnored = 20

// failedValidators is the worker's answer to a case whose change does not pass.
func (a *attempt) failedValidators(ctx context.Context, j *judged) (string, error) {
	feedback := "The validators failed. Fix what they report, run them yourself, and submit again.\n\n" +
		fenced("validators", clip(j.report.Text(), validatorCap))
	if a.o.InWorktree {
		return feedback, nil
	}
	ignored, err := a.Untracked(ctx, j.wt, true)
	if err != nil {
		return "", err
	}
	ignored = slices.DeleteFunc(ignored, func(f string) bool {
		return slices.Contains(j.borrowed, strings.TrimSuffix(f, "/"))
	})
	if len(ignored) == 0 {
		return feedback, nil
	}
	more := ""
	if n := len(ignored) - maxIgnored; n > 0 {
		more = "\nand " + text.Plural(n, "more")
		ignored = ignored[:maxIgnored]
	}
	return feedback + "\n\nThey ran over exactly what will be committed. These files of your working tree are " +
		"ignored by git and so were not there; what the tests need must be tracked, or made by them:\n\n" +
		fenced("ignored", strings.Join(ignored, "\n")+more), nil
}

// openPlace names the place where changes are judged, before a worker has begun.
func (r *run) openPlace(ctx context.Context, wt gitx.Worktree) (err error) {
	if r.place != nil || r.o.InWorktree {
		return nil
	}
	o := judge.Options{
		Git: r.Git, Common: r.Common, Branch: r.S.Branch(), Worktree: wt.Path, Environ: r.Environ,
		Repaired: func(what, done string) error {
			return r.Record.Append(&record.LogRepaired{What: what, Done: done})
		},
	}
	if r.Setup.Run != nil || len(r.Setup.Copy) > 0 {
		o.Setup = func(ctx context.Context, dir string) error { return r.RunSetup(ctx, dir) }
	}
	o.Borrow = r.o.Borrow && r.Setup.Run == nil
	r.place, err = judge.New(ctx, r.S.Path(session.JudgeDir), o)
	return err
}

// shutPlace closes the place while the worker works.
func (r *run) shutPlace(err *error) {
	if r.place != nil {
		*err = cmp.Or(*err, r.place.Shut())
	}
}
