package main

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/lifecycle"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
)

func (p *process) resetCommand() *cli.Command {
	return p.declare(traits{wish: "go back", rare: true, starts: true, hooked: true}, &cli.Command{
		Name:      "reset",
		Usage:     "delete a session, or rewind it to its seed",
		ArgsUsage: "[<session>]",
		Description: "Deletes the worktree, branch and session directory. --to-seed deletes the run with its " +
			"commits and record and keeps the seed, so that you can try another prompt, model or setting.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "to-seed", Usage: "delete the run and keep the seed"},
			&cli.BoolFlag{Name: "yes", Aliases: []string{"y"}, Usage: "do not ask"},
		},
		Action: p.onSessionToChange(func(ctx *cli.Context, w *repoContext, s *session.Session) error {
			if ctx.Bool("to-seed") {
				return w.rewind(s, ctx.Bool("yes"))
			}
			return w.tearDown(s, ctx.Bool("yes"), func() error { return nil })
		}),
	})
}

// tearDown is `git tilth reset`. It calls check under the session's lock; an error of check refuses the reset.
func (w *repoContext) tearDown(s *session.Session, yes bool, check func() error) error {
	unlock, err := held.Lock(w.Deps(nil), s)
	if err != nil {
		return err
	}
	defer unlock()
	if err := check(); err != nil {
		return err
	}
	plan, err := lifecycle.PlanTeardown(w.p.ctx, w.Git, s, w.Loc.CommonDir, w.p.sayRemoved)
	if err = cmp.Or(w.p.ctx.Err(), err); err != nil {
		return err // a signal interrupted the reading of the plan; nothing is removed yet
	}
	w.describeTeardown(plan)
	if err := w.p.confirm(yes, "Remove all of this?", "nothing was removed"); err != nil {
		return err
	}
	if err := plan.Execute(w.p.ctx); err != nil {
		return err
	}
	switch {
	case w.p.dryRun:
		w.p.printf("would remove: %s\n", s.Dir)
	case plan.Original != "":
		w.p.printf("The copy of session %s is deleted; the session is in %s.\n", s.ID, plan.Original)
	default:
		w.p.printf("Session %s is gone.\n", s.ID)
	}
	return nil
}

// takeBack silently removes a session that this command created.
func (w *repoContext) takeBack(s *session.Session) error {
	unlock, err := held.Lock(w.Deps(nil), s)
	if err != nil {
		return err
	}
	defer unlock()
	plan, err := lifecycle.PlanTeardown(w.p.ctx, w.Git, s, w.Loc.CommonDir, func(string, string) {})
	if err != nil {
		return err
	}
	return plan.Execute(w.p.ctx)
}

// sayRemoved prints one step of a removal.
func (p *process) sayRemoved(step, skipped string) {
	switch {
	case p.dryRun:
	case skipped != "":
		p.printf("skipped  %s: %s\n", step, skipped)
	default:
		p.printf("removed  %s\n", step)
	}
}

func (w *repoContext) describeTeardown(r lifecycle.Teardown) {
	var lost []string
	if r.Commits > 0 {
		lost = append(lost, text.Plural(r.Commits, "commit"))
	}
	if r.Dirty != "" {
		lost = append(lost, "uncommitted changes")
	}
	if r.Tip != "" && len(lost) == 0 && r.Original == "" && !r.Held {
		lost = append(lost, "the seed")
	}
	work, _ := os.ReadDir(r.S.Path(session.AsideDir))
	for _, task := range work {
		lost = append(lost, "the stashed work of "+task.Name())
	}
	for _, dir := range r.Aside {
		lost = append(lost, "files moved to "+filepath.Base(dir))
	}
	record := "the record"
	if r.Held {
		record += " (its commits are on another branch)"
	}
	lost = append(lost, record)
	if r.Original != "" {
		lost = []string{"this copy of the record and of the worktree's files"}
	}
	worktree := r.Worktree
	if !r.OnDisk {
		worktree += " (gone)"
	}
	branch := r.Branch
	switch {
	case r.Original != "":
		branch += " (kept: it belongs to the session in " + r.Original + "; this is a copy)"
	case r.Tip == "":
		branch += " (gone)"
	}
	status := r.Status
	if o := r.S.Overview(); o.Status == status { // the overview is readable
		o.Busy, o.Resetting = nil, false // the holder is this process
		status = w.withElsewhere([]session.Overview{o})[0].State()
	}
	w.p.printf("session   %s\nsource    %s\nworktree  %s\nbranch    %s\nstatus    %s\nwill be lost: %s\n",
		r.S.ID, cmp.Or(r.Source, "unknown"), worktree, branch, status, strings.Join(lost, ", "))
}

// rewind is `git tilth reset --to-seed`.
func (w *repoContext) rewind(s *session.Session, yes bool) error {
	h, err := w.hold(s, nil)
	var refused *held.RefusedError
	if errors.As(err, &refused) {
		return refuse(refused.Hint+" && git tilth prep-feature", "%s", refused.Why)
	}
	if err != nil {
		return err
	}
	defer h.Close()
	plan, err := lifecycle.PlanToSeed(w.p.ctx, h)
	if err != nil {
		return err
	}
	if !plan.Begun {
		w.p.printf("session   %s\nworktree  %s\nseed      %s\n", s.ID, plan.Worktree.Path, plan.SHA)
	}
	if plan.Begun && w.p.dryRun {
		w.p.printf("would %s of session %s\n", plan.What, s.ID)
	}
	question := "This deletes the run's commits, record and token count for good. Rewind to the seed?"
	if err := w.p.confirm(yes || plan.Begun, question, "nothing was changed"); err != nil {
		return err
	}
	if err := plan.Execute(w.p.ctx, h); err != nil {
		return fail("git tilth reset --to-seed -y "+s.ID, err)
	}
	if w.p.dryRun {
		if !plan.Begun {
			w.p.printf("would cut: %s by %d bytes\n", h.S.Path(session.RecordFile), plan.RunBytes)
		}
		return nil
	}
	if plan.Kept() { // only then there is something to report; checking walks the whole worktree
		w.sayUntracked(h, plan.Worktree)
	}
	done := "Session %s is back at its seed.\nnext: git tilth run\n"
	if plan.Begun {
		done = "The rewind of session %s is finished.\nnext: git tilth run\n"
	}
	w.p.printf(done, s.ID)
	return nil
}
