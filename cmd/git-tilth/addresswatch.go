package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/git-tilth/git-tilth/internal/forge"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
)

// answer answers each thread of a finished task once, with the task's commit. It skips a thread that a killed command
// has answered, and returns the refusal of a thread that is locked or gone after it has answered the others.
func (a *addressing) answer() (refused error) {
	w := a.w
	tasks, err := a.s.Tasks()
	state, bad := a.s.State()
	if err = cmp.Or(err, bad); err != nil {
		return err
	}
	for _, i := range a.items {
		n := i.TaskOf(tasks)
		if !i.IsThread() || n < 0 {
			continue
		}
		t := tasks[n]
		commit := state.Tasks[t.ID].Commit
		if t.Status != session.TaskDone || commit == "" || i.IsAnswered(t.Source) {
			continue
		}
		if err := a.f.Reply(w.p.ctx, i, commit); errors.As(err, new(*forge.Error)) {
			refused = cmp.Or(refused, err)
			continue
		} else if err != nil {
			return err
		}
		a.say("answered the thread of %s with %s\n", t.ID, text.Head(commit, 10))
	}
	return refused
}

// watch works round after round. The limit counts all rounds of the session, also those of earlier commands.
func (a *addressing) watch() error {
	w := a.w
	for reported := false; ; {
		if err := a.watched(); errors.As(err, new(*forge.RateError)) {
			w.p.warnf("%s\n", err)
		} else if err != nil {
			return a.over(err)
		}
		if !reported && a.top != nil {
			reported = true
			w.p.warnf("watching %s (Ctrl-C stops)\n", a.top.Name())
		}
		if w.p.dryRun {
			return nil
		}
		select {
		case <-w.p.ctx.Done():
			return context.Canceled
		case <-time.After(w.Config.Duration("tilth.watchInterval")):
		}
	}
}

// watched works one round if the limit allows it. Otherwise it looks for open threads and checks.
func (a *addressing) watched() error {
	if known := a.s.Request(); known == nil || known.Round < a.rounds {
		return a.round()
	}
	if err := a.see(); err != nil {
		return err
	}
	items, err := a.newItems()
	if err == nil && len(items) > 0 {
		var open []string
		for _, i := range items {
			open = append(open, i.Kind+" "+i.Task("T-000").Title)
		}
		err = &exitError{code: exitNo, hint: a.again, msg: fmt.Sprintf("%s after %s: still open: %s", a.top.Line(),
			text.Plural(a.rounds, "round"), strings.Join(open, "; "))}
	}
	return err
}

// over returns the result of a watch: nil for a merged request, exit code 1 for open threads or checks.
func (a *addressing) over(err error) error {
	if a.top != nil && a.top.State == session.RequestMerged {
		a.say("%s is merged\nnext: git tilth cleanse %s\n", a.top.Name(), a.s.ID)
		return nil
	}
	if code, msg, hint := a.w.p.exitFor(err); code == exitCap && a.top != nil {
		return &exitError{code: exitNo, msg: cmp.Or(msg, "a cap ended the run") + "; " + a.top.Line(),
			hint: hint, err: err}
	}
	return err
}
