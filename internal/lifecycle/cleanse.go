package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
)

// cleanseBegun is what stands in the mark of a worktree that is removed. What is changed there then is half of it.
const cleanseBegun = "cleanse\n"

// Cleanse removes a session's worktree and branch and keeps its directory. The error is a *RefusedError where something
// would be lost: uncommitted changes, or commits that are on no other branch, tag or remote branch, were not taken and
// are not on the remote that the session was pushed to. One that was killed is finished by the next.
func Cleanse(ctx context.Context, g *gitx.Git, s *session.Session, here, remote string,
	report func(step, skipped string)) error {
	if check, err := s.Checkpoint(); err == nil && check.Status == session.Prepared {
		return &RefusedError{"session " + s.ID + " has not been run",
			"git tilth resume " + s.ID + "\ngit tilth reset " + s.ID}
	}
	r, err := PlanTeardown(ctx, g, s, here, report)
	if err = cmp.Or(ctx.Err(), err); err != nil {
		return err
	}
	if r.Common == "" || r.Original != "" {
		return &RefusedError{"the repository of session " + s.ID + " is not known: " + r.Lost, "git tilth show " + s.ID}
	}
	if begun, _ := os.ReadFile(s.Path(remakeMark)); r.Dirty && string(begun) != cleanseBegun {
		return &RefusedError{"the worktree of session " + s.ID + " has changes that are not committed",
			gitLine(r.Worktree, "status")}
	}
	lost, err := r.lost(ctx)
	if err != nil {
		return err
	}
	if len(lost) > 0 && (remote == "" || r.remoteTip(ctx, remote) != r.Tip) {
		return &RefusedError{"not merged, taken or pushed: " + strings.Join(lost, ", ") +
			"; a reset gives it up, and the record", "git tilth take " + s.ID + "\ngit tilth push " + s.ID}
	}
	admin, _ := gitx.AdminDir(r.Common, r.Worktree)
	if !g.IsDryRun() { // a worktree of which half is gone is made anew by a resume
		if err := jsonl.WriteFile(s.Path(remakeMark), []byte(cleanseBegun)); err != nil {
			return err
		}
	}
	if err := r.removeFromRepo(ctx, admin, "git tilth cleanse "+s.ID); err != nil || g.IsDryRun() {
		return err
	}
	return errors.Join(proc.RemoveAll(s.Path(session.JudgeDir)), proc.RemoveAll(s.Path(session.CachesDir)),
		proc.RemoveAll(s.Path(session.LanesDir)),
		os.Remove(s.Path(remakeMark)))
}

// remoteTip is the commit of the branch on a remote as it is now, "" where that is not known.
func (r TeardownPlan) remoteTip(ctx context.Context, remote string) string {
	ask := gitx.InRepo(r.Common, "ls-remote", "--end-of-options", remote, "refs/heads/"+r.Branch)
	ask.Dir = r.Source // where a remote's relative path begins
	out, _ := r.git.Line(ctx, ask)
	tip, _, _ := strings.Cut(out, "\t")
	return tip
}

// onlyOn lists the commits that are reachable from tip and from no branch but the given one, tag or remote branch: what
// is lost with it.
func onlyOn(ctx context.Context, g *gitx.Git, common, tip, branch string) ([]string, error) {
	out, err := g.Line(ctx, gitx.InRepo(common, "rev-list", tip, "--not", "--exclude="+branch, "--branches", "--tags",
		"--remotes"))
	return strings.Fields(out), err
}

// lost names the commits that go with the branch.
func (r TeardownPlan) lost(ctx context.Context) (names []string, err error) {
	if r.Tip == "" {
		return nil, nil
	}
	notes, ends := takenNotes(r.S), []string{r.Tip}
	for _, n := range notes {
		ends = append(ends, n.To)
	}
	only, err := onlyHere(ctx, r.git, r.Common, ends, r.Branch)
	if err != nil {
		return nil, err
	}
	for _, sha := range slices.Backward(only.left(r.Tip, r.S, notes)) {
		commits, err := r.git.Log(ctx, r.Common, sha, "", 1)
		if err != nil {
			return nil, err
		}
		for _, c := range commits {
			names = append(names, fmt.Sprintf("%s (%s)", text.Head(sha, 10), text.Clip(text.OneLine(c.Subject), 60)))
		}
	}
	return names, nil
}
