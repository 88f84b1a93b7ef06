package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"os"
	"strings"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/take"
)

// cleanseBegun is the mark of a worktree that is being removed. Changes in it are half removed files.
const cleanseBegun = "cleanse\n"

// Cleanse removes a session's worktree and branch and keeps its directory. The error is a *held.RefusedError if that
// would lose work: uncommitted changes, or commits that no other branch, tag or remote branch has and that were
// neither taken nor pushed. The next call finishes an interrupted one.
func Cleanse(ctx context.Context, g *gitx.Git, s *session.Session, here, remote string,
	report func(step, skipped string)) error {
	if check, err := s.Checkpoint(); err == nil && neverRun(ctx, g, s, check) {
		return &held.RefusedError{Why: "session " + s.ID + " has not run yet",
			Hint: "git tilth resume " + s.ID + "\ngit tilth reset " + s.ID}
	}
	r, err := PlanTeardown(ctx, g, s, here, report)
	if err = cmp.Or(ctx.Err(), err); err != nil {
		return err
	}
	if r.Common == "" || r.Original != "" {
		return held.Refuse("git tilth show "+s.ID, "the repository of session %s is not known: %s", s.ID, r.Lost)
	}
	if begun, _ := os.ReadFile(s.Path(held.RemakeMark)); r.Dirty != "" && string(begun) != cleanseBegun {
		return &held.RefusedError{Why: "the worktree of session " + s.ID + " has uncommitted changes",
			Hint: held.GitLine(r.Dirty, "status")}
	}
	lost, err := take.Lost(ctx, g, r.Common, s, r.Tip, r.Branch)
	if err != nil {
		return err
	}
	if request := s.Request(); request != nil && request.Merged(r.Tip) {
		lost = nil
	}
	if len(lost) > 0 && (remote == "" || r.remoteTip(ctx, remote) != r.Tip) {
		return &held.RefusedError{Why: "not merged, taken or pushed: " + strings.Join(lost, ", ") +
			"; a reset deletes them and the record", Hint: "git tilth take " + s.ID + "\ngit tilth push " + s.ID}
	}
	if !g.IsDryRun() { // a resume re-creates a half deleted worktree
		if err := jsonl.WriteFile(s.Path(held.RemakeMark), []byte(cleanseBegun)); err != nil {
			return err
		}
	}
	if err := r.removeFromRepo(ctx, "git tilth cleanse "+s.ID); err != nil || g.IsDryRun() {
		return err
	}
	return errors.Join(proc.RemoveAll(s.Path(session.JudgeDir)), proc.RemoveAll(s.Path(session.CachesDir)),
		proc.RemoveAll(s.Path(session.LanesDir)),
		os.Remove(s.Path(held.RemakeMark)))
}

// neverRun reports whether no task of a session was started, also if its preparation was not finished.
func neverRun(ctx context.Context, g *gitx.Git, s *session.Session, check *session.Checkpoint) bool {
	if check.Status == session.Prepared {
		return true
	}
	if state, err := s.State(); err != nil || state.Ran {
		return false
	}
	worked, err := held.Worked(ctx, g, s, check, "", "")
	return err == nil && !worked
}

// remoteTip returns the current commit of the branch on a remote, "" if unknown.
func (r Teardown) remoteTip(ctx context.Context, remote string) string {
	ask := gitx.InRepo(r.Common, "ls-remote", "--end-of-options", remote, "refs/heads/"+r.Branch)
	ask.Dir = r.Source // a remote's relative path starts here
	out, _ := r.git.Line(ctx, ask)
	tip, _, _ := strings.Cut(out, "\t")
	return tip
}
