package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/sandbox"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
)

// Cleanse removes a session's worktree and branch and keeps its directory. The error is a *RefusedError where something
// would be lost: uncommitted changes, or commits that are on no other branch, tag or remote branch, were not taken and
// are not on the remote that the session was pushed to. One that was killed is finished by the next.
func Cleanse(ctx context.Context, g *gitx.Git, s *session.Session, here, remote string,
	report func(step, skipped string)) error {
	if check, err := s.Checkpoint(); err == nil && check.Status == session.Prepared {
		return &RefusedError{"session " + s.ID + " has not been run",
			"git tilth resume " + s.ID + ", or git tilth reset " + s.ID}
	}
	r, err := PlanTeardown(ctx, g, s, here, report)
	if err = cmp.Or(ctx.Err(), err); err != nil {
		return err
	}
	if r.Common == "" || r.Original != "" {
		return &RefusedError{"the repository of session " + s.ID + " is not known: " + r.Lost, "git tilth show " + s.ID}
	}
	if r.Dirty {
		return &RefusedError{"the worktree of session " + s.ID + " has changes that are not committed",
			gitLine(r.Worktree, "status")}
	}
	lost, err := r.lost(ctx)
	if err != nil {
		return err
	}
	if len(lost) > 0 && (remote == "" || r.remoteTip(ctx, remote) != r.Tip) {
		return &RefusedError{"not merged, taken or pushed: " + strings.Join(lost, ", "), "git tilth take " + s.ID +
			", or git tilth push " + s.ID + "; git tilth reset " + s.ID + " gives it up, and the record"}
	}
	admin, _ := gitx.AdminDir(r.Common, r.Worktree)
	// One rename, so that a worktree is never half of one: what is killed after it finds it gone, and a resume adds it
	// anew.
	gone := s.Path(session.WorkspaceDir + ".gone")
	if !g.IsDryRun() {
		if err := proc.RemoveAll(gone); err != nil {
			return err
		}
		if err := os.Rename(s.Path(session.WorkspaceDir), gone); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := r.removeFromRepo(ctx, admin, "git tilth cleanse "+s.ID); err != nil || g.IsDryRun() {
		return err
	}
	return errors.Join(proc.RemoveAll(gone), proc.RemoveAll(s.Path(session.JudgeDir)),
		proc.RemoveAll(s.Path(sandbox.LayersDir)))
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
	only, err := onlyOn(ctx, r.git, r.Common, r.Tip, r.Branch)
	if err != nil || len(only) == 0 {
		return nil, err
	}
	taken, err := r.taken(ctx)
	if err != nil {
		return nil, err
	}
	seed, _ := seedOf(r.S)
	for _, sha := range only {
		if taken[sha] || seed != "" && strings.HasPrefix(sha, seed) {
			continue
		}
		commits, err := r.git.Log(ctx, r.Common, sha, "", 1)
		if err != nil {
			return nil, err
		}
		for _, c := range commits {
			names = append(names, fmt.Sprintf("%s (%s)", text.Head(sha, 10), text.Clip(text.OneLine(c.Subject), 60)))
		}
	}
	slices.Reverse(names)
	return names, nil
}

// taken are the commits of the session that a branch, a tag or a remote branch still has in another form.
func (r TeardownPlan) taken(ctx context.Context) (map[string]bool, error) {
	taken := map[string]bool{}
	for _, t := range takenNotes(r.S) {
		to, err := r.git.RevParse(ctx, r.Common, t.To+"^{commit}")
		if err != nil {
			continue // it was dropped, and a gc has taken it
		}
		gone, err := onlyOn(ctx, r.git, r.Common, to, r.Branch)
		if err != nil {
			return nil, err
		}
		for _, sha := range t.Tasks {
			taken[sha] = taken[sha] || len(gone) == 0
		}
	}
	return taken, nil
}
