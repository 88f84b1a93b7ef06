package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/git-tilth/git-tilth/internal/config"
	"github.com/git-tilth/git-tilth/internal/equip"
	"github.com/git-tilth/git-tilth/internal/lifecycle"
	"github.com/git-tilth/git-tilth/internal/loop"
	"github.com/git-tilth/git-tilth/internal/text"
)

// tryFirst runs the preflight in a draft of the session, before the session exists. The draft is kept in n and becomes
// the session.
func (w *repoContext) tryFirst(n *lifecycle.New, r prepRequest) error {
	draft, err := lifecycle.Draft(w.p.ctx, w.Deps(nil), *n)
	if err != nil {
		return fail("", fmt.Errorf("the session could not be created: %w", err))
	}
	draft.Tell = w.Tell
	err = r.check(draft, loop.Ahead{Base: r.baseSHA, Tasks: r.imported.Tasks, Tests: r.imported.TestFiles})
	if err != nil {
		return errors.Join(err, lifecycle.Discard(draft))
	}
	n.Draft = draft
	return nil
}

// trySignature refuses a preparation if the seed cannot be signed. The preflight of a run has its own check.
func (w *repoContext) trySignature(r *prepRequest) error {
	if r.check != nil || r.noPreflight || w.p.dryRun || !w.Deps(nil).Sign {
		return nil
	}
	wt, err := w.Git.CheckoutAt(w.Loc.CommonDir, w.Loc.Source)
	if err == nil {
		err = w.Git.TrySignature(w.p.ctx, wt, r.baseSHA)
	}
	if err == nil {
		return nil
	}
	return w.preflightRefusal(loop.Stop{Detail: "signature: " + text.OneLine(err.Error()), Hint: loop.Unsigned})
}

// awayRefusal returns a command's error for an interviewer that does not answer.
func (w *repoContext) awayRefusal(why, fix string) error {
	if !text.IsCommand(fix) || fix == equip.NoCommand {
		fix = ""
	}
	return w.preflightRefusal(loop.Stop{Detail: string(config.Prep) + ": " + why, Away: true, Hint: fix})
}

// preflightRefusal returns a command's error for a failed preflight. No session exists, so the user must repeat the
// command.
func (w *repoContext) preflightRefusal(err error) error {
	var stop loop.Stop
	switch {
	case w.p.ctx.Err() != nil:
		return context.Canceled
	case err == nil:
		return nil
	case !errors.As(err, &stop):
		return fail("", err)
	}
	command := []string{"git", "tilth"}
	for _, arg := range w.p.args[1:] {
		if command = append(command, arg); arg == "run" {
			command = append(command, stop.Flags...)
		}
	}
	out := &exitError{code: exitRefused, msg: "refused: " + stop.Detail, hint: text.ShellQuote(command...)}
	if stop.Away {
		out.code = exitFailed
	}
	if n := len(stop.Problems); n > 1 && isTerminal(w.p.stderr) {
		out.msg = "refused: " + text.Plural(n, "finding") + "\n" +
			problemLines(stop, w.p.shownOn(w.p.stderr))
	}
	switch {
	case stop.Hint != "":
		out.hint = stop.Hint + " && " + out.hint
	case stop.Away: // repeating the command would not help
		out.hint = "git tilth doctor"
	}
	return out
}
