package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/git-tilth/git-tilth/internal/forge"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
)

// answer answers each thread of a finished task with its commit, once. It reads the threads again, because they may
// have got an answer meanwhile, for example from a killed command.
func (a *addressing) answer() error {
	for _, r := range append(slices.Clone(a.request.Below), a.request) {
		if r.State != session.RequestOpen {
			continue
		}
		threads, err := a.f.Threads(a.w.p.ctx, r.Number)
		if err != nil {
			return a.w.forgeError(err, a.again())
		}
		if err := a.answerIn(r, threads); err != nil {
			return err
		}
	}
	return nil
}

func (a *addressing) answerIn(r *session.Request, threads []forge.Thread) error {
	w := a.w
	tasks, err := a.s.Tasks()
	if err != nil {
		return fail("", err)
	}
	state, err := a.s.State()
	if err != nil {
		return fail("", err)
	}
	for _, t := range threads {
		var last session.Task
		for _, task := range tasks {
			if strings.HasPrefix(task.Source, "thread "+t.ID+" ") {
				last = task
			}
		}
		commit := state.Tasks[last.ID].Commit
		if last.Status != session.TaskDone || commit == "" || a.f.Answered(t, last.Source) {
			continue
		}
		if err := a.f.Reply(w.p.ctx, r.Number, t, commit); err != nil {
			return w.forgeError(err, a.again())
		}
		w.p.printf("answered the thread of %s with %s\n", last.ID, text.Head(commit, 10))
	}
	return nil
}

// watch works round after round. The rounds of the session count, those of earlier commands too.
func (a *addressing) watch() error {
	w := a.w
	for told := false; ; {
		if err := a.watched(); errors.As(err, new(*forge.RateError)) {
			w.p.warnf("%s\n", err)
		} else if err != nil {
			return a.over(err)
		}
		if !told && a.request != nil {
			told = true
			w.p.warnf("watching %s (Ctrl-C stops)\n", a.request.Name())
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

// watched works a round, if one is left, else looks for open threads and checks.
func (a *addressing) watched() error {
	if known := a.s.Request(); known == nil || known.Round < a.rounds {
		return a.round()
	}
	if err := a.look(); err != nil {
		return err
	}
	items, err := a.news()
	if err == nil && len(items) > 0 {
		err = &exitError{code: exitNo, hint: a.again(), msg: fmt.Sprintf("%s after %s: %s", a.request.Line(),
			text.Plural(a.rounds, "round"), openItems(items))}
	}
	return err
}

// over returns the error at the end of a watch: nil for a merged request, exit code 1 for open threads or checks.
func (a *addressing) over(err error) error {
	if a.request != nil && a.request.State == session.RequestMerged {
		a.w.p.printf("%s is merged\nnext: git tilth cleanse %s\n", a.request.Name(), a.s.ID)
		return nil
	}
	if code, msg, hint := a.w.p.exitFor(err); code == exitCap && a.request != nil {
		return &exitError{code: exitNo, msg: cmp.Or(msg, "a cap ended the run") + "; " + a.request.Line(),
			hint: hint, err: err}
	}
	return err
}

func openItems(items []feedback) string {
	var open []string
	for _, i := range items {
		open = append(open, i.Kind+" "+i.Task("T-000").Title)
	}
	return "still open: " + strings.Join(open, "; ")
}
