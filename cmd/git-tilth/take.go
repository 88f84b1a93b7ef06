package main

import (
	"errors"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/take"
	"github.com/git-tilth/git-tilth/internal/text"
)

func (p *process) takeCommand() *cli.Command {
	return p.declare(traits{wish: "review"}, &cli.Command{
		Name:      "take",
		Usage:     "bring finished tasks into your branch",
		ArgsUsage: "[<task>...] [<session>]",
		Description: "Takes the whole session, or the given tasks with their acceptance tests. If there is a " +
			"conflict or a hook fails, take changes nothing. take refuses uncommitted changes only if " +
			"git merge would refuse them. take lists work that the branch has reverted, and does not take it " +
			"again. If the branch no longer has the session's base (amended, rebased), the default is --pick.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "onto", Usage: "take into `BRANCH` instead of the current branch"},
			&cli.BoolFlag{Name: "pick", Usage: "cherry-pick each task's commit (default with <task>)"},
			&cli.BoolFlag{Name: "squash", Usage: "make one commit"},
			&cli.BoolFlag{Name: "merge", Usage: "merge, by fast-forward if possible (default for a whole session)"},
		},
		Action: p.onSessionToChange(func(ctx *cli.Context, w *repoContext, s *session.Session) error {
			r := take.Request{Onto: ctx.String("onto"), Here: w.Loc, Tasks: w.tasks}
			for _, how := range []string{take.Pick, take.Squash, take.Merge} {
				if ctx.Bool(how) && r.How != "" {
					return refuse("git tilth take -h", "--%s and --%s cannot be combined", r.How, how)
				}
				if ctx.Bool(how) {
					r.How = how
				}
			}
			return w.take(s, r)
		}),
	})
}

// take is `git tilth take`. It makes all refusals before one git command moves the branch.
func (w *repoContext) take(s *session.Session, r take.Request) error {
	plan, err := take.Take(w.p.ctx, w.Deps(nil), s, r)
	if errors.Is(err, take.ErrTaking) {
		return &exitError{code: exitBusy, msg: err.Error(), hint: "git tilth take " + s.ID, err: err}
	}
	if err != nil {
		return err
	}
	n := plan.Note
	took := "took"
	if w.p.dryRun {
		took = "would take"
	}
	name := func(o session.Overview) string { return strings.TrimSpace(o.ID + "  " + text.OneLine(o.Label)) }
	all, _ := w.overviews(false) // needed only for the names of other sessions
	for _, o := range all {
		if o.ID == s.ID {
			w.p.printf("session %s\n", name(o))
		}
	}
	if len(plan.Already) > 0 {
		w.p.printf("already on %s: %s\n", n.Onto, strings.Join(plan.Already, ", "))
	}
	if plan.Gone != "" {
		w.p.printf("cherry-pick, not merge: base %s is no longer in %s\n", text.Head(plan.Gone, 10), n.Onto)
	}
	if len(plan.Tasks) > 0 {
		w.p.printf("%s %s into %s (%s): %s..%s\n", took, strings.Join(plan.Tasks, ", "), n.Onto, n.How,
			text.Head(n.From, 10), text.Head(n.To, 10))
	}
	if len(plan.Left) > 0 {
		w.p.printf("not taken: %s\n", strings.Join(plan.Left, ", "))
	}
	if plan.Above > 0 && len(r.Tasks) == 0 && n.How != take.Pick {
		w.p.printf("not taken: %s after the last task on %s\n", text.Plural(plan.Above, "commit"), s.Branch())
	}
	for _, o := range all {
		if o.ID != s.ID && o.Finished() && !o.Taken && !o.Cleansed && o.Busy == nil {
			w.p.printf("not taken yet: session %s\n", name(o))
		}
	}
	return nil
}
