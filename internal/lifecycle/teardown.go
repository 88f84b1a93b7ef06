package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/session"
)

// The teardown removes the worktree, then the branch, then the session directory. Each step finds out by itself
// whether it is needed, so a teardown that died anywhere is finished by running it again:
//
//  1. the marker session.ResetMarkFile     nothing is removed, but the session is neither run nor resumed any more
//  2. worktree and admin entry gone
//  3. branch gone
//  4. everything in the directory but the checkpoint and the marker
//  5. the directory
//
// What a damaged checkpoint no longer tells is derived, and what it tells is believed only where it can be this
// session's: the branch is always session/<id>, and a path is removed by git only if it lies where the layout says,
// or if nothing is there and only git's entry goes. A worktree that a person made on the branch stays, and git
// refuses to delete the branch.

// Unfinished reports whether a rewind, an undo or a teardown of a session was begun and not finished.
func Unfinished(s *session.Session, check *session.Checkpoint) bool {
	return exists(s.Path(session.GoBackFile)) || check.Rewind != nil || Resetting(s)
}

// earlierHalf is what an earlier build began with a session and did not finish, "" for nothing. Only that build can.
func earlierHalf(s *session.Session, check *session.Checkpoint) string {
	what := ""
	switch {
	case check.Rewind != nil:
		what = "reset --to-seed"
	case exists(s.Path(session.WorkspaceDir + ".adopt")):
		what = "registration of its worktree"
	case exists(s.Path(session.WorkspaceDir + ".gone")):
		what = "cleanse"
	default:
		return ""
	}
	return "a build of git-tilth before this one (commit 5bcd928 or earlier) began a " + what + " and did not finish it"
}

// Resetting reports whether a teardown of the session was begun.
func Resetting(s *session.Session) bool { return exists(s.Path(session.ResetMarkFile)) }

// TeardownPlan is what there is of a session to remove, as far as it can be found out.
type TeardownPlan struct {
	S        *session.Session
	Source   string // "" when it is not known
	Common   string // "" when the source is gone, or not known
	Lost     string // why there is no Common
	Worktree string
	Branch   string
	Status   string   // "damaged" when the checkpoint cannot be read
	Tip      string   // of the branch, "" when it is gone
	Entry    bool     // git has a worktree registered
	OnDisk   bool     // there is a directory at Worktree
	Commits  int      // since the seed, that nothing else holds
	Held     bool     // another branch, a tag or a remote has all that the branch has
	Dirty    bool     // uncommitted changes
	Aside    []string // what a resume moved out of the worktree's place
	// Stale are other places for which git has the session's branch checked out and where nothing is any more: its
	// worktree was there before it, or the sessions root, was moved.
	Stale []string
	// Original is the directory of the session of which this one is a copy, "" for none. Branch, entry and worktree
	// are that one's, and nothing of them is touched: what goes is the directory of the copy.
	Original string

	git    *gitx.Git
	report func(step, skipped string)
}

// PlanTeardown finds out what a teardown would remove. It changes nothing and puts up with every damage. here is the
// common directory of the repository that the command stands in, "" for none: a repository that was moved is known by
// what it holds. report hears of each step of carrying it out, and whether it was skipped and why. The error is a
// *StepError.
func PlanTeardown(ctx context.Context, g *gitx.Git, s *session.Session, here string,
	report func(step, skipped string)) (TeardownPlan, error) {
	r := TeardownPlan{S: s, Branch: s.Branch(), Status: "damaged", Aside: setAside(s), git: g, report: report}
	check, err := s.Checkpoint()
	if err != nil {
		check = nil
	} else {
		r.Source, r.Status = check.Source, check.Status
	}
	r.Worktree = WorkspaceOf(s, check)
	if fi, err := os.Lstat(r.Worktree); err == nil && fi.IsDir() {
		r.OnDisk = true
	}
	switch r.Common, err = CommonOf(s, check); {
	case err == nil:
	case !errors.Is(err, errSourceGone) && !errors.Is(err, ErrSourceUnknown):
		return r, r.unclear(err)
	case here != "" && HasSession(here, s, r.Worktree):
		r.Common = here
	default:
		r.Lost = err.Error()
		return r, nil
	}
	r.Source = SourceNow(r.Source, r.Common)
	if r.Tip, _, err = g.BranchTip(ctx, r.Common, r.Branch); err != nil {
		return r, r.unclear(err)
	}
	// Where it has its entry git is not asked: it reads every worktree of the repository.
	if _, r.Entry = gitx.AdminDir(r.Common, r.Worktree); !r.Entry {
		entries, err := g.Worktrees(ctx, r.Common, r.Worktree)
		if err != nil {
			return r, r.unclear(err)
		}
		r.findElsewhere(entries, check)
	}
	r.count(ctx)
	return r, nil
}

// unclear is what keeps a plan from knowing what there is. Nothing is removed then: the rest would be an orphan.
func (r TeardownPlan) unclear(err error) error {
	where := cmp.Or(r.Common, "its source repository")
	return &StepError{
		Step: "looking for the worktree and branch of session " + r.S.ID + " in " + where, Err: err,
		Hint: "git tilth reset -y " + r.S.ID,
	}
}

// findElsewhere looks through git's list for a session that has no entry at its place.
func (r *TeardownPlan) findElsewhere(entries []gitx.WorktreeEntry, check *session.Checkpoint) {
	elsewhere := ""
	for _, e := range entries {
		switch {
		case gitx.SamePath(e.Path, r.Worktree):
			r.Entry, r.Worktree = true, e.Path
		case e.Branch != r.Branch:
		case isHalfEntry(r.S, e), e.Gone && (!e.Locked || inside(e.Path, r.Worktree)):
			r.Stale = append(r.Stale, e.Path)
		default:
			elsewhere = filepath.Dir(e.Path)
		}
	}
	if r.Entry {
		return
	}
	recorded := ""
	if check != nil {
		recorded = filepath.Dir(check.Workspace)
	}
	for _, dir := range []string{elsewhere, recorded} {
		if isCopyOf(r.S, dir) {
			r.Original, r.Stale = dir, nil
		}
	}
}

// inside reports whether a registered path has the layout of this session's worktree, under another root.
func inside(path, worktree string) bool {
	return filepath.Base(path) == filepath.Base(worktree) &&
		filepath.Base(filepath.Dir(path)) == filepath.Base(filepath.Dir(worktree))
}

// count says what will be lost. It is for a person to read; what cannot be counted is left out.
func (r *TeardownPlan) count(ctx context.Context) {
	if r.Original != "" {
		return
	}
	if sha, err := seedOf(r.S); err == nil && r.Tip != "" {
		if commits, known, err := commitsSince(ctx, r.git, r.Common, r.Tip, sha); err == nil && known {
			r.Commits = len(commits)
			if own, err := onlyOn(ctx, r.git, r.Common, r.Tip, r.Branch); err == nil {
				r.Commits, r.Held = min(r.Commits, len(own)), len(own) == 0
			}
		}
	}
	if _, err := r.git.Worktree(ctx, r.Common, r.Worktree, ""); err == nil {
		r.Dirty, _ = r.git.IsDirty(ctx, r.Worktree)
	}
}

// StepError is a step of a teardown or a resume that could not be done. The session directory is still there, and
// doing the same again goes on from there.
type StepError struct {
	Step string
	Err  error
	Hint string
}

func (e *StepError) Error() string { return e.Step + ": " + e.Err.Error() }
func (e *StepError) Unwrap() error { return e.Err }

// Execute removes a session.
func (r TeardownPlan) Execute(ctx context.Context) error {
	ctx = ignoreFirstSignal(ctx)
	again := "git tilth reset -y " + r.S.ID
	admin, err := r.mark()
	if err != nil {
		return &StepError{Step: "session directory", Err: err, Hint: again}
	}
	if !r.git.IsDryRun() {
		places := placesOf(r.S, "")
		if r.Original == "" {
			places = append(places, append(r.Stale, r.Worktree)...)
		}
		endLeftovers(places...)
	}
	switch {
	case r.Common == "":
		r.report("worktree", r.Lost)
		r.report("branch "+r.Branch, r.Lost)
	case r.Original != "":
		r.report("worktree and branch "+r.Branch, "they are of the session in "+r.Original+", of which this is a copy")
	default:
		if err := r.removeFromRepo(ctx, admin, again); err != nil {
			return err
		}
	}
	if r.git.IsDryRun() {
		return nil
	}
	if err := removeDir(r.S); err != nil {
		return &StepError{Step: "session directory", Err: err, Hint: again}
	}
	r.report("session directory", "")
	return nil
}

// removeFromRepo removes the worktree, then the branch. again is the command that finishes it.
func (r TeardownPlan) removeFromRepo(ctx context.Context, admin, again string) error {
	for _, task := range Lanes(r.S) {
		path := LanePath(r.S, task)
		if err := r.git.RemoveWorktree(ctx, r.Common, path, ""); err != nil {
			return &StepError{Step: "worktree " + path, Err: err, Hint: again}
		}
		r.report("worktree "+path, "")
	}
	err := r.git.Restore(r.Common, r.Worktree)
	if err == nil {
		err = r.removeWorktree(ctx, admin)
	}
	if err != nil {
		return &StepError{Step: "worktree " + r.Worktree, Err: err, Hint: again}
	}
	deleted, err := r.git.DeleteBranch(ctx, r.Common, r.Branch)
	switch {
	case err != nil:
		if place, free, err := checkedOutIn(ctx, r.git, r.S, r.Common, r.Worktree, again); err == nil && place != "" {
			again = free
		}
		return &StepError{Step: "branch " + r.Branch, Err: err, Hint: again}
	case deleted:
		r.report("branch "+r.Branch, "")
	default:
		r.report("branch "+r.Branch, "already gone")
	}
	return nil
}

// mark writes the marker and returns the worktree's admin directory, which the marker holds: a git that is killed
// while it removes it leaves a directory that nothing else connects with the session. The common directory is in it
// for a teardown that dies when the marker is all that is left.
func (r TeardownPlan) mark() (admin string, err error) {
	if admin, common, _ := resetMark(r.S); admin+common != "" {
		return admin, nil
	}
	if r.Common != "" {
		admin, _ = gitx.AdminDir(r.Common, r.Worktree)
	}
	if r.git.IsDryRun() {
		return admin, nil
	}
	path := r.S.Path(session.ResetMarkFile)
	err = jsonl.WriteFile(path, []byte(admin+"\n"+r.Common+"\n"))
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		// A full disk must not keep a session from being removed, which makes room. An empty file mostly still fits.
		_ = jsonl.WriteFile(path, nil)
		err = nil
	}
	return admin, err
}

// removeWorktree removes the worktree and whatever an interrupted git has left of its entry, which may be admin.
func (r TeardownPlan) removeWorktree(ctx context.Context, admin string) error {
	if err := r.git.RemoveWorktree(ctx, r.Common, r.Worktree, admin); err != nil {
		return err
	}
	switch {
	case r.Entry:
		r.report("worktree "+r.Worktree, "")
	case r.OnDisk:
		r.report("worktree "+r.Worktree, "not registered with git; it goes with the session directory")
	default:
		r.report("worktree "+r.Worktree, "already gone")
	}
	for _, path := range r.Stale {
		if err := r.git.RemoveWorktree(ctx, r.Common, path, ""); err != nil {
			return err
		}
		r.report("git's entry for "+path, "")
	}
	return nil
}

// removeDir removes the session directory, the files by which a half-removed one is recognised last. A worktree may
// hold directories without write permission, which are opened first.
func removeDir(s *session.Session) error {
	entries, err := os.ReadDir(s.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	last := []string{session.CheckpointFile, session.LockFile, session.ResetMarkFile}
	for _, e := range entries {
		if slices.Contains(last, e.Name()) {
			continue
		}
		if err := proc.RemoveAll(s.Path(e.Name())); err != nil {
			return err
		}
	}
	for _, name := range last {
		if err := os.RemoveAll(s.Path(name)); err != nil {
			return err
		}
	}
	return os.RemoveAll(s.Dir)
}
