package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/git-tilth/git-tilth/internal/forge"
	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/lifecycle"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
)

func (p *process) addressCommand() *cli.Command {
	return p.declare(traits{wish: "share", starts: true, hooked: true, ends: true}, &cli.Command{
		Name:      "address",
		Usage:     "work on a pull request's threads and failed checks",
		ArgsUsage: "[<session>]",
		Description: "Adds a task for each failed check, and for each unresolved thread with a comment of " +
			"someone with write access. Runs the tasks, and pushes the commits once, at the end.",
		Flags: append([]cli.Flag{
			&cli.BoolFlag{Name: "reply", Usage: "answer each thread with its commit"},
			&cli.BoolFlag{Name: "watch",
				Usage: "wait for new threads and checks until the pull request is merged or closed"},
			&cli.IntFlag{Name: "max-rounds", Value: 3,
				Usage: "stop after `N` rounds, including those of earlier commands"},
		}, runFlags()...),
		Action: p.onSessionToChange(func(ctx *cli.Context, w *repoContext, s *session.Session) error {
			if ctx.Int("max-rounds") < 1 {
				return refuse("git tilth address -h", "--max-rounds must be at least 1")
			}
			a := &addressing{proposal: &proposal{w: w, s: s, again: "git tilth address " + s.ID},
				reply: ctx.Bool("reply"), rounds: ctx.Int("max-rounds"), run: newRunRequest(ctx)}
			if a.run.verb = "resume"; a.reply {
				a.again = "git tilth address --reply " + s.ID
			}
			work := a.round
			if ctx.Bool("watch") {
				work = a.watch
			}
			return w.forgeError(work(), a.again)
		}),
	})
}

// addressing works on a session's request.
//
// After a kill, the same command continues. It reads the state from the disk and the forge: the tasks in prd.json,
// each with the id of its thread or check (source); their commits; the branch on the remote; and the answers in the
// threads.
type addressing struct {
	*proposal
	reply  bool
	rounds int // --max-rounds
	run    runRequest
}

// say prints a line for people: with --json, standard output has only events.
func (a *addressing) say(format string, args ...any) {
	fmt.Fprint(a.w.p.humanOut(a.run.json), text.Visible(fmt.Sprintf(format, args...)))
}

// see reads the current state of the session's requests, with their threads and checks.
func (a *addressing) see() error {
	err := a.read()
	switch {
	case err != nil:
		return err
	case a.missing != nil:
		return a.missing
	case a.top == nil:
		return refuse("git tilth pr "+a.s.ID, "session %s has no pull request", a.s.ID)
	case a.rounds > 0:
		a.top.Rounds = a.rounds
	}
	return a.look()
}

// round makes tasks of new threads and checks, runs them, pushes once and answers.
func (a *addressing) round() error {
	w := a.w
	if err := a.see(); err != nil {
		return err
	}
	if err := a.usersCommits(); err != nil {
		return err
	}
	for _, c := range a.items {
		if c.Rig != "" {
			a.say("not caused by the change: check %s (%s)\n", text.OneLine(c.Name), c.Rig)
		}
	}
	items, err := a.newItems()
	if err != nil {
		return err
	}
	if w.p.dryRun {
		for _, i := range items {
			a.say("would work on %s: %s\n", i.Kind, i.Task("T-000").Title)
		}
		return nil
	}
	if len(items) > 0 {
		if err := a.addTasks(items); err != nil {
			return err
		}
		a.top.Round++
		if err := a.save(); err != nil {
			return err
		}
	}
	result := a.work()
	if w.p.ctx.Err() != nil {
		return cmp.Or(result, context.Canceled)
	}
	if state, err := a.s.State(); err != nil || len(state.Steps) > 0 { // the branch lacks commits that the forge has
		return cmp.Or(result, err)
	}
	if err := a.publish(a.isStack(), a.top.Root()); err != nil {
		return err
	}
	if a.reply {
		if err := a.answer(); err != nil {
			return err
		}
	}
	a.say("%s\n", a.top.Line())
	return result
}

// usersCommits refuses commits of others on the branch, here or on the forge. It first finishes the restack of a killed
// address.
func (a *addressing) usersCommits() error {
	w, hint := a.w, "git tilth update "+a.s.ID
	state, err := a.s.State()
	if err != nil {
		return err
	}
	if !a.isStack() {
		err = a.updated()
	} else if len(state.Steps) > 0 {
		err = w.proceed(a.s, a.run)
	}
	if err != nil || w.p.dryRun && len(state.Steps) > 0 {
		return err
	}
	parts, err := a.parts(a.isStack())
	if err != nil {
		return err
	}
	tip, since := parts[len(parts)-1].tip, a.top.Took
	for _, of := range open(parts) {
		r := of.request
		switch {
		case r == nil || r.Head == r.Took && a.isStack():
		case !a.has(tip, r.Head):
			return refuse(hint, "%s has commits that session %s does not have", r.Name(), a.s.ID)
		case r.Took != "" && a.has(tip, r.Took) && !a.has(r.Head, r.Took):
			return refuse("git tilth pr "+a.s.ID, "someone removed commits of session %s from %s; pr pushes them again",
				a.s.ID, r.Name())
		}
	}
	if since == "" || !a.has(tip, since) { // the commits were rewritten
		since = state.Seed.SHA
	}
	commits, _, err := held.CommitsSince(w.p.ctx, w.Git, a.common, tip, since)
	for _, c := range commits {
		if held.SignatureOf(c).Session == "" {
			return refuse(hint, "%s has a commit of yours: %s (%s)", a.s.Branch(), text.Head(c.SHA, 10),
				text.Clip(text.OneLine(c.Subject), 60))
		}
	}
	return err
}

// newItems returns the threads and checks without a task.
func (a *addressing) newItems() (items []forge.Item, err error) {
	tasks, err := a.s.Tasks()
	return slices.DeleteFunc(slices.Clone(a.items), func(i forge.Item) bool { return !i.IsNew(tasks) }), err
}

// addTasks adds a task for each item.
func (a *addressing) addTasks(items []forge.Item) error {
	h, err := a.w.hold(a.s, nil)
	if err != nil {
		return err
	}
	defer h.Close()
	if _, err := a.w.betweenRuns(h); err != nil {
		return err
	}
	tasks, err := a.s.Tasks()
	if err != nil {
		return err
	}
	number := 0
	for _, t := range tasks {
		var n int
		_, _ = fmt.Sscanf(t.ID, "T-%d", &n)
		number = max(number, n)
	}
	for _, i := range items {
		number++
		t := i.Task(fmt.Sprintf("T-%03d", number))
		tasks = append(tasks, t)
		a.say("%s\n", shownForeign(t))
	}
	return lifecycle.Replan(a.w.p.ctx, h, tasks)
}

// work runs the pending tasks. In a stack, a task starts after the commits of its request.
func (a *addressing) work() error {
	tasks, err := a.unfinished()
	if err != nil || len(tasks) == 0 {
		return err
	}
	if a.isStack() {
		if err := a.restack(tasks); err != nil {
			return err
		}
	}
	return a.w.proceed(a.s, a.run)
}

// restack moves the branch back to the commits of the lowest request with tasks to do.
func (a *addressing) restack(tasks []session.Task) error {
	parts, err := a.parts(true)
	if err != nil {
		return err
	}
	to := lifecycle.Onto{Insert: map[string][]record.Step{}}
	for _, part := range parts[:len(parts)-1] {
		r := part.request
		for _, t := range tasks {
			if r != nil && strings.HasSuffix(t.Source, " commit "+r.Head) {
				to.Insert[part.tip] = append(to.Insert[part.tip], record.Step{Task: t.ID})
			}
		}
	}
	if len(to.Insert) == 0 {
		return nil
	}
	h, err := a.w.hold(a.s, nil)
	if err != nil {
		return err
	}
	defer h.Close()
	plan, err := lifecycle.PlanOnto(a.w.p.ctx, h, to)
	if err == nil {
		err = plan.Execute(a.w.p.ctx, h)
	}
	return err
}
