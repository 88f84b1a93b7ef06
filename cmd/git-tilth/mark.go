package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/lifecycle"
	"github.com/git-tilth/git-tilth/internal/loop"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
)

// taskAction applies the user's decision on a task, with a note, to a session with this plan.
type taskAction func(w *repoContext, h *held.Handle, plan lifecycle.Plan, task, note string) error

// markCommands returns the commands that decide on one task manually.
func (p *process) markCommands() []*cli.Command {
	note := func(usage string) []cli.Flag {
		return []cli.Flag{&cli.StringFlag{Name: "message", Aliases: []string{"m"}, Usage: usage}}
	}
	command := func(is traits, name, usage, description string, flags []cli.Flag, do taskAction) *cli.Command {
		is.wish = "steer"
		return p.declare(is, &cli.Command{
			Name: name, Usage: usage, ArgsUsage: "<task> [<session>]", Description: description, Flags: flags,
			Action: p.onSessionToChange(func(ctx *cli.Context, w *repoContext, s *session.Session) error {
				return w.onTask(s, w.tasks[0], ctx.String("message"), do)
			}),
		})
	}
	return []*cli.Command{
		command(traits{}, "retry", "try a task again in the next resume, with a note",
			"The next attempt starts a new conversation.",
			note("a note for worker and reviewer"),
			func(w *repoContext, h *held.Handle, _ lifecycle.Plan, task, note string) error {
				return w.mark(h, task, lifecycle.MarkRetry, note, "will be tried again")
			}),
		command(traits{rare: true}, "skip", "leave a task out and stash its work", "", nil,
			func(w *repoContext, h *held.Handle, _ lifecycle.Plan, task, _ string) error {
				return w.mark(h, task, lifecycle.MarkSkipped, "", "is skipped")
			}),
		command(traits{rare: true, starts: true, hooked: true}, "done",
			"commit your changes in the worktree as a task",
			"Runs the validators and asks no model. The change may be empty.",
			note("the body of the commit message"), (*repoContext).markDone),
	}
}

// onTask locks the session of a task and refuses a done task.
func (w *repoContext) onTask(s *session.Session, task, note string, do taskAction) error {
	show := w.newProgress(s, false)
	h, err := w.hold(s, show.Event)
	if err != nil {
		return err
	}
	defer h.Close()
	h.Tell = show.Tell
	show.Name()
	plan, err := w.betweenRuns(h)
	if err != nil {
		return err
	}
	tasks, err := tasksWith(s, []string{task})
	if err != nil {
		return err // an edited plan has removed it
	}
	isDone := func(t session.Task) bool { return t.ID == task && t.Status == session.TaskDone }
	if slices.ContainsFunc(tasks, isDone) || plan.MarkDone[task] != "" {
		return refuse("git tilth show "+s.ID, "%s is done", task)
	}
	return do(w, h, plan, task, note)
}

// betweenRuns refuses a session that cannot be resumed.
func (w *repoContext) betweenRuns(h *held.Handle) (lifecycle.Plan, error) {
	plan, err := lifecycle.PlanOf(w.p.ctx, h)
	switch {
	case err != nil:
		return plan, fail("", err)
	case plan.Action == lifecycle.Refuse:
		return plan, refuse(plan.Hint, "session %s: %s", h.S.ID, plan.Why)
	}
	return plan, nil
}

// mark records a decision for the next resume.
func (w *repoContext) mark(h *held.Handle, task, mark, note, will string) error {
	if err := lifecycle.Mark(h, task, mark, note); err != nil {
		return fail("", err)
	}
	if w.p.dryRun {
		w.p.printf("would note: %s %s\n", task, will)
		return nil
	}
	w.p.printf("%s %s\n", task, will)
	next, err := "resume", error(nil)
	if mark == lifecycle.MarkSkipped {
		next, err = w.conclude(h)
	}
	if err == nil {
		w.p.printf("next: git tilth %s %s\n", next, h.S.ID)
	}
	return err
}

// conclude ends a session without remaining work and returns the next command.
func (w *repoContext) conclude(h *held.Handle) (next string, err error) {
	tasks, err := h.S.Tasks()
	open := func(t session.Task) bool { return t.Status != session.TaskDone && t.Status != session.TaskSkipped }
	if err != nil || slices.ContainsFunc(tasks, open) {
		return "resume", nil
	}
	plan, err := lifecycle.PlanOf(w.p.ctx, h)
	if err != nil || plan.Action == lifecycle.Refuse || plan.NeedsWorker() {
		return "resume", nil // a resume prints the reason
	}
	o, err := w.Judging(loop.Options{})
	if err != nil {
		return "", err
	}
	if o.From, err = plan.Execute(w.p.ctx, h, lifecycle.Execution{}); err != nil {
		return "", w.p.executionError(err, h.S.ID)
	}
	if o.From.Action != lifecycle.Nothing {
		if _, err = loop.Run(w.p.ctx, h, o); err != nil {
			return "", fail("git tilth resume "+h.S.ID, err)
		}
	}
	return "review", nil
}

// markDone prepares the session as for a run, and commits the task.
func (w *repoContext) markDone(h *held.Handle, plan lifecycle.Plan, task, note string) error {
	if plan.MovesAside() {
		return refuse("git tilth resume "+h.S.ID,
			"%s is not a worktree, so its files would not be committed; a resume moves it away", h.Path())
	}
	if plan.Begun != "" && plan.Begun != task {
		if dirty, err := w.Git.IsDirty(w.p.ctx, h.Path()); err != nil || dirty || len(plan.Unwind) > 0 {
			return refuse("git tilth resume "+h.S.ID+"\ngit tilth skip "+plan.Begun+" "+h.S.ID,
				"the worktree has the work of %s, which would be committed as %s", plan.Begun, task)
		}
	}
	o, err := w.Judging(loop.Options{})
	if err != nil {
		return err
	}
	out, err := plan.Execute(w.p.ctx, h, lifecycle.Execution{Start: w.StartOf(o), Only: task})
	if err != nil {
		return w.p.executionError(err, h.S.ID)
	}
	if note == "" {
		note = "Marked as done by the user."
	}
	if w.p.dryRun {
		return w.planDone(h, plan, task, note)
	}
	// If a commit hook refuses or changes an accepted tree, the work stays in the worktree.
	if dirty, err := w.Git.IsDirty(w.p.ctx, h.Path()); out.Begun != "" && out.Begun != task && (err != nil || dirty) {
		o.From = out
		if err := loop.Leave(h, o, out.Begun); err != nil {
			return fail("", err)
		}
		msg := fmt.Sprintf("the worktree has the work of %s, which would be committed as %s", out.Begun, task)
		return &exitError{code: exitNo, msg: msg, hint: "git tilth resume " + h.S.ID}
	}
	o.From = out
	isDone, err := loop.Done(w.p.ctx, h, o, task, note)
	if stop := (loop.Stop{}); errors.As(err, &stop) {
		stop.Task = task
		result := w.p.outcome(stop)
		w.hintOf(h, result)
		return result
	}
	if err != nil {
		return w.p.executionError(err, h.S.ID)
	}
	if !isDone {
		msg := fmt.Sprintf("%s is not done: the work in %s was rejected", task, workPlace(h, task))
		return &exitError{code: exitNo, msg: msg, hint: "git tilth log --task " + task + " " + h.S.ID}
	}
	if work := w.aside(h.S, task); work != nil {
		w.p.printf("not included: the stashed work of %s, in %s of %s\n", task, work.Ref, h.S.Path(session.KeptGitDir))
	}
	next := "resume"
	if h.Checkpoint.Status == session.AllDone {
		next = "review"
	}
	w.p.printf("next: git tilth %s %s\n", next, h.S.ID)
	return nil
}

// workPlace returns the directory with a task's files.
func workPlace(h *held.Handle, task string) string {
	if held.HasLane(h.S, task) {
		return held.LanePath(h.S, task)
	}
	return h.Path()
}

// planDone prints the commit that done would make once the validators have passed.
func (w *repoContext) planDone(h *held.Handle, plan lifecycle.Plan, task, note string) error {
	tasks, err := h.S.Tasks()
	if err != nil {
		return fail("", err)
	}
	w.p.printf("%s: would validate and commit the work in %s\n", task, workPlace(h, task))
	wt, err := h.Worktree(w.p.ctx)
	if err != nil {
		return nil // done creates the worktree first
	}
	i := session.IndexOf(tasks, task)
	_, err = lifecycle.CommitTask(w.p.ctx, h, wt, tasks[i], &record.EvaluatorVerdict{Summary: note,
		By: record.ByPerson, Base: plan.BeginsAt()}, false, nil)
	return err
}
