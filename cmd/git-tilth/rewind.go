package main

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/lifecycle"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
)

func (p *process) rewindCommand() *cli.Command {
	return p.declare(traits{wish: "go back", starts: true, hooked: true}, &cli.Command{
		Name:      "rewind",
		Usage:     "return a session to the state before a task",
		ArgsUsage: "<point> [<session>]",
		Description: "<point> is seed or a task; a task stands for the state before its first attempt (git tilth " +
			"show lists the points). Branch and worktree return to that state, and that task and all later tasks " +
			"become pending. Changed and untracked files are saved for git tilth undo; ignored files stay. git tilth " +
			"undo restores everything. The record stays, and spent tokens stay counted.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "message", Aliases: []string{"m"},
				Usage: "a note for the worker and reviewer of that task"},
			&cli.BoolFlag{Name: "yes", Aliases: []string{"y"}, Usage: "do not ask"},
		},
		Action: p.onHeld(func(ctx *cli.Context, w *repoContext, h *held.Handle) error {
			point := tasksIn(h.S, ctx.Args().Slice())[0]
			plan, err := lifecycle.PlanRewind(p.ctx, h, point, strings.TrimSpace(ctx.String("message")))
			if err != nil {
				return err
			}
			return w.goBack(h, plan, ctx.Bool("yes"))
		}),
	})
}

func (p *process) undoCommand() *cli.Command {
	return p.declare(traits{wish: "go back", rare: true, starts: true, hooked: true}, &cli.Command{
		Name:      "undo",
		Usage:     "take back the last rewind or undo",
		ArgsUsage: "[<session>]",
		Description: "Restores branch, index, files, statuses, ledgers and conversations. Work done since then " +
			"is kept for the next undo.",
		Flags: []cli.Flag{&cli.BoolFlag{Name: "yes", Aliases: []string{"y"}, Usage: "do not ask"}},
		Action: p.onHeld(func(ctx *cli.Context, w *repoContext, h *held.Handle) error {
			plan, err := lifecycle.PlanUndo(p.ctx, h)
			if err != nil {
				return err
			}
			return w.goBack(h, plan, ctx.Bool("yes"))
		}),
	})
}

// goBack is `git tilth rewind` and `git tilth undo`.
func (w *repoContext) goBack(h *held.Handle, plan lifecycle.GoBack, yes bool) error {
	s := h.S
	if plan.Over {
		w.p.printf("nothing to do: the last %s of session %s already did this\n"+
			"next: git tilth undo %[2]s takes it back\n", plan.What, s.ID)
		return nil
	}
	w.p.printf("session   %s\nplan      %s\n", s.ID, plan.What)
	if !plan.Begun {
		w.p.printf("branch    %.10s becomes %.10s\nto do     %s\n", plan.From, plan.SHA,
			cmp.Or(strings.Join(plan.Pending, ", "), "nothing"))
	}
	question := "Later work is kept for git tilth undo. Continue?"
	if err := w.p.confirm(yes || plan.Begun, question, "nothing was changed"); err != nil {
		return err
	}
	if err := plan.Execute(w.p.ctx, h); err != nil {
		return fail("git tilth resume "+s.ID, err)
	}
	if w.p.dryRun {
		return nil
	}
	if plan.IsRewind() {
		if wt, err := h.Worktree(w.p.ctx); err == nil {
			w.sayUntracked(h, wt)
		}
	}
	next := "git tilth resume " + s.ID + ", or "
	if then, err := lifecycle.PlanOf(w.p.ctx, h); err == nil && then.Action == lifecycle.Nothing {
		next = ""
	}
	w.p.printf("Done: %s.\nnext: %sgit tilth undo %s\n", plan.What, next, s.ID)
	return nil
}

// sayUntracked names files that a rewind left and that are no longer ignored, because the undone work had added the
// ignore rule. They become part of the next change.
func (w *repoContext) sayUntracked(h *held.Handle, wt gitx.Worktree) {
	files, err := h.Untracked(w.p.ctx, wt, false)
	if err != nil || len(files) == 0 {
		return
	}
	names := text.VisibleLine(strings.Join(files[:min(len(files), 10)], ", "))
	if n := len(files) - 10; n > 0 {
		names += fmt.Sprintf(" and %d more", n)
	}
	w.p.printf("no longer ignored, and therefore part of the next task: %s\n"+
		"move files that should not be committed out of %s\n", names, wt.Path)
}

func (p *process) forkCommand() *cli.Command {
	return p.declare(traits{wish: "go back", rare: true, starts: true}, &cli.Command{
		Name:      "fork",
		Usage:     "make a new session from a point of another one",
		ArgsUsage: "[<session>]",
		Description: "The new session has its own branch, worktree and record. It keeps the commits of the tasks " +
			"before the point. fork does not change the other session, which may be running. " +
			"It prints the id of the new session.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "at", Value: lifecycle.PointSeed,
				Usage: "the `POINT` to start from: seed, or a task"},
			&cli.StringFlag{Name: "label", Usage: "name the session `TEXT` in lists"},
		},
		Action: p.onSession(func(ctx *cli.Context, w *repoContext, s *session.Session) error {
			made, err := lifecycle.Fork{
				Store: w.Store, From: s, At: tasksIn(s, []string{ctx.String("at")})[0], Label: ctx.String("label"),
				Start: w.prepStart(),
			}.Fork(p.ctx, w.Deps(nil))
			if err == nil {
				p.printf("%s\n", made.ID)
				p.warnf("next: %s\n", w.report(made).Next)
			}
			return err
		}),
	})
}
