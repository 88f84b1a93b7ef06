package loop

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
)

// Done commits the worktree's changes as a task, by the user's decision. The validators run; no model is asked. It is
// an attempt with the user's verdict, so a crash leaves the same state as in a run. isDone is false if the validators
// or a commit hook refused the change.
func Done(ctx context.Context, h *held.Handle, o Options, task, note string) (isDone bool, err error) {
	r := newRun(h, o)
	g := r.sessionWorkspace()
	defer func() { g.removeTemp() }()
	isDone, err = r.done(ctx, g, task, note)
	begun := task
	if isDone {
		begun = ""
	}
	stop := r.leaves(begun)
	if err != nil {
		stop = stopOf(ctx, err, task)
	}
	g.leave()
	return isDone, errors.Join(err, r.finish(stop))
}

// Leave records the unfinished tasks of a session after a manual command that could not act because the worktree has
// the work of another task.
func Leave(h *held.Handle, o Options, begun string) (err error) {
	r := newRun(h, o)
	if r.tasks, err = h.S.Tasks(); err != nil {
		return err
	}
	return r.finish(r.leaves(begun))
}

// leaves returns the stop after a manual command on one task: the unfinished tasks, and the reasons of failures.
// Without a failure, the last stop at a cap remains the reason. begun is the task with work in the worktree, or "".
func (r *run) leaves(begun string) Stop {
	s := r.nothingLeft()
	if s.Reason == record.TasksFailed && !s.Failed() && r.next() >= 0 {
		s = Stop{Reason: record.Interrupted, Detail: s.Detail}
		if was := r.o.From.Record.Stopped; was != nil {
			if why := record.ReasonOf(was.Reason); why.Calm && !why.Last && !why.Cuts {
				s.Reason, s.Detail = was.Reason, was.Detail
			}
		}
	}
	s.Task = begun
	return s
}

func (r *run) done(ctx context.Context, g *workspace, task, note string) (bool, error) {
	if err := r.open(ctx, g); err != nil {
		return false, err
	}
	i := session.IndexOf(r.tasks, task)
	if i < 0 {
		return false, fmt.Errorf("the plan has no task %s", task)
	}
	if r.tasks[i].Status == session.TaskDone {
		return true, nil // an accepted task, committed just now
	}
	if held.HasLane(r.S, task) {
		*g = *r.laneWorkspace(g, task, 1)
	}
	if err := errors.Join(os.MkdirAll(filepath.Dir(g.judging), 0o700), r.clearLayers(), g.enclose(),
		g.openPlace(ctx)); err != nil {
		return false, err
	}
	a := &attempt{run: r, at: g, index: i, task: r.tasks[i], trace: randomHex(16), span: randomHex(8), byPerson: true}
	if _, err := a.begin(ctx); err != nil {
		return false, err
	}
	a.iter = 1
	feedback, err := a.judge(ctx, &Case{Summary: note})
	if err != nil {
		a.foldAtStop(ctx)
	}
	isDone := err == nil && feedback == ""
	if isDone && g.lane != "" {
		err = held.RemoveLane(proc.IgnoreFirstSignal(ctx), r.Handle, task)
	}
	return isDone, err
}
