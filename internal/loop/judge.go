package loop

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/config"
	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/lifecycle"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/validator"
)

// hookRounds bounds how often a change is judged again because a commit hook changed it.
const hookRounds = 3

// judge takes a case through validators and evaluator to a commit. An empty feedback with a nil error means that the task is
// committed; otherwise the feedback is what the worker has to deal with.
func (a *attempt) judge(ctx context.Context, c *Case) (feedback string, err error) {
	for range hookRounds {
		report, err := a.validate(ctx)
		if err != nil {
			return "", err
		}
		if !report.Passed {
			return "The validators failed. Fix what they report, run them yourself, and submit again.\n\n" + reportText(report), nil
		}
		wt, err := a.foldedWorktree(ctx)
		if err != nil {
			return "", err
		}
		tree, err := a.stage(ctx, wt)
		if err != nil {
			return "", err
		}
		v, err := a.review(ctx, wt, c, tree, report)
		if err != nil {
			return "", err
		}
		if !v.Accepted() {
			if err := a.evaluatorLeft(); err != nil {
				return "", err
			}
			return "The reviewer sent the change back. Deal with every point and submit again.\n\n" + v.Text(), nil
		}
		err = a.accept(ctx, wt, c, tree)
		var changed *lifecycle.TreeChangedError
		var refused *gitx.HookRefusedError
		switch {
		case errors.As(err, &changed):
			continue
		case errors.As(err, &refused):
			return a.refusedByHook(refused.Output)
		}
		return "", err
	}
	return a.refusedByHook("A commit hook changed the files again after each review.")
}

// evaluatorLeft is the end of the task once its evaluator calls are used up, nil before.
func (a *attempt) evaluatorLeft() error {
	if limit := int(a.o.Caps[config.MaxEvaluatorCalls]); limit > 0 && a.verdict >= limit {
		return &halt{Stop: Stop{Reason: EvaluatorCap, Detail: fmt.Sprint(limit)}}
	}
	return nil
}

// refusedByHook hands a commit hook's refusal to the worker, as a validator that failed.
func (a *attempt) refusedByHook(output string) (string, error) {
	err := a.emit(lifecycle.RefusedBy(clip(output, promptCap)))
	return "The repository's commit hook refused the change. Fix what it reports and submit again.\n\n" + output, err
}

// foldedWorktree is the worktree, settled, with everything that the worker committed by itself since the attempt
// began taken back into the index: a task is one commit, and that is the harness's.
func (a *attempt) foldedWorktree(ctx context.Context) (gitx.Worktree, error) {
	wt, err := a.settledWorktree(ctx)
	if err != nil {
		return wt, err
	}
	tip, ok, err := a.Git.BranchTip(ctx, a.Common, a.S.Branch())
	if err != nil {
		return wt, err
	}
	if !ok {
		// Renamed or deleted by the worker: what it held is the commit at which the attempt began.
		err := a.emit(&record.LogRepaired{What: a.S.Branch() + " was gone", Done: "made again at " + a.base + ", files kept"})
		if err != nil {
			return wt, err
		}
	}
	if tip != a.base {
		if ok {
			if err := a.CatchUp(ctx, wt, tip, a.base); err != nil {
				return wt, err
			}
		}
		return wt, a.Git.SoftReset(ctx, wt, a.base)
	}
	return wt, nil
}

// stage stages everything and names the tree. Build products that were left out are named in the record once.
func (a *attempt) stage(ctx context.Context, wt gitx.Worktree) (tree string, err error) {
	tree, leftOut, err := a.Git.StageAll(ctx, wt, a.base)
	if err != nil {
		return "", err
	}
	var news []string
	for _, p := range leftOut {
		if !a.notified[p] {
			a.notified[p] = true
			news = append(news, p)
		}
	}
	if len(news) > 0 {
		err = a.emit(&record.BuildProducts{LeftOut: news, Reason: "build products that no .gitignore covers, " +
			"repositories within this one, and files that cannot be read"})
	}
	return tree, err
}

// validate runs the validators of the user, or else those that the project suggests.
func (a *attempt) validate(ctx context.Context) (validator.Report, error) {
	wt, err := a.settledWorktree(ctx)
	if err != nil {
		return validator.Report{}, err
	}
	env := a.childEnv(wt)
	var vs []validator.Validator
	if len(a.o.Validators) > 0 {
		vs, err = validator.FromConfig(a.o.Validators)
	} else {
		vs, err = a.detected(ctx, wt, env)
	}
	if err != nil {
		return validator.Report{}, err
	}
	report := validator.Run(ctx, validator.ForTask(vs, a.task.ID), wt.Path, env, a.o.Limits.Validator, 0)
	if err := ctx.Err(); err != nil {
		return report, err
	}
	run := record.ValidatorRun{Passed: report.Passed, Note: report.Note}
	for _, res := range report.Results {
		r := record.ValidatorResult{Name: res.Name, Passed: res.Passed, Skipped: res.Skipped, Seconds: res.Seconds}
		if !res.Passed {
			r.Output = new(clip(res.Output, promptCap))
		}
		run.Results = append(run.Results, r)
	}
	return report, a.emit(&run)
}

// detected are the validators that the project suggests, narrowed to the acceptance tests of this and earlier tasks.
func (a *attempt) detected(ctx context.Context, wt gitx.Worktree, env []string) ([]validator.Validator, error) {
	seed, err := a.seedFiles(ctx, wt)
	if err != nil {
		return nil, err
	}
	t := validator.Tasks{Current: a.task.ID, Seed: seed}
	for _, other := range a.tasks {
		t.All = append(t.All, other.ID)
		if other.Status == "done" {
			t.Done = append(t.Done, other.ID)
		}
	}
	return validator.Detect(ctx, wt.Path, t, env), nil
}

// reportText is what the validators printed, for a prompt.
func reportText(r validator.Report) string {
	var b strings.Builder
	if r.Note != "" {
		b.WriteString(r.Note + "\n")
	}
	for _, res := range r.Results {
		state := "passed"
		if !res.Passed {
			state = "FAILED"
		}
		fmt.Fprintf(&b, "## %s: %s (%.1f s)\n", res.Name, state, res.Seconds)
		if out := strings.TrimSpace(res.Output); out != "" {
			b.WriteString(out + "\n")
		}
	}
	return b.String()
}

// review gets a verdict on a tree and writes it down: record, then ledger.
func (a *attempt) review(ctx context.Context, wt gitx.Worktree, c *Case, tree string, report validator.Report) (*Verdict, error) {
	files, err := a.Git.ChangedFiles(ctx, wt, a.base, tree)
	if err != nil {
		return nil, err
	}
	var v *Verdict
	if len(files) == 0 {
		v = emptyDiff(slices.Sorted(maps.Keys(a.notified)))
	} else {
		// A commit hook that refuses, or changes what was accepted, leads to another review without a rejection.
		if err := a.evaluatorLeft(); err != nil {
			return nil, err
		}
		if v, err = a.evaluate(ctx, wt, c, tree, report); err != nil {
			return nil, err
		}
		a.verdict++
	}
	// It holds what the ledger's line will: a process that dies between the two must not take the reviewer's word with it.
	if err := a.emit(&record.EvaluatorVerdict{
		Verdict: v.Verdict, RejectionCategory: v.Category, Concern: v.Concern, Evidence: v.Evidence, NextStep: v.NextStep,
		Tree: tree, Base: a.base, ParseFailed: v.ParseFailed, Summary: c.Summary, DiffSummary: diffSummary(files),
		Case: record.JSON(c),
	}); err != nil {
		return nil, err
	}
	if err := a.S.AppendLedger(a.task.ID, session.LedgerEntry{
		TS: session.FormatTime(a.Now()), Iter: int64(a.iter), DiffSummary: a.redacted(diffSummary(files)), Case: a.redacted(c), Verdict: a.redacted(v),
	}); err != nil {
		return nil, err
	}
	summary := v.Verdict
	if v.Category != nil {
		summary += " (" + *v.Category + ")"
	}
	return v, a.emit(&record.LedgerAppended{VerdictSummary: summary})
}

// emptyDiff is the verdict on a change that changes nothing; no model is asked for it.
func emptyDiff(leftOut []string) *Verdict {
	category, concern, next := "acceptance_gap", "The change is empty: no file differs from where the task began.", "Make the change, check with git status that it is in the working tree, and submit again."
	if len(leftOut) > 0 {
		concern += " Not taken, as build products, repositories of their own or unreadable files: " + strings.Join(leftOut, ", ") + "."
	}
	return &Verdict{Verdict: Reject, Category: &category, Concern: &concern, NextStep: &next}
}

func diffSummary(files []gitx.FileChange) string {
	added, deleted := 0, 0
	var names []string
	for _, f := range files {
		added, deleted = added+f.Added, deleted+f.Deleted
		names = append(names, f.Path)
	}
	more := ""
	if len(names) > 20 {
		more = fmt.Sprintf(" and %d more", len(names)-20)
		names = names[:20]
	}
	return fmt.Sprintf("%d files, +%d -%d: %s%s", len(files), added, deleted, strings.Join(names, ", "), more)
}

// accept commits an accepted tree.
//
// The verdict and the ledger are on disk when it is called. On disk after each further step, and what a resume makes of it:
//  1. task_done                the accepted tree is committed (lifecycle.MakePlan)
//  2. the commit               its trailers make the task done
//  3. commit event             as before
//  4. prd.json, progress.txt   done; summary.json is brought up to date by the next reader
func (a *attempt) accept(ctx context.Context, wt gitx.Worktree, c *Case, tree string) error {
	if err := a.emit(&record.TaskDone{Summary: c.Summary}); err != nil {
		return err
	}
	sha, err := a.CommitTask(ctx, wt, a.task, c.Summary, tree, a.base)
	if err != nil {
		return err
	}
	if err := a.emit(&record.Commit{SHA: sha}); err != nil {
		return err
	}
	if err := a.settle("done", "done"); err != nil {
		return err
	}
	if err := a.S.WriteSummary(); err != nil {
		return err
	}
	a.hooks.postTask(ctx, a, sha)
	a.learn(ctx, wt, c, tree)
	return nil
}
