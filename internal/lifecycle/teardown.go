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
	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/take"
)

// clearForks removes the leftovers of killed forks. It leaves the rest to `reset`.
func clearForks(ctx context.Context, d held.Deps, store session.Store, common string) {
	if d.Git.IsDryRun() {
		return
	}
	ids, _ := store.IDs()
	for _, id := range ids {
		s, err := store.Find(id)
		if err != nil {
			continue
		}
		if _, fork := held.ResetMark(s); fork {
			_ = FinishTeardown(ctx, d, s, common) // a locked session is being made
		}
	}
}

// FinishTeardown removes the rest of a session with an unfinished teardown, or of an unfinished fork.
func FinishTeardown(ctx context.Context, d held.Deps, s *session.Session, here string) error {
	unlock, err := held.Lock(d, s)
	if err != nil {
		return err
	}
	defer unlock()
	if !held.Resetting(s) {
		return nil // the former holder has completed it
	}
	plan, err := PlanTeardown(ctx, d.Git, s, here, func(string, string) {})
	if err != nil {
		return err
	}
	return plan.Execute(ctx)
}

// The teardown removes the worktree, then the branch, then the session directory. Each step finds out by itself
// whether it is needed, so a teardown that died anywhere is finished by running it again:
//
//  1. the marker session.ResetMarkFile     nothing is removed, but the session is neither run nor resumed any more
//  2. worktree and admin entry gone
//  3. branch gone
//  4. everything in the directory but the checkpoint and the marker
//  5. the directory
//
// Facts that a damaged checkpoint lacks are derived, and its facts are used only if they can be this session's: the
// branch is always session/<id>, and git removes a path only if it is where the layout says, or if it is missing and
// only the entry is removed. A worktree that the user made on the branch stays, and git refuses to delete the branch.

// Teardown lists the parts of a session to remove, as far as they are known.
type Teardown struct {
	S        *session.Session
	Source   string // "" when it is not known
	Common   string // "" if the source is missing or unknown
	Lost     string // why there is no Common
	Worktree string
	Branch   string
	Status   string   // "damaged" when the checkpoint cannot be read
	Tip      string   // tip of the branch, or ""
	Entry    bool     // git has a worktree registered
	OnDisk   bool     // the directory Worktree exists
	Commits  int      // commits since the seed that are on no other ref
	Held     bool     // another branch, a tag or a remote has all that the branch has
	Dirty    string   // a worktree of the session's that has uncommitted changes, "" for none
	Aside    []string // directories that a resume moved from the worktree's path
	// Stale are deleted former paths of the worktree for which git still has the branch checked out.
	Stale []string
	// Original is the directory of the session that this one is a copy of, "" for none. Branch, entry and worktree
	// belong to the original and stay: only the directory of the copy is removed.
	Original string

	git    *gitx.Git
	report func(step, skipped string)
}

// PlanTeardown finds the parts that a teardown would remove. It changes nothing and tolerates any damage. here is the
// common directory of the command's repository, or ""; it identifies a moved repository. Executing the plan calls
// report for each step, with the reason if it was skipped. The error is a *held.StepError.
func PlanTeardown(ctx context.Context, g *gitx.Git, s *session.Session, here string,
	report func(step, skipped string)) (Teardown, error) {
	r := Teardown{S: s, Branch: s.Branch(), Status: "damaged", Aside: held.MovedAside(s), git: g, report: report}
	check, err := s.Checkpoint()
	if err != nil {
		check = nil
	} else {
		r.Source, r.Status = check.Source, check.Status
	}
	r.Worktree = held.WorkspaceOf(s, check)
	if fi, err := os.Lstat(r.Worktree); err == nil && fi.IsDir() {
		r.OnDisk = true
	}
	switch r.Common, err = held.CommonOf(s, check); {
	case err == nil:
	case !errors.Is(err, held.ErrSourceGone) && !errors.Is(err, held.ErrSourceUnknown):
		return r, r.unclear(err)
	case here != "" && held.HasSession(here, s, r.Worktree):
		r.Common = here
	default:
		r.Lost = err.Error()
		return r, nil
	}
	r.Source = held.SourceNow(r.Source, r.Common)
	if r.Tip, _, err = g.BranchTip(ctx, r.Common, r.Branch); err != nil {
		return r, r.unclear(err)
	}
	// If it has its entry, git is not asked, because git reads every worktree of the repository.
	if _, r.Entry = gitx.AdminDir(r.Common, r.Worktree); !r.Entry {
		entries, err := g.Worktrees(ctx, r.Common)
		if err != nil {
			return r, r.unclear(err)
		}
		r.findElsewhere(entries, check)
	}
	r.count(ctx)
	return r, nil
}

// unclear returns the error of an incomplete plan, after which nothing is removed, because the rest would be orphaned.
func (r Teardown) unclear(err error) error {
	where := cmp.Or(r.Common, "its source repository")
	return &held.StepError{
		Step: "find the worktree and branch of session " + r.S.ID + " in " + where, Err: err,
		Hint: "git tilth reset -y " + r.S.ID,
	}
}

// findElsewhere looks through git's list for a session that has no entry at its place.
func (r *Teardown) findElsewhere(entries []gitx.WorktreeEntry, check *session.Checkpoint) {
	elsewhere := ""
	for _, e := range entries {
		switch {
		case gitx.SamePath(e.Path, r.Worktree):
			r.Entry, r.Worktree = true, e.Path
		case e.Branch != r.Branch:
		case held.IsHalfEntry(r.S, e), e.Gone && (!e.Locked || inside(e.Path, r.Worktree)):
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
		if held.IsCopyOf(r.S, dir) {
			r.Original, r.Stale = dir, nil
		}
	}
}

// inside reports whether a registered path has the layout of this session's worktree, under another root.
func inside(path, worktree string) bool {
	return filepath.Base(path) == filepath.Base(worktree) &&
		filepath.Base(filepath.Dir(path)) == filepath.Base(filepath.Dir(worktree))
}

// count fills in the losses for the user's question; unknown numbers are left out.
func (r *Teardown) count(ctx context.Context) {
	if r.Original != "" {
		return
	}
	if sha, err := held.SeedOf(r.S); err == nil && r.Tip != "" {
		if commits, at, err := held.CommitsSince(ctx, r.git, r.Common, r.Tip, sha); err == nil && at.SHA != "" {
			r.Commits = len(commits)
			if own, err := take.OnlyOn(ctx, r.git, r.Common, r.Tip, r.Branch); err == nil {
				r.Commits, r.Held = min(r.Commits, len(own)), len(own) == 0
			}
		}
	}
	for _, path := range append(r.lanes(), r.Worktree) {
		if _, err := r.git.Worktree(ctx, r.Common, path, ""); err != nil {
			continue
		}
		dirty, _ := r.git.IsDirty(ctx, path)
		if edited, _ := r.git.EditedModules(ctx, path); dirty || len(edited) > 0 {
			r.Dirty = path
		}
	}
}

// lanes returns the paths of the session's lanes, including those with only an entry of git.
func (r *Teardown) lanes() (places []string) {
	for _, task := range held.AllLanes(r.S, r.Common) {
		places = append(places, held.LanePath(r.S, task))
	}
	for _, path := range gitx.WorktreesBelow(r.Common, r.S.Dir) {
		if !gitx.SamePath(path, r.Worktree) && !slices.Contains(places, path) {
			places = append(places, path)
		}
	}
	return places
}

// Execute removes a session.
func (r Teardown) Execute(ctx context.Context) error {
	ctx = proc.IgnoreFirstSignal(ctx)
	again := "git tilth reset -y " + r.S.ID
	if err := r.mark(); err != nil {
		return &held.StepError{Step: "session directory", Err: err, Hint: again}
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
		r.report("worktree and branch "+r.Branch, "they belong to the session in "+r.Original+"; this is a copy of it")
	default:
		if err := r.removeFromRepo(ctx, again); err != nil {
			return err
		}
	}
	if r.git.IsDryRun() {
		return nil
	}
	if err := removeDir(r.S); err != nil {
		return &held.StepError{Step: "session directory", Err: err, Hint: again}
	}
	r.report("session directory", "")
	return nil
}

// removeFromRepo removes the leftovers of killed processes, the worktree, then the branch. again is the command that
// finishes it.
func (r Teardown) removeFromRepo(ctx context.Context, again string) error {
	r.git.ClearQuarantines(r.Common)
	for _, path := range r.lanes() {
		_, err := r.git.Relink(ctx, r.Common, path)
		if err = cmp.Or(err, r.git.RemoveWorktree(ctx, r.Common, path)); err != nil {
			return &held.StepError{Step: "worktree " + path, Err: err, Hint: again}
		}
		r.report("worktree "+path, "")
	}
	if err := r.removeWorktree(ctx); err != nil {
		return &held.StepError{Step: "worktree " + r.Worktree, Err: err, Hint: again}
	}
	deleted, err := r.git.DeleteBranch(ctx, r.Common, r.Branch)
	switch {
	case err != nil:
		if place, free, err := held.CheckedOutIn(ctx, r.git, r.S, r.Common, r.Worktree,
			again); err == nil && place != "" {
			again = free
		}
		return &held.StepError{Step: "branch " + r.Branch, Err: err, Hint: again}
	case deleted:
		r.report("branch "+r.Branch, "")
	default:
		r.report("branch "+r.Branch, "already gone")
	}
	return nil
}

// mark writes the marker. It contains the common directory for a teardown that dies when only the marker is left.
func (r Teardown) mark() error {
	if common, _ := held.ResetMark(r.S); common != "" || r.git.IsDryRun() {
		return nil
	}
	path := r.S.Path(session.ResetMarkFile)
	err := jsonl.WriteFile(path, []byte(r.Common+"\n"))
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		// A full disk must not prevent the removal of a session. An empty file usually still fits.
		_ = jsonl.WriteFile(path, nil)
		err = nil
	}
	return err
}

// removeWorktree removes the worktree, and leftovers of its entry by a killed git.
func (r Teardown) removeWorktree(ctx context.Context) error {
	if err := r.git.RemoveWorktree(ctx, r.Common, r.Worktree); err != nil {
		return err
	}
	switch {
	case r.Entry:
		r.report("worktree "+r.Worktree, "")
	case r.OnDisk:
		r.report("worktree "+r.Worktree, "not registered with git; deleted with the session directory")
	default:
		r.report("worktree "+r.Worktree, "already gone")
	}
	for _, path := range r.Stale {
		if err := r.git.RemoveWorktree(ctx, r.Common, path); err != nil {
			return err
		}
		r.report("git's entry for "+path, "")
	}
	return nil
}

// removeDir removes the session directory. It removes the files that identify a half-removed session last. It first
// opens directories without write permission in a worktree.
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

// placesOf returns the working directories of the commands of a session's run; worktree is the session's own.
func placesOf(s *session.Session, worktree string) []string {
	places := []string{worktree, s.Path(session.JudgeDir)}
	for _, task := range held.Lanes(s) {
		places = append(places, held.LanePath(s, task))
	}
	return append(places, held.LaneJudges(s)...)
}

// endLeftovers waits for the end of a killed git-tilth's processes in worktrees and judged checkouts: the worker's
// commands, validators, evaluators, and git with its hooks. They would interfere, or recreate removed files. Only the
// lock's holder may call it. It also removes temporary directories of killed processes.
func endLeftovers(paths ...string) {
	var real []string // resolved names, which cannot be resolved after the deletion
	for _, path := range paths {
		if path == "" {
			continue
		}
		if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
			path = filepath.Join(dir, filepath.Base(path))
		}
		real = append(real, path)
	}
	proc.EndStale(real...)
	proc.ClearTemp()
}
