package loop

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/lifecycle"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
	"github.com/git-tilth/git-tilth/internal/validator"
)

// commitMsg is the hook that preflight runs on messages. sampleHooks run on a sample commit.
const commitMsg = "commit-msg"

var sampleHooks = []string{"pre-commit", "prepare-commit-msg"}

// sampleTime limits a hook on a sample commit.
const sampleTime = 2 * time.Minute

// hooksBy adds everything to a hash that decides whether a commit passes the hooks: the hooks, the files next to them
// that they may call, and the form of subjects.
func (a *attempt) hooksBy(ctx context.Context, sum io.Writer) error {
	wt, err := a.hooksAt(ctx)
	if err != nil {
		return err
	}
	_, has, err := a.run.Git.Hooks(ctx, wt)
	if err != nil || !has(append(sampleHooks, commitMsg)...) {
		return err
	}
	dir, err := a.run.Git.HookFile(ctx, wt, "")
	if err != nil {
		return err
	}
	fmt.Fprintf(sum, "%q\n", a.run.CommitSubject)
	beside, _ := os.ReadDir(dir)
	for _, f := range beside {
		if called, err := jsonl.ReadFile(filepath.Join(dir, f.Name())); err == nil { // a regular file
			fmt.Fprintf(sum, "%q %q\n", f.Name(), called)
		}
	}
	return nil
}

// checkHooks runs the commit hooks on a sample, in the judged checkout of the base. The hooks cannot change it.
func (a *attempt) checkHooks(ctx context.Context) (checks []record.Check, err error) {
	wt, err := a.hooksAt(ctx)
	if err != nil {
		return nil, err
	}
	wt.Path, wt.Branch, wt.Head = a.at.place.Dir, "", a.run.S.Branch()
	_, has, err := a.run.Git.Hooks(ctx, wt)
	if err != nil {
		return nil, err
	}
	for _, name := range sampleHooks {
		if !has(name) {
			continue
		}
		c, err := a.checkSample(ctx, wt, name)
		if err != nil {
			return nil, err
		}
		checks = append(checks, c...)
	}
	subject, err := a.checkSubject(ctx, wt)
	return append(checks, subject...), err
}

// checkSample runs a hook on a sample commit. A refusal is a finding if no change can pass, because the hook needs a
// file that the sandbox hides, a missing program or a terminal.
func (a *attempt) checkSample(ctx context.Context, wt gitx.Worktree, name string) ([]record.Check, error) {
	brief, cancel := context.WithTimeout(ctx, sampleTime)
	defer cancel()
	try := func(wt gitx.Worktree) error {
		_, err := a.run.Git.TryHooks(brief, wt, gitx.TreeCommit{Message: "A sample of a change\n", Parent: a.base},
			[]string{name}, lifecycle.CommittingVar+"="+wt.Head)
		return err
	}
	err := try(wt)
	refused, is := errors.AsType[*gitx.HookRefusedError](err)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	} else if brief.Err() != nil { // a hook that runs this long has started properly
		return nil, nil
	} else if !is {
		return nil, err
	}
	c := record.Check{Name: name + " hook", From: "hooks", Status: record.CheckFinding}
	c.Detail, c.Command = validator.Hindered(refused.Output, a.run.o.Sandbox.With(wt.Path))
	if c.Detail == "" {
		if c.Command = a.otherBranch(ctx, wt, refused.Output, try); c.Command == "" {
			return nil, nil
		}
		c.Detail = text.FirstLines(refused.Output, 20)
	}
	c.Command = cmp.Or(c.Command, a.editHook(ctx, wt, name))
	return []record.Check{c}, nil
}

// checkSubject runs the commit-msg hook on the subject of the task with the longest title.
func (a *attempt) checkSubject(ctx context.Context, wt gitx.Worktree) ([]record.Check, error) {
	sample := "A sample of a worker's summary of its change, in lines that are wrapped at 72 columns."
	byTitle := func(x, y session.Task) int { return len(x.Title) - len(y.Title) }
	longest := slices.MaxFunc(a.run.tasks, byTitle)
	refused, passes, err := lifecycle.TrySubjects(ctx, a.run.Handle, wt, a.base, longest, sample)
	if err != nil || refused == nil {
		return nil, err
	}
	c := record.Check{Name: commitMsg + " hook", From: "hooks", Status: record.CheckFinding,
		Detail: text.FirstLines(refused.Output, 20)}
	shortest := slices.MinFunc(a.run.tasks, byTitle)
	other, _, err := lifecycle.TrySubjects(ctx, a.run.Handle, wt, a.base, shortest, sample)
	if err == nil && other == nil {
		c.Detail += "; refused for " + longest.ID + ": " + text.VisibleLine(text.OneLine(longest.Title))
	}
	if passes != "" {
		c.Command = lifecycle.SubjectSetting(passes)
	} else if why, fix := validator.Hindered(refused.Output, a.run.o.Sandbox.With(wt.Path)); why != "" {
		c.Detail, c.Command = why, cmp.Or(fix, a.editHook(ctx, wt, commitMsg))
	} else if c.Command = a.otherBranch(ctx, wt, refused.Output, func(wt gitx.Worktree) error {
		refused, _, err := lifecycle.TrySubjects(ctx, a.run.Handle, wt, a.base, longest, sample)
		if refused != nil {
			return refused
		}
		return err
	}); c.Command != "" {
		return []record.Check{c}, nil
	} else if c.Command = a.editHook(ctx, wt, commitMsg); c.Command != "" {
		c.Detail += "; no usual subject passes"
	}
	return []record.Check{c}, nil
}

// otherBranch returns the command that names the session's branch so that a hook with a rule for branches passes. It
// returns "" if no usual name passes, or if the session already has its branch.
func (a *attempt) otherBranch(ctx context.Context, wt gitx.Worktree, output string,
	try func(gitx.Worktree) error) string {
	if a.run.ahead == nil || !strings.Contains(strings.ToLower(output), "branch") {
		return ""
	}
	for _, form := range lifecycle.UsualBranches(ctx, a.run.Handle) {
		wt.Head = strings.NewReplacer("{id}", a.run.S.ID, "{label}", "a-sample").Replace(form)
		if err := try(wt); err == nil && ctx.Err() == nil {
			return "git config tilth.branch " + text.ShellQuote(form)
		}
	}
	return ""
}

// editHook returns the command that opens a hook in the user's editor, or "" if the hook has no file.
func (a *attempt) editHook(ctx context.Context, wt gitx.Worktree, name string) string {
	file, err := a.run.Git.HookFile(ctx, wt, name)
	if err != nil {
		return ""
	}
	return "${EDITOR:-vi} " + text.ShellQuote(file)
}
