package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/git-tilth/git-tilth/internal/lifecycle"
	"github.com/git-tilth/git-tilth/internal/loop"
	"github.com/git-tilth/git-tilth/internal/session"
)

func (p *process) resumeCommand() *cli.Command {
	return &cli.Command{
		Name:      "resume",
		Usage:     "go on with a session exactly where it stopped",
		ArgsUsage: "[<session>]",
		Description: "Wakes a session after any stop, cap, Ctrl-C, crash or reboot: failed tasks go back to pending, their partial work\n" +
			"returns to the index, and the loop goes on. -n shows what it would do.",
		Flags: append([]cli.Flag{
			&cli.BoolFlag{Name: "fresh", Usage: "begin a new conversation, with the ledger and the working tree as context"},
			&cli.BoolFlag{Name: "continue", Usage: "go on with the earlier conversation"},
		}, runFlags()...),
		Action: func(ctx *cli.Context) error {
			w, err := p.enter("", givenSettings(ctx))
			if err != nil {
				return err
			}
			r := newRunRequest(ctx)
			if r.fresh && r.cont {
				return refuse("git tilth resume -h", "--fresh and --continue exclude each other")
			}
			s, err := w.sessionToChange(ctx.Args().First())
			if err != nil {
				return err
			}
			return w.resume(s, r)
		},
	}
}

// resume is `git tilth resume`: hold, decide, wake, work.
func (w *world) resume(s *session.Session, r runRequest) error {
	if w.p.dryRun {
		return w.planResume(s, r.json)
	}
	show := w.newProgress(s, loop.Options{}, r.json)
	h, err := w.hold(s, show.event)
	if err != nil {
		return err
	}
	closed := false
	defer func() {
		if !closed {
			h.Close()
		}
	}()
	plan, _, err := h.Inspect(w.p.ctx)
	if err != nil {
		return fail("", err)
	}
	if plan.Action == lifecycle.Refuse {
		return refuse(plan.Hint, "session %s: %s", s.ID, plan.Why)
	}
	var o loop.Options
	if plan.NeedsWorker() {
		// Who works is settled before anything is changed.
		if o, err = w.options(r.runSettings); err != nil {
			return err
		}
		h.Redact = w.redact
		show.options(o)
	}
	if r.detach && plan.Action == lifecycle.Continue {
		h.Close()
		closed = true
		return w.detach(s, "resume", append(r.childFlags(), s.ID))
	}
	h.Tell = show.tell
	if plan, err = h.Wake(w.p.ctx, plan, w.setup(h)); err != nil {
		return w.p.wakeError(err, s.ID)
	}
	show.start(fmt.Sprintf("session %s: %s", s.ID, plan))
	if plan.Action == lifecycle.Nothing {
		return h.S.WriteSummary()
	}
	if plan.Fresh {
		start := w.startOf(o)
		start.TaskCount = plan.Total
		if err := h.NoteStart(start); err != nil {
			return fail("", err)
		}
	}
	o.TakeUp(plan)
	return w.work(h, o, show, r)
}

// planResume prints what a resume would do, and changes nothing.
func (w *world) planResume(s *session.Session, asJSON bool) error {
	if holder, busy := s.Holder(); busy {
		return holder
	}
	check, err := s.Checkpoint()
	if err != nil {
		return refuse("git tilth reset "+s.ID, "session %s is damaged: %s", s.ID, err)
	}
	st, err := lifecycle.Look(w.p.ctx, w.git, s, check)
	if err != nil {
		return fail("", err)
	}
	plan := lifecycle.Decide(st)
	if plan.Action == lifecycle.Refuse {
		return refuse(plan.Hint, "session %s: %s", s.ID, plan.Why)
	}
	printPlan(w.p.prose(asJSON), s, check, plan)
	return nil
}

// printPlan prints what would be done with a session, and the git commands of it.
func printPlan(out io.Writer, s *session.Session, check *session.Checkpoint, plan lifecycle.Plan) {
	fmt.Fprintf(out, "session %s: %s\n", s.ID, strings.Join(lifecycle.Outline(plan), "\n  "))
	for _, cmd := range lifecycle.Commands(s, check, plan) {
		fmt.Fprintf(out, "  would run: %s\n", cmd)
	}
}
