package main

import (
	"os"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/git-tilth/git-tilth/internal/lifecycle"
	"github.com/git-tilth/git-tilth/internal/seed"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
)

func (p *process) planCommand() *cli.Command {
	return &cli.Command{
		Name: "plan", Usage: "open the tasks that are still to do in your editor, also after a run",
		ArgsUsage: "[<session>]",
		Description: "Reword, add, remove or reorder tasks, and say what they need. What is done stays; a seed that " +
			"has not been run is\nedited as by seed edit.",
		Action: p.onHeld(func(_ *cli.Context, w *repoContext, h *lifecycle.Handle) error { return w.editPlan(h) }),
	}
}

// editPlan lets a person edit what is not done. prd.json is replaced in one step; until then the text is in the draft,
// with which the same command goes on.
func (w *repoContext) editPlan(h *lifecycle.Handle) error {
	s := h.S
	if h.Checkpoint.Status == session.Prepared {
		return w.editSeed(h)
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
	files, err := w.seedFiles(h)
	if err != nil {
		return fail("", err)
	}
	edited, err := w.editedTasks(h, "git tilth plan "+s.ID, old, files, append([]session.Task{}, kept...))
	if err != nil || edited == nil {
		return err
	}
	if err := h.Replan(edited); err != nil {
		return fail("git tilth plan "+s.ID, err)
	}
	settled := func(t session.Task) bool { return isDone(t) || t.Status == session.TaskSkipped }
	left := len(slices.DeleteFunc(edited, settled))
	w.p.printf("%s to do\nnext: git tilth resume %s\n", text.Plural(left, "task"), s.ID)
	return os.Remove(draftOf(s))
}

// editedTasks is the plan as a person edited it, nil where nothing was changed. again is the command that goes on with
// a text that was refused, done are the tasks that the text does not hold, nil where nothing was run.
func (w *repoContext) editedTasks(h *lifecycle.Handle, again string, old []byte, files []string,
	done []session.Task) ([]session.Task, error) {
	if w.p.dryRun {
		w.p.printf("would open %s in your editor\n", h.S.Path(session.TasksFile))
		return nil, nil
	}
	edited, err := w.editDraft(h, again, old)
	if err != nil || edited == nil {
		return nil, err
	}
	tasks, broken, err := seed.EditPlan(old, edited, files, done)
	if err != nil {
		return nil, fail("", err)
	}
	if len(broken) > 0 {
		return nil, refuse(again+" goes on with your text", "the edited plan cannot be used:\n%s",
			seed.Explain(broken, 20))
	}
	return tasks, nil
}
