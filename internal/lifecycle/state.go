// Package lifecycle makes, resumes, rewinds and removes sessions, on disk and in git. The comment of every operation
// lists the state on disk after each step, so that the next command can continue after a kill.
package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
)

// readAttempts reads the last attempt from the record. An attempt in a lane continues there, and the session's worktree
// has none of its work. The record decides which attempts these are, whether or not their lanes exist. An accepted tree
// is committed from the record: first that of a task_done, else one that was judged on the branch's tip.
func (s *State) readAttempts() {
	s.LastTask, s.Last = s.Record.LastTask, s.Record.Tasks[s.Record.Head].Attempt
	if s.InLane(s.LastTask) {
		s.LastTask = ""
	}
	if s.InLane(s.Record.Head) {
		s.Last = record.Attempt{Begun: s.Last.Begun}
	}
	if s.Last.Waits {
		s.Accepted, s.Noted = s.Last.Verdict, s.Last.Noted
	}
	for _, t := range s.Tasks {
		a := s.Record.Tasks[t.ID].Attempt
		if a.Begun.Lane && a.Waits && a.RefusedBy == nil &&
			(a.Noted || s.Accepted == nil && a.Verdict.Base == s.BranchTip) {
			s.Accepted, s.Noted = a.Verdict, a.Noted
		}
	}
}

// InLane reports whether the last attempt at a task was in a lane, by the record.
func (s *State) InLane(task string) bool { return s.Record.Tasks[task].Attempt.Begun.Lane }

// ReadState reads the State of a session. It changes nothing and takes no lock. Its cost does not grow with the
// record, because summary.json has the record's state at the last stop.
func ReadState(ctx context.Context, g *gitx.Git, s *session.Session, check *session.Checkpoint) (State, error) {
	st := State{SessionID: s.ID, Branch: s.Branch(), Status: check.Status, Resetting: held.Resetting(s)}
	var err error
	if st.GoingBack, err = goingBack(s); err != nil {
		return st, err
	}
	tasks, err := s.Tasks()
	file := s.Path(session.TasksFile)
	// An edited plan must neither count as done nor repeat a task.
	if broken := session.ValidateIDs(tasks); err == nil && len(broken) > 0 {
		err = fmt.Errorf("%s: %s", file, broken[0])
	}
	if err != nil {
		st.TasksError = err.Error()
		if held.Exists(file) {
			st.fixTasks = "${EDITOR:-vi} " + text.ShellQuote(file) + " && git tilth resume " + s.ID + "\n"
		}
	}
	st.Tasks = tasks
	if st.Record, err = s.State(); err != nil {
		return st, err
	}
	if st.Status == session.Prepared && st.Record.Ran {
		st.Status = session.Running // the checkpoint was edited
	}
	if stop := st.Record.Stop; stop != nil {
		st.LastStop = stop.Reason
	}
	if st.Record.Seed != nil {
		st.SeedSHA, st.NoBase = st.Record.Seed.SHA, st.Record.Base == ""
	} else {
		messages, _ := s.ReadTranscript(record.RoleInterview, "") // an unreadable interview cannot be continued
		st.Interviewed, st.Recreate = len(messages) > 0, check.Recreate
	}
	common, err := held.CommonOf(s, check)
	if errors.Is(err, held.ErrSourceGone) || errors.Is(err, held.ErrSourceUnknown) {
		st.SourceGone, st.SourceHint = err.Error(), held.SourceHint(s, held.WorkspaceOf(s, check))
		st.Worked, err = held.Worked(ctx, g, s, check, "", "")
		return st, err
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

func (st *State) readGit(ctx context.Context, g *gitx.Git, s *session.Session, check *session.Checkpoint,
	common string) error {
	branch := s.Branch()
	tip, ok, err := g.BranchTip(ctx, common, branch)
	if err != nil {
		return err
	}
	st.BranchTip = tip // "" for none
	if st.Lanes, err = held.BegunLanes(ctx, g, s, common); err != nil {
		return err
	}
	st.readAttempts()
	path := held.WorkspaceOf(s, check)
	st.Tree, st.treeOn = held.TreeAt(ctx, g, common, path, branch)
	if held.Remaking(s) {
		st.Tree, st.treeOn = held.TreeMissing, ""
	}
	if !ok {
		st.LastDone = lastDone(ctx, g, common, st.Record)
		if on := held.Renamed(ctx, g, common, s, path, cmp.Or(st.LastDone, st.SeedSHA)); on != "" {
			st.renameBack = held.RenameBack(common, on, s)
		}
		return nil
	}
	if err := st.readWorktree(ctx, g, s, common, path); err != nil {
		return err
	}
	if st.SeedSHA == "" {
		st.Worked, err = held.Worked(ctx, g, s, check, common, tip)
		return err
	}
	if !text.IsSHA(st.SeedSHA) || !strings.HasPrefix(tip, st.SeedSHA) {
		var seed gitx.Commit
		if st.Commits, seed, err = held.CommitsSince(ctx, g, common, tip, st.SeedSHA); err != nil {
			return err
		}
		st.SeedKnown = seed.SHA != ""
	} else {
		st.SeedKnown = true
	}
	if !st.SeedKnown {
		// The user has rebased. The session's commits at the tip are still known by their trailers.
		if st.Commits, err = g.Log(ctx, common, tip, "", tipCommits); err != nil {
			return err
		}
	}
	if len(st.Commits) > 0 {
		if st.ByWorker, err = g.WorkerCommits(ctx, common, branch); err != nil {
			return err
		}
	}
	if st.Tree == held.TreeFine && st.Status != session.Prepared && st.leavesWork() {
		if st.Dirty, err = g.IsDirty(ctx, path); err != nil {
			return err
		}
	}
	if a := MakePlan(*st).CommitTree; a != nil && st.InLane(a.TaskID) {
		st.AcceptedStale = isStale(ctx, g, common, held.LanePath(s, a.TaskID), "", a.Tree, a.Base)
	} else if a != nil && st.Tree == held.TreeFine {
		st.AcceptedStale = isStale(ctx, g, common, path, branch, a.Tree, a.Base)
	}
	if c := MakePlan(*st).Review; c != nil {
		st.CaseStale = isStale(ctx, g, common, path, branch, c.Tree, c.Base)
	}
	return nil
}

// lastDone returns the last commit of a finished task, "" if there is none or the repository has lost one.
func lastDone(ctx context.Context, g *gitx.Git, common string, r *record.State) string {
	last := gitx.InRepo(common, "rev-list", "--topo-order", "--max-count=1", "--end-of-options")
	none := len(last.Args)
	for _, t := range r.Tasks {
		if t.Status == record.Done && t.Commit != "" {
			last.Args = append(last.Args, t.Commit)
		}
	}
	if len(last.Args) == none {
		return ""
	}
	sha, err := g.Line(ctx, last)
	if err != nil {
		return ""
	}
	return sha
}

// isStale reports whether the files differ from the accepted tree and, in a recreated worktree, from its base. If that
// is unknown it returns false, and the roll-forward checks again.
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

// tipCommits limits the search for placeholders at the tip without a known seed.
const tipCommits = 50

// readWorktree fills in the worktree's facts, depending on its state.
func (st *State) readWorktree(ctx context.Context, g *gitx.Git, s *session.Session, common, path string) (err error) {
	switch st.Tree {
	case held.TreeFine, held.TreeElsewhere:
		if wt, err := g.Worktree(ctx, common, path, ""); err == nil {
			st.Unfinished = held.InProgress(wt)
		}
		return nil
	case held.TreePlain:
		linked, err := held.LostLink(ctx, g, common, path)
		if err != nil {
			return err
		}
		if linked {
			st.Tree = held.TreeUnregistered
			return nil
		}
	}
	st.BranchIn, st.BranchHint, err = held.CheckedOutIn(ctx, g, s, common, path, "git tilth resume "+s.ID)
	return err
}

// Open locks a session for this process, ends leftover processes of a killed one in its worktree, restores the
// worktree's .git file, and completes a seed after a kill behind its commit. The error is a *session.BusyError if
// another process has the session.
func Open(ctx context.Context, d held.Deps, s *session.Session) (*held.Handle, error) {
	lock, err := os.Lstat(s.Path(session.LockFile))
	killed := err == nil && lock.Size() > 0 // the holder was killed, whatever the session's status
	unlock, err := held.Lock(d, s)
	if err != nil {
		return nil, err
	}
	h := &held.Handle{Deps: d, S: s, Unlock: unlock}
	if err := open(ctx, h, killed); err != nil {
		h.Close()
		return nil, err
	}
	return h, nil
}

func open(ctx context.Context, h *held.Handle, killed bool) (err error) {
	reset := "git tilth reset " + h.S.ID
	if h.Checkpoint, err = h.S.Checkpoint(); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = errors.New("checkpoint.json is missing")
		}
		return held.Refuse(reset, "session %s is damaged: %s", h.S.ID, err)
	}
	h.Common, h.SourceErr = held.CommonOf(h.S, h.Checkpoint)
	h.AdoptSource()
	if h.Git.IsDryRun() {
		return nil
	}
	if killed || h.Checkpoint.Status == session.Running || held.Unfinished(h.S) {
		endLeftovers(placesOf(h.S, h.Path())...)
	}
	err = h.PutBackDotGit(ctx, h.Path())
	if err == nil {
		err = held.DropUnreadable(ctx, h)
	}
	if err != nil {
		return err
	}
	if err := recordSeed(ctx, h); ctx.Err() != nil {
		return err
	} else if err != nil {
		return &held.StepError{Step: "the seed of session " + h.S.ID, Err: err, Hint: reset}
	}
	return nil
}

// Stopped writes the end of a run: the stop, synced, then the checkpoint.
func Stopped(h *held.Handle, status string, stop record.Stop) error {
	dropping := held.DropLanes(h) // first, because no later resume examines an all_done session
	if err := h.Record.Append(&stop); err != nil {
		return err
	}
	h.Checkpoint.Status = status
	if err := errors.Join(h.Save(), held.DropDoneStashes(h), dropping); err != nil {
		return err
	}
	return h.S.WriteSummary()
}
