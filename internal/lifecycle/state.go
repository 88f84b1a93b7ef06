package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
)

// ReadState gathers the State of a session. It changes nothing and takes no lock, and its cost does not grow with
// the record: what that says was kept when the last run stopped.
func ReadState(ctx context.Context, g *gitx.Git, s *session.Session, check *session.Checkpoint) (State, error) {
	st := State{SessionID: s.ID, Status: check.Status, Resetting: Resetting(s), Earlier: earlierHalf(s, check)}
	st.Foreign = check.GitCommonDir == ""
	if j, err := readJournal(s); err != nil {
		return st, err
	} else if j != nil {
		st.GoingBack = j.String()
	}
	tasks, err := s.Tasks()
	if err == nil {
		err = knowable(s, tasks)
	}
	if err != nil {
		st.TasksError = err.Error()
	}
	st.Tasks = tasks
	if st.Record, err = s.State(); err != nil {
		return st, err
	}
	st.History, st.Lanes = st.Record.History(), begunLanes(s)
	st.leaveToLanes()
	if st.Record.Seed != nil {
		st.SeedSHA = st.Record.Seed.SHA
	} else {
		messages, _ := s.ReadTranscript(record.RoleInterview, "") // what cannot be read cannot be gone on with
		st.Interviewed = len(messages) > 0
	}
	common, err := CommonOf(s, check)
	if errors.Is(err, errSourceGone) || errors.Is(err, ErrSourceUnknown) {
		st.SourceGone, st.SourceHint = err.Error(), sourceHint(s, WorkspaceOf(s, check))
		return st, nil
	}
	if err != nil {
		return st, err
	}
	if sha, err := unrecordedSeed(ctx, g, s, check, common); err != nil {
		return st, err
	} else if sha != "" {
		st.SeedSHA, st.Status = sha, session.Prepared
	}
	return st, st.readGit(ctx, g, s, check, common)
}

// knowable tells a plan whose tasks can be told apart, by their ids. One that was edited into something else must
// neither count as done nor do a task twice.
func knowable(s *session.Session, tasks []session.Task) error {
	path := s.Path(session.TasksFile)
	if len(tasks) == 0 {
		return fmt.Errorf("%s holds no task", path)
	}
	seen := map[string]bool{}
	for i, t := range tasks {
		if !session.ValidTaskID(t.ID) {
			return fmt.Errorf("%s: the id of entry %d, %q, is not T- and three or more digits", path, i+1, t.ID)
		}
		if seen[t.ID] {
			return fmt.Errorf("%s holds %s twice", path, t.ID)
		}
		seen[t.ID] = true
	}
	return nil
}

func (st *State) readGit(ctx context.Context, g *gitx.Git, s *session.Session, check *session.Checkpoint,
	common string) error {
	branch := s.Branch()
	tip, ok, err := g.BranchTip(ctx, common, branch)
	if err != nil {
		return err
	}
	st.BranchTip = tip // "" for none
	path := WorkspaceOf(s, check)
	st.Tree, st.treeOn = treeState(ctx, g, common, path, branch)
	if remaking(s) {
		st.Tree, st.treeOn = treeMissing, ""
	}
	if !ok {
		return nil
	}
	if err := st.readWorktree(ctx, g, s, common, path); err != nil || st.SeedSHA == "" {
		return err
	}
	if !text.IsSHA(st.SeedSHA) || !strings.HasPrefix(tip, st.SeedSHA) {
		if st.Commits, st.SeedKnown, err = commitsSince(ctx, g, common, tip, st.SeedSHA); err != nil {
			return err
		}
	} else {
		st.SeedKnown = true
	}
	if !st.SeedKnown {
		// Rebased, by a person. What this session left at the tip can still be told by its trailers.
		if st.Commits, err = g.Log(ctx, common, tip, "", tipCommits); err != nil {
			return err
		}
	}
	st.Inherited = inherited(ctx, g, common, st.SeedSHA, st.Commits, check)
	if len(st.Commits) > 0 {
		if st.ByWorker, err = g.WorkerCommits(ctx, common, branch); err != nil {
			return err
		}
	}
	if st.Tree == treeFine && check.Status != session.Prepared && MakePlan(*st).mayRedo() {
		if st.Dirty, err = g.IsDirty(ctx, path); err != nil {
			return err
		}
	}
	if a := MakePlan(*st).CommitTree; a != nil && st.Tree == treeFine {
		st.AcceptedStale = isStale(ctx, g, common, path, branch, a.Tree, a.Base)
	}
	if c := MakePlan(*st).Review; c != nil {
		st.CaseStale = isStale(ctx, g, common, path, branch, c.Tree, c.Base)
	}
	return nil
}

// isStale reports whether the files are neither the accepted tree nor, in a worktree that was lost and made again, what
// it was judged on. What cannot be found out is left to the roll-forward, which looks again.
func isStale(ctx context.Context, g *gitx.Git, common, path, branch, tree, on string) bool {
	wt, err := g.Worktree(ctx, common, path, branch)
	if err != nil {
		return false
	}
	now, err := g.PreviewTree(ctx, wt, on, "")
	if err != nil || now == tree {
		return false
	}
	base, err := g.RevParse(ctx, common, on+"^{tree}")
	return err == nil && now != base
}

// tipCommits is how far the tip is looked at for placeholders where the seed is not known.
const tipCommits = 50

// readWorktree finds out what more there is to know of the worktree, depending on its state.
func (st *State) readWorktree(ctx context.Context, g *gitx.Git, s *session.Session, common, path string) (err error) {
	switch st.Tree {
	case treeFine, treeElsewhere:
		if wt, err := g.Worktree(ctx, common, path, ""); err == nil {
			st.Unfinished = unfinished(wt)
		}
		return nil
	case treePlain:
		linked, err := lostLink(ctx, g, common, path)
		if err != nil {
			return err
		}
		if linked {
			st.Tree = treeUnregistered
			return nil
		}
	}
	st.BranchIn, st.BranchHint, err = checkedOutIn(ctx, g, s, common, path, "git tilth resume "+s.ID)
	return err
}

// lostLink reports whether path is a worktree whose .git file alone is gone: the repository still has its entry, and
// most of the files of the entry's index are there. A directory that something else made in the place of a worktree
// that is gone has few of them or none.
func lostLink(ctx context.Context, g *gitx.Git, common, path string) (bool, error) {
	admin, found := gitx.AdminDir(common, path)
	if !found || exists(filepath.Join(path, ".git")) {
		return false, nil
	}
	list := func(which string) ([]string, error) {
		c := gitx.InRepo(admin, "--work-tree="+path, "ls-files", "-z", "--deduplicate", which)
		c.Dir = path
		return g.List(ctx, c)
	}
	all, err := list("--cached")
	if err != nil || len(all) == 0 {
		return false, nil // an entry or an index that cannot be read proves nothing
	}
	gone, err := list("--deleted")
	return err == nil && len(gone)*2 < len(all), err
}

// checkedOutIn says in which other worktree the session's branch is checked out, and how to free it for the command
// again; "" if in none.
func checkedOutIn(ctx context.Context, g *gitx.Git, s *session.Session, common, path, again string) (place,
	hint string, err error) {
	entries, err := g.Worktrees(ctx, common, path)
	if err != nil {
		return "", "", err
	}
	for _, e := range entries {
		if e.Branch != s.Branch() || e.Prunable || gitx.SamePath(e.Path, path) || isHalfEntry(s, e) {
			continue
		}
		if dir := filepath.Dir(e.Path); isCopyOf(s, dir) {
			return e.Path,
				"TILTH_SESSIONS_DIR=" + text.ShellQuote(filepath.Dir(dir)) + " git tilth resume " + s.ID, nil
		}
		free := gitLine(e.Path, "switch", "--detach")
		admin, _ := gitx.AdminDir(common, e.Path)
		if strings.TrimRight(filepath.Base(admin), "0123456789") == session.WorkspaceDir {
			// git keeps an entry's name when a worktree is moved: this is the session's own, with its uncommitted work.
			free = gitLine(common, "worktree", "move", e.Path, path)
		}
		return e.Path, free + " && " + again, nil
	}
	return "", "", nil
}

// isHalfEntry reports whether git's entry is one that newEntry was making.
func isHalfEntry(s *session.Session, e gitx.WorktreeEntry) bool {
	return gitx.SamePath(e.Path, s.Path(entryDir, session.WorkspaceDir))
}

// gitLine is a git command as a line that can be pasted into a shell.
func gitLine(dir string, args ...string) string {
	return text.ShellQuote(append([]string{"git", "-C", dir}, args...)...)
}

// commitsSince lists a branch's commits after the seed, newest first, and reports whether the seed is on its
// first-parent line at all. The seed may be recorded with an abbreviated id.
func commitsSince(ctx context.Context, g *gitx.Git, common, tip, seed string) ([]gitx.Commit, bool, error) {
	full, err := resolveSeed(ctx, g, common, seed)
	if err != nil {
		// A seed that the repository does not have, or that is not an id at all, is a fact about the session, not a
		// failure to read it.
		return nil, false, nil
	}
	commits, err := g.Log(ctx, common, tip, full, 0)
	if err != nil || len(commits) == 0 {
		return commits, full == tip, err
	}
	last := commits[len(commits)-1]
	known := len(last.Parents) > 0 && last.Parents[0] == full
	if !known {
		commits = nil
	}
	return commits, known, nil
}

// mayRedo reports whether the answer to "is the worktree dirty" makes a difference, which is worth a git command.
func (p Plan) mayRedo() bool {
	s := p.State
	s.Dirty = true
	dirty := MakePlan(s)
	return p.Redo != dirty.Redo || p.SetAside != dirty.SetAside
}

// treeState says what stands at the worktree's path, and what its HEAD is on if that is elsewhere.
func treeState(ctx context.Context, g *gitx.Git, common, path, branch string) (TreeState, string) {
	_, err := g.Worktree(ctx, common, path, branch)
	if err == nil {
		return treeFine, ""
	}
	if wt, err := g.Worktree(ctx, common, path, ""); err == nil {
		return treeElsewhere, wt.Head
	}
	if errors.Is(err, gitx.ErrNotFound) {
		return treeMissing, ""
	}
	if fi, err := os.Lstat(filepath.Join(path, ".git")); err == nil && fi.Mode().IsRegular() {
		return treeUnregistered, ""
	}
	return treePlain, ""
}

// unfinished names what was left unfinished in a worktree: "merge", "rebase" and so on, "" for nothing.
func unfinished(wt gitx.Worktree) string {
	for _, o := range []struct{ file, name string }{
		{"rebase-merge", "rebase"}, {"rebase-apply", "rebase"}, {"MERGE_HEAD", "merge"},
		{"CHERRY_PICK_HEAD", "cherry-pick"},
		{"REVERT_HEAD", "revert"}, {"BISECT_LOG", "bisection"},
	} {
		if _, err := os.Lstat(filepath.Join(wt.AdminDir, o.file)); err == nil {
			return o.name
		}
	}
	return ""
}
