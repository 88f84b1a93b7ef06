package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/git-tilth/git-tilth/internal/forge"
	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/lifecycle"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
)

func (p *process) addressCommand() *cli.Command {
	return p.declare(traits{wish: "share", starts: true, hooked: true, ends: true}, &cli.Command{
		Name:      "address",
		Usage:     "work on a pull request's threads and failed checks",
		ArgsUsage: "[<session>]",
		Description: "Each unresolved thread of someone with write access, and each failed check, becomes a task " +
			"like any other. address pushes the commits once, at the end.",
		Flags: append([]cli.Flag{
			&cli.BoolFlag{Name: "reply", Usage: "answer each thread with its commit"},
			&cli.BoolFlag{Name: "watch", Usage: "wait for new threads and checks until it is merged or closed"},
			&cli.IntFlag{Name: "max-rounds", Value: 3, Usage: "stop watching after `N` rounds of the session"},
		}, runFlags()...),
		Action: p.onSessionToChange(func(ctx *cli.Context, w *repoContext, s *session.Session) error {
			if ctx.Int("max-rounds") < 1 {
				return refuse("git tilth address -h", "--max-rounds must be at least 1")
			}
			a := &addressing{w: w, s: s, verb: "address", reply: ctx.Bool("reply"), rounds: ctx.Int("max-rounds"),
				run: newRunRequest(ctx)}
			if a.run.verb = "resume"; a.reply {
				a.verb = "address --reply"
			}
			if ctx.Bool("watch") {
				return a.watch()
			}
			return a.round()
		}),
	})
}

// addressing is the work on a session's request.
//
// After a kill, the same command continues from the state on disk and at the forge: the tasks in prd.json, each with
// the id of its thread or check (source); their commits; the branch on the remote, compared with the session's; the
// answers, searched for in each thread before one is written.
type addressing struct {
	w      *repoContext
	s      *session.Session
	verb   string // of the command that continues
	reply  bool
	rounds int
	run    runRequest

	f              *forge.Forge
	request        *session.Request
	common, remote string
	seen           []looked // of the request, and before it of those below it in a stack
}

// looked is a request with its unresolved threads and failed checks.
type looked struct {
	*session.Request
	threads []forge.Thread
	checks  []forge.Check
}

// feedback is a thread or a check of a request before it is a task.
type feedback struct {
	forge.Item
	of *session.Request
}

func (a *addressing) again() string { return "git tilth " + a.verb + " " + a.s.ID }

// look reads the current state of the request, with its threads and checks.
func (a *addressing) look() error {
	w, ctx := a.w, a.w.p.ctx
	err := a.find()
	if err != nil {
		return err
	}
	if a.request == nil {
		return refuse("git tilth pr "+a.s.ID, "session %s has no pull request", a.s.ID)
	}
	a.seen = nil
	for _, r := range append(slices.Clone(a.request.Below), a.request) {
		one := looked{Request: r}
		if r.State == session.RequestOpen {
			one.threads, one.checks, err = a.f.Look(ctx, r)
		}
		if err != nil {
			return w.forgeError(err, a.again())
		}
		a.seen = append(a.seen, one)
	}
	a.request.Rounds = a.rounds
	return a.save()
}

// find reads the session's request, which is nil for none and open otherwise.
func (a *addressing) find() (err error) {
	w, ctx := a.w, a.w.p.ctx
	if a.common, err = commonOf(a.s); err != nil {
		return refuse("git tilth show "+a.s.ID, "%s", err)
	}
	remote, address, err := w.pushRemote(a.common)
	if err != nil {
		return fail("", err)
	}
	if remote == "" {
		return refuse("git remote add origin URL", "there is no remote, so there is no pull request")
	}
	a.remote = remote
	if a.f, err = w.forgeOf(a.common, address); err != nil {
		return w.forgeError(err, a.again())
	}
	if err = a.f.Enter(ctx, true); err != nil {
		return w.forgeError(err, a.again())
	}
	if known := a.s.Request(); known != nil {
		if a.request, err = a.f.Request(ctx, known.Number); err == nil {
			a.request.Task, a.request.Took = known.Task, known.Took
			a.request.Below, err = a.below(known.Below)
		}
	} else {
		a.request, err = a.f.Find(ctx, a.s.Branch())
	}
	switch {
	case err != nil:
		return w.forgeError(err, a.again())
	case a.request != nil && a.request.State != session.RequestOpen:
		return w.noteOver(a.s, a.request)
	}
	return nil
}

// below reads the requests below the highest one of a stack.
func (a *addressing) below(known []*session.Request) (now []*session.Request, err error) {
	for _, r := range known {
		one, err := a.f.Request(a.w.p.ctx, r.Number)
		if err != nil {
			return nil, err
		}
		one.Task, one.Took = r.Task, r.Took
		now = append(now, one)
	}
	return now, nil
}

func (a *addressing) save() error {
	if a.w.p.dryRun {
		return nil
	}
	if err := a.s.SaveRequest(a.request, a.w.p.now()); err != nil {
		return fail(a.again(), err)
	}
	return nil
}

// round makes tasks of new threads and checks, runs them, pushes once and answers.
func (a *addressing) round() error {
	w := a.w
	if err := a.look(); err != nil {
		return err
	}
	if err := a.usersCommits(); err != nil {
		return err
	}
	for _, r := range a.seen {
		for _, c := range r.checks {
			if c.Rig != "" {
				w.p.printf("not caused by the change: check %s (%s)\n", text.OneLine(c.Name), c.Rig)
			}
		}
	}
	items, err := a.news()
	if err != nil {
		return err
	}
	if w.p.dryRun {
		for _, i := range items {
			w.p.printf("would work on %s: %s\n", i.Kind, i.Task("T-000").Title)
		}
		return nil
	}
	if len(items) > 0 {
		a.request.Round++
	}
	var result error
	for first := true; first || len(items) > 0 && result == nil; first = false {
		rest := slices.IndexFunc(items, func(i feedback) bool { return i.of != items[0].of })
		if rest < 0 {
			rest = len(items)
		}
		if rest > 0 {
			if err := cmp.Or(a.addTasks(items[:rest]), a.save()); err != nil {
				return err
			}
		}
		items = items[rest:]
		if open, err := a.openTasks(); err != nil {
			return err
		} else if open {
			result = w.proceed(a.s, a.run)
		}
	}
	if w.p.ctx.Err() != nil {
		return cmp.Or(result, context.Canceled)
	}
	if state, err := a.s.State(); err != nil || len(state.Steps) > 0 { // the branch lacks commits that the forge has
		return cmp.Or(result, err)
	}
	if err := a.push(); err != nil {
		return err
	}
	if a.reply {
		if err := a.answer(); err != nil {
			return err
		}
	}
	w.p.printf("%s\n", a.request.Line())
	return result
}

// usersCommits refuses commits of others on the branch, here or on the forge.
func (a *addressing) usersCommits() error {
	w, hint := a.w, "git tilth update "+a.s.ID
	tip, there, err := w.Git.BranchTip(w.p.ctx, a.common, a.s.Branch())
	if err != nil {
		return fail("", err)
	}
	if !there {
		return refuse("git tilth review "+a.s.ID, "branch %s is deleted", a.s.Branch())
	}
	if a.request.Head != tip {
		if _, err := w.Git.Line(w.p.ctx, gitx.InRepo(a.common, "merge-base", "--is-ancestor", a.request.Head,
			tip)); err != nil {
			return refuse(hint, "%s has commits that session %s does not have", a.request.Name(), a.s.ID)
		}
	}
	state, err := a.s.State()
	if err != nil {
		return fail("", err)
	}
	if len(state.Steps) > 0 {
		return refuse(hint, "session %s is not yet on its new base", a.s.ID)
	}
	since := state.Seed.SHA
	if known := a.s.Request(); known != nil && known.Took != "" {
		since = known.Took
	}
	commits, _, err := held.CommitsSince(w.p.ctx, w.Git, a.common, tip, since)
	if err != nil {
		return fail("", err)
	}
	for _, c := range commits {
		if held.SignatureOf(c).Session == "" {
			return refuse(hint, "%s has a commit of yours: %s (%s)", a.s.Branch(), text.Head(c.SHA, 10),
				text.Clip(text.OneLine(c.Subject), 60))
		}
	}
	return nil
}

// news returns the threads and checks without a task. A thread with a comment after this program's answer is new.
func (a *addressing) news() (items []feedback, err error) {
	tasks, err := a.s.Tasks()
	if err != nil {
		return nil, fail("git tilth show "+a.s.ID, err)
	}
	made := func(source string) bool {
		return slices.ContainsFunc(tasks, func(t session.Task) bool { return strings.HasPrefix(t.Source, source) })
	}
	for _, r := range a.seen {
		for _, t := range r.threads {
			if made(fmt.Sprintf("thread %s comment %s ", t.ID, t.Last())) {
				continue
			}
			after := a.f.Replied(t)
			if made("thread "+t.ID+" ") && (after < 0 || t.LastAfter(after) == "") {
				continue
			}
			items = append(items, feedback{t.Item(r.Head), r.Request})
		}
		for _, c := range r.checks {
			if c.Rig == "" && !made("check "+c.ID+" ") {
				items = append(items, feedback{c.Item(r.Head), r.Request})
			}
		}
	}
	return items, nil
}

// addTasks adds a task for each item. In a stack, the tasks are committed on the item's own request, and the commits
// above it are repeated.
func (a *addressing) addTasks(items []feedback) error {
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
		return fail("", err)
	}
	number := 0
	for _, t := range tasks {
		n := 0
		if _, err := fmt.Sscanf(t.ID, "T-%d", &n); err == nil {
			number = max(number, n)
		}
	}
	var added []session.Task
	var ids []string
	for _, i := range items {
		number++
		t := i.Task(fmt.Sprintf("T-%03d", number))
		added, ids = append(added, t), append(ids, t.ID)
		a.w.p.printf("%s\n", shownForeign(t))
	}
	if items[0].of != a.request {
		if err := a.restack(h, items[0].of.Task, ids); err != nil {
			return err
		}
	}
	if tasks, err = a.s.Tasks(); err == nil {
		err = lifecycle.Replan(a.w.p.ctx, h, append(tasks, added...))
	}
	if err != nil {
		return fail(a.again(), err)
	}
	return nil
}

// restack moves the branch back to the commits of a task's request in the stack, with the tasks to do there.
func (a *addressing) restack(h *held.Handle, task string, added []string) error {
	parts, err := a.w.partsOf(a.s, a.common)
	if err != nil {
		return fail("", err)
	}
	i := slices.IndexFunc(parts, func(p part) bool { return p.task == task })
	if i < 0 || i == len(parts)-1 {
		return nil
	}
	plan, err := lifecycle.PlanOnto(a.w.p.ctx, h, lifecycle.Onto{After: parts[i].tip, First: added})
	if err == nil {
		err = plan.Execute(a.w.p.ctx, h)
	}
	return err
}

func (a *addressing) openTasks() (bool, error) {
	tasks, err := a.s.Tasks()
	if err != nil {
		return false, fail("", err)
	}
	return slices.ContainsFunc(tasks, func(t session.Task) bool {
		return t.Status != session.TaskDone && t.Status != session.TaskSkipped
	}), nil
}

// push pushes the branch if the forge does not have its tip.
func (a *addressing) push(flags ...string) error {
	w := a.w
	if a.request.Below != nil {
		top, err := w.publish(publishing{a.s, a.f, a.common, a.remote, a.request.Root(), false, a.again()})
		if err != nil || top == nil {
			return err
		}
		top.Round, top.Rounds, a.request = a.request.Round, a.request.Rounds, top
		return a.save()
	}
	tip, there, err := w.Git.BranchTip(w.p.ctx, a.common, a.s.Branch())
	if err != nil || !there || tip == a.request.Head {
		return err
	}
	dir := held.SourceNow(a.s.Overview().Source, a.common)
	if err := w.pushBranch(a.s, a.common, a.remote, dir, flags...); err != nil {
		if failed := new(exitError); errors.As(err, &failed) {
			failed.hint = a.again()
		}
		return err
	}
	a.request.Head, a.request.Took, a.request.Failed = tip, tip, 0
	if body, err := w.requestText(a.s); err != nil {
		return fail("", err)
	} else if err := a.f.Set(w.p.ctx, a.request.Number, map[string]string{"body": body}); err != nil {
		return w.forgeError(err, a.again())
	}
	return a.save()
}
