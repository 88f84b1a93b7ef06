package main

import (
	"fmt"
	"os"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/lifecycle"
	"github.com/git-tilth/git-tilth/internal/seed"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
)

func (p *process) planCommand() *cli.Command {
	return p.declare(traits{wish: "steer", rare: true}, &cli.Command{
		Name: "plan", Usage: "edit the remaining tasks",
		ArgsUsage: "[<session>]",
		Description: "Opens the remaining tasks in your editor. You can reword, add, remove and reorder them, " +
			"and set their dependencies, before and after a run. Finished tasks stay.",
		Action: p.onHeld(func(_ *cli.Context, w *repoContext, h *held.Handle) error { return w.editPlan(h) }),
	})
}

// editPlan lets the user edit the remaining tasks. Until prd.json is replaced in one step, the text is in a draft, and
// the same command continues with it.
func (w *repoContext) editPlan(h *held.Handle) error {
	s := h.S
	if _, err := os.Stat(s.Path(draftFile)); err == nil && !held.Seeded(s) {
		return w.editRefused(h)
	}
	if held.Seeded(h.S) {
		ran, err := lifecycle.HasRun(w.p.ctx, h)
		if err != nil {
			return fail("git tilth doctor", err)
		}
		if !ran {
			return w.editUnrun(h)
		}
	}
	if _, err := w.betweenRuns(h); err != nil {
		return err
	}
	tasks, err := s.Tasks()
	if err != nil {
		return fail("", err)
	}
	isDone := func(t session.Task) bool { return t.Status == session.TaskDone }
	kept := slices.DeleteFunc(slices.Clone(tasks), func(t session.Task) bool { return !isDone(t) })
	old, err := session.FormatTasks(slices.DeleteFunc(slices.Clone(tasks), isDone))
	if err != nil {
		return fail("", err)
	}
	return w.editTasks(h, "git tilth plan "+s.ID, old, kept, func(all []session.Task, _ int) (string, error) {
		settled := func(t session.Task) bool { return isDone(t) || t.Status == session.TaskSkipped }
		left, next := len(slices.DeleteFunc(slices.Clone(all), settled)), "resume"
		if left == 0 {
			next = "review"
		}
		return fmt.Sprintf("%s to do\nnext: git tilth %s %s\n", text.Plural(left, "task"), next, s.ID),
			lifecycle.Replan(w.p.ctx, h, all)
	})
}

// editRefused opens the refused seed of an interview.
func (w *repoContext) editRefused(h *held.Handle) error {
	draft := h.S.Path(draftFile)
	if w.p.dryRun {
		w.p.printf("would open %s in your editor\n", draft)
		return nil
	}
	if err := w.openEditor(h, "git tilth plan "+h.S.ID, draft); err != nil {
		return err
	}
	w.p.printf("next: git tilth prep-feature --force --from %s\n", text.ShellQuote(draft))
	return nil
}

// editTasks lets the user edit a plan and replaces it if it changed. again is the command that continues with a
// refused text. done are the finished tasks, which the text leaves out; nil before a run.
func (w *repoContext) editTasks(h *held.Handle, again string, old []byte, done []session.Task,
	replace func(tasks []session.Task, tests int) (says string, err error)) error {
	files, err := w.seedFiles(h)
	if err != nil {
		return fail("", err)
	}
	if w.p.dryRun {
		w.p.printf("would open %s in your editor\n", h.S.Path(session.TasksFile))
		return nil
	}
	edited, err := w.editDraft(h, again, old)
	if err != nil || edited == nil {
		return err
	}
	tasks, broken, err := seed.EditPlan(old, edited, files, done)
	if err != nil {
		return fail("", err)
	}
	if len(broken) > 0 {
		return refuse(again+" continues with your text", "the edited plan cannot be used:\n%s",
			seed.Explain(broken, 20))
	}
	says, err := replace(tasks, len(files))
	if err != nil {
		return fail(again, err)
	}
	w.p.printf("%s", says)
	return os.Remove(draftOf(h.S))
}
