package lifecycle

import (
	"context"
	"errors"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
)

// Inspect decides what a resume of the held session would do, with no change but the end of a rewind that was begun.
func (h *Handle) Inspect(ctx context.Context) (Plan, State, error) {
	st, err := Look(ctx, h.Git, h.S, h.Checkpoint)
	if err != nil {
		return Plan{}, st, err
	}
	return Decide(st), st, nil
}

// Wake brings the session to the state that the plan describes and logs session_resume.
//
// Each step leaves a state of which Decide makes the same plan, less what is done:
//  1. a rewind is finished                 prepared
//  2. the last verdict in the ledger       as before
//     status running, totals settled       no other run takes it up
//  3. the worktree stands
//  4. an accepted tree is committed        its trailers make the task done in the next look
//  5. commits marked done in prd.json
//  6. the tip is unwound (one soft reset)  the failed tasks still say so in prd.json
//  7. failed tasks pending in prd.json
//  8. session_resume
//
// Where 3 to 7 fail or are interrupted, a stop takes the place of 8.
func (h *Handle) Wake(ctx context.Context, p Plan, setup Setup) (Plan, error) {
	if p.FinishRewind {
		if err := h.FinishRewind(quiet(ctx)); err != nil {
			return p, err
		}
		again, _, err := h.Inspect(quiet(ctx))
		if err != nil {
			return p, err
		}
		again.FinishRewind = true
		p = again
	}
	if p.Action == Refuse {
		return p, &RefusedError{Why: "session " + h.S.ID + ": " + p.Why, Hint: p.Hint}
	}
	if err := h.OpenRecord(); err != nil {
		return p, err
	}
	h.settleTotals()
	if p.Action != Nothing {
		if err := h.settleLedger(); err != nil {
			return p, err
		}
		h.Checkpoint.Status = session.Running
		h.Checkpoint.StartedAt = session.FormatTime(h.Now())
		if err := h.Save(); err != nil {
			return p, err
		}
		var err error
		if p, err = h.mend(ctx, p, setup); err != nil {
			return p, h.broken(ctx, err)
		}
	}
	if p.Action == Nothing && h.Checkpoint.Status != session.AllDone {
		// The process died between the stop and the checkpoint.
		h.Checkpoint.Status = session.AllDone
		if err := h.Save(); err != nil {
			return p, err
		}
	}
	resume := record.SessionResume{
		SessionID: h.S.ID, LastStop: record.Optional(p.LastStop), Retried: p.Retried, Pending: p.Pending, Plan: p.String(),
	}
	if len(p.Unwind) > 0 {
		resume.UnwoundCommit, resume.UnwoundCommits = &p.Unwind[0].SHA, shas(p.Unwind)
	}
	return p, h.Record.Append(&resume)
}

// mend brings the worktree and the branch to what the plan says. Only the setup commands, which may install all of a
// project's dependencies, end with the first signal; the worktree is then made anew by the next resume.
func (h *Handle) mend(live context.Context, p Plan, setup Setup) (Plan, error) {
	ctx := quiet(live)
	fresh, aside, err := h.mendWorktree(ctx, p.Worktree)
	if err != nil {
		return p, err
	}
	if p.Aside = aside; aside != "" {
		what := "a directory that is no worktree stood at " + h.Path()
		if err := h.Record.Append(&record.LogRepaired{What: what, Done: "moved to " + aside}); err != nil {
			return p, err
		}
	}
	if fresh {
		if err := h.fillNew(live, p, setup); err != nil {
			return p, err
		}
	}
	wt, err := h.Worktree()
	if err != nil {
		return p, err
	}
	if err := h.Git.QuitOperations(ctx, wt); err != nil {
		return p, err
	}
	if p, err = h.commitAccepted(live, wt, p); err != nil {
		return p, err
	}
	if len(p.Unwind) > 0 {
		if err := h.Git.SoftReset(ctx, wt, p.UnwindTo); err != nil {
			return p, err
		}
	}
	if err := h.noteCommits(p); err != nil {
		return p, err
	}
	return p, h.settlePlan(p)
}

// fillNew gives a worktree that was made again the accepted work, which is in the repository still, and what the setup brings. As
// long as the mark of mendWorktree is there, a resume makes it anew: half of the accepted work would pass for edited.
func (h *Handle) fillNew(live context.Context, p Plan, setup Setup) error {
	if a := p.CommitTree; a != nil {
		ctx := quiet(live)
		wt, err := h.Worktree()
		if err != nil {
			return err
		}
		there, err := h.Git.ObjectExists(ctx, h.Common, a.Tree)
		if err != nil {
			return err
		}
		if there {
			if err := h.Git.ReadTreeIntoFiles(ctx, wt, a.Tree); err != nil {
				return err
			}
		}
	}
	if err := h.Furnish(live, setup); err != nil {
		return err
	}
	return h.worktreeMade()
}

// broken puts on record that the session could not be brought to where the loop begins: a stop, like that of a run. What was
// mended stays mended, and the next resume makes the same plan of the rest.
func (h *Handle) broken(ctx context.Context, cause error) error {
	status, stop := session.Failed, record.Stop{Reason: "error", Detail: ends(cause.Error())}
	if ctx.Err() != nil {
		status, stop = session.Running, record.Stop{Reason: "interrupted"}
	}
	if err := h.Stopped(status, stop); err != nil {
		return errors.Join(cause, err)
	}
	return cause
}

// ends are the beginning of a long text, which says what it is, and its end, which says what went wrong.
func ends(text string) string {
	const head, tail = 500, 3500
	r := []rune(text)
	if len(r) <= head+tail {
		return text
	}
	return string(r[:head]) + "\n[...]\n" + string(r[len(r)-tail:])
}

func shas(commits []gitx.Commit) []string {
	var out []string
	for _, c := range commits {
		out = append(out, c.SHA)
	}
	return out
}
