package lifecycle

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
)

// A lane is a worktree in which one task is worked on beside others, lanes/<task>/, with HEAD detached at the commit on
// which the task's attempt stands: the one that the record names last, in context_reset or lane_merged. Its change
// comes to the session's worktree only to be committed there; between two commits that one is as the branch's tip.
//
// On disk while a lane is made, and what a resume makes of it:
//  1. the mark lanes/.new/<task>      whatever stands there has no work in it, and is removed
//  2. the worktree, set up            the same
//  3. context_reset on record         the same
//  4. no mark                         a lane; its task goes on there
//
// While it is brought to what its change becomes on a newer tip (MoveLane):
//  1. lane_merged on record           done from here: what differs between was and tree, where the files are as in was
//  2. index and files                 the same, which changes nothing
//  3. HEAD at the new base            as the record says
//
// While its change is committed:
//  1. the verdict                     the lane has the work; a session's worktree that has the accepted tree goes back
//  2. the commit                      the task is done, by its trailers
//  3. the lane removed                a lane of a task that is done is removed by the next resume
//
// Whatever else means the whole session, as going back, a fork or a push, sets aside what lanes hold first
// (SetLanesAside), like the work of a task that failed: the next attempt has it back.

// Places beside the lanes: marks of those that are being made, and where their changes are judged.
const (
	newLanes     = ".new"
	judgingLanes = ".judge"
)

// LanePath is where a task's lane is, or would be.
func LanePath(s *session.Session, task string) string { return s.Path(session.LanesDir, task) }

// LaneJudging is where changes of a task's lane are judged.
func LaneJudging(s *session.Session, task string) string {
	return s.Path(session.LanesDir, judgingLanes, task)
}

// Lanes lists the tasks that have a lane, in the order of their ids.
func Lanes(s *session.Session) (tasks []string) {
	return laneNames(s.Path(session.LanesDir))
}

// begunLanes are those of them in which an attempt was begun.
func begunLanes(s *session.Session) []string {
	half := laneNames(s.Path(session.LanesDir, newLanes))
	return slices.DeleteFunc(Lanes(s), func(task string) bool { return slices.Contains(half, task) })
}

func laneNames(dir string) (tasks []string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if session.ValidTaskID(e.Name()) {
			tasks = append(tasks, e.Name())
		}
	}
	return tasks
}

// HasLane reports whether a task has a lane.
func HasLane(s *session.Session, task string) bool { return exists(LanePath(s, task)) }

// MakeLane makes the lane of a task, at a commit, with the setup of any worktree. From LaneBegun on it is one that a
// resume goes on with.
func (h *Handle) MakeLane(ctx context.Context, task, commit string, env ...string) error {
	path, mark := LanePath(h.S, task), h.S.Path(session.LanesDir, newLanes, task)
	err := os.MkdirAll(filepath.Dir(mark), 0o700)
	if err == nil {
		err = jsonl.WriteFile(mark, nil)
	}
	var wt gitx.Worktree
	if err == nil {
		h.entries.Lock()
		wt, err = h.Git.AddDetached(ctx, h.Common, path, commit)
		h.entries.Unlock()
	}
	if err == nil {
		err = h.Git.ReadTree(ctx, wt, commit, true)
	}
	if err == nil {
		err = h.RunSetup(ctx, path, env...)
	}
	return err
}

// LaneBegun takes the mark from a task's lane, whose attempt is on record now; "" is none.
func (h *Handle) LaneBegun(task string) error {
	if task == "" {
		return nil
	}
	return proc.RemoveAll(h.S.Path(session.LanesDir, newLanes, task))
}

// RemoveLane removes a task's lane, with what there is in it and of it.
func (h *Handle) RemoveLane(ctx context.Context, task string) error {
	path := LanePath(h.S, task)
	h.entries.Lock()
	err := h.Git.RemoveWorktree(ctx, h.Common, path, "")
	h.entries.Unlock()
	if err != nil {
		return err
	}
	judging := LaneJudging(h.S, task)
	err = errors.Join(proc.RemoveAll(judging), proc.RemoveAll(path),
		proc.RemoveAll(h.S.Path(session.LanesDir, newLanes, task)))
	for _, of := range []string{path, judging} {
		rel, _ := filepath.Rel(h.S.Dir, of)
		layers := strings.ReplaceAll(rel, string(filepath.Separator), "-")
		err = errors.Join(err, proc.RemoveAll(h.S.Path(session.CachesDir, layers)))
	}
	return err
}

// dropLanesDir removes the directory of lanes where it has none any more.
func (h *Handle) dropLanesDir() {
	for _, dir := range []string{judgingLanes, newLanes, ""} {
		_ = os.Remove(h.S.Path(session.LanesDir, dir))
	}
}

// LaneWorktree is a task's lane, checked: registered with the source, at its path.
func (h *Handle) LaneWorktree(ctx context.Context, task string) (gitx.Worktree, error) {
	path := LanePath(h.S, task)
	if err := h.putBackDotGit(ctx, path); err != nil {
		return gitx.Worktree{}, err
	}
	return h.Git.Worktree(ctx, h.Common, path, "")
}

// FoldLane takes what a worker committed by itself in a lane back into the index: HEAD is at base again.
func (h *Handle) FoldLane(ctx context.Context, wt gitx.Worktree, base string) error {
	head, err := h.Git.RevParse(ctx, wt.AdminDir, "HEAD^{commit}")
	switch {
	case err == nil && head == base && wt.Head == "":
		return nil
	case err == nil:
		err = h.CatchUp(ctx, wt, head, base)
	case errors.Is(err, gitx.ErrNotFound): // on a branch without a commit
		err = nil
	}
	if err != nil {
		return err
	}
	return h.Git.Detach(ctx, wt, base)
}

// Merge is what a change becomes on another commit.
type Merge struct {
	Tree      string
	Conflicts []string // files in which the two do not go together; in Tree they have markers
	Marker    string   // the label of the change's side in those
}

// MergeOnto says what the change from the commit base to a tree becomes on the commit tip, which base is an ancestor
// of. It happens in kept.git, without any setting and without a working tree, so that no attribute and no driver has a
// say. The label is drawn anew each time.
func (h *Handle) MergeOnto(ctx context.Context, base, tree, tip string) (m Merge, err error) {
	dir := h.S.Path(keptGitDir)
	if m.Marker, err = h.sideOf(ctx, base, tree); err != nil {
		return m, err
	}
	// The tree is for the user's repository, where it will be committed.
	both := commitBuilder{git: h.Git, repo: dir, vars: append(slices.Clone(gitx.NoUserConfig), "GIT_ATTR_NOSYSTEM=1",
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=core.attributesFile", "GIT_CONFIG_VALUE_0="+os.DevNull,
		"GIT_OBJECT_DIRECTORY="+filepath.Join(h.Common, "objects"),
		"GIT_ALTERNATE_OBJECT_DIRECTORIES="+gitx.Quote(filepath.Join(dir, "objects")))}
	m.Tree, m.Conflicts, err = both.merge(ctx, tip, m.Marker)
	return m, err
}

// sideOf makes the commit of a lane's side of a merge in kept.git, where one writes at a time.
func (h *Handle) sideOf(ctx context.Context, base, tree string) (sha string, err error) {
	h.lanes.Lock()
	defer h.lanes.Unlock()
	in, err := h.keptGit()
	if err != nil {
		return "", err
	}
	side := commitBuilder{git: h.Git, repo: in.dir, vars: slices.Clone(gitx.NoUserConfig)}
	sha, err = side.commit(ctx, gitx.TreeCommit{Tree: tree, Parent: base, Message: rand.Text() + "\n"},
		h.Git.Identity(ctx, "", false))
	if err == nil { // as all files of a session
		err = os.Chmod(filepath.Join(in.dir, "objects", sha[:2], sha[2:]), 0o600)
	}
	return sha, err
}

// MoveLane brings a lane to what a lane_merged says; now is the tree that it holds. Files that are not as they were
// then are somebody's work since and stay.
func (h *Handle) MoveLane(ctx context.Context, wt gitx.Worktree, e *record.LaneMerged, now string) error {
	if err := h.Git.CatchUp(ctx, wt, e.Was, e.Tree, now); err != nil {
		return err
	}
	return h.Git.Detach(ctx, wt, e.Base)
}

// lane is a lane that stands, brought to where the record says that it is.
func (h *Handle) lane(ctx context.Context, task string, a record.Attempt) (gitx.Worktree, error) {
	path := LanePath(h.S, task)
	known, err := h.Git.Relink(ctx, h.Common, path)
	if err == nil && !known {
		err = h.laneEntry(ctx, task, a.Base())
	}
	if err != nil {
		return gitx.Worktree{}, err
	}
	wt, err := h.LaneWorktree(ctx, task)
	if err == nil {
		err = h.Git.ClearInProgress(ctx, wt)
	}
	if err != nil {
		return wt, err
	}
	head, err := h.Git.RevParse(ctx, wt.AdminDir, "HEAD^{commit}")
	if err != nil && !errors.Is(err, gitx.ErrNotFound) {
		return wt, err
	}
	if m := a.Merged; m != nil && head != m.Base {
		if err := h.FoldLane(ctx, wt, m.From); err != nil {
			return wt, err
		}
		now, _, err := h.Git.StageAll(ctx, wt, m.From)
		if err != nil {
			return wt, err
		}
		return wt, h.MoveLane(ctx, wt, m, now)
	}
	return wt, h.FoldLane(ctx, wt, a.Base())
}

// laneEntry gives a lane whose entry was pruned a new one, its files kept, as newEntry does.
func (h *Handle) laneEntry(ctx context.Context, task, base string) error {
	at := h.S.Path(entryDir, task)
	if err := h.clearPlace(ctx, at); err != nil {
		return err
	}
	wt, err := h.Git.AddDetached(ctx, h.Common, at, base)
	if err == nil {
		err = h.Git.ReadTree(ctx, wt, base, false)
	}
	if err == nil {
		err = h.Git.MoveEntry(wt, LanePath(h.S, task))
	}
	return errors.Join(err, os.RemoveAll(h.S.Path(entryDir)))
}

// settleLanes brings what a run with lanes left to where the next one goes on: no lane that is half made, none of a
// task that is done or not to be done, and a session's worktree that is as the branch's tip.
func (x *execution) settleLanes(ctx context.Context) error {
	if x.Git.IsDryRun() || !exists(x.S.Path(session.LanesDir)) {
		return nil
	}
	if err := x.removeHalfMade(ctx); err != nil {
		return err
	}
	if x.out.Begun == "" {
		if err := x.cleanWorktree(ctx); err != nil {
			return err
		}
	}
	tasks, err := x.S.Tasks()
	if err != nil {
		return err
	}
	for _, task := range Lanes(x.S) {
		i := slices.IndexFunc(tasks, func(t session.Task) bool { return t.ID == task })
		switch {
		case i >= 0 && tasks[i].Status == session.TaskDone:
			err = x.RemoveLane(ctx, task)
		case i < 0 || tasks[i].Status == session.TaskSkipped:
			err = x.setLaneAside(ctx, task, x.out.Record.Tasks[task].Attempt)
		default:
			_, err = x.lane(ctx, task, x.out.Record.Tasks[task].Attempt)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// CleanWorktree is the session's worktree as it is between two commits of lanes: like the branch's tip. What somebody
// did there is set aside.
func (h *Handle) CleanWorktree(ctx context.Context, accepted func(tree string) bool) (wt gitx.Worktree, err error) {
	if wt, err = h.Worktree(ctx); err != nil {
		return wt, err
	}
	dirty, err := h.Git.IsDirty(ctx, wt.Path)
	if err != nil || !dirty {
		return wt, err
	}
	tip, ok, err := h.Git.BranchTip(ctx, wt.Common, wt.Branch)
	if err != nil || !ok {
		return wt, errors.Join(err, fs.ErrNotExist)
	}
	tree, _, err := h.Git.StageAll(ctx, wt, tip)
	if err != nil {
		return wt, err
	}
	if accepted(tree) {
		return wt, h.Git.Reset(ctx, wt, tip, true)
	}
	ref, _, err := h.SetAside(ctx, wt, session.WorkspaceDir, tip)
	if err != nil || ref == "" {
		return wt, err
	}
	return wt, h.append(&record.LogRepaired{What: "the worktree held changes of nobody's task",
		Done: "set aside in " + ref + " of kept.git"})
}

// cleanWorktree does that with what a killed commit left: an accepted tree, which a lane has.
func (x *execution) cleanWorktree(ctx context.Context) error {
	_, err := x.CleanWorktree(ctx, func(tree string) bool {
		for _, task := range Lanes(x.S) {
			if slices.Contains(x.out.Record.Tasks[task].Trees, tree) {
				return true
			}
		}
		return false
	})
	return err
}

// setLaneAside takes what a lane holds for its task's partial work, and removes the lane.
func (h *Handle) setLaneAside(ctx context.Context, task string, a record.Attempt) error {
	if a.Base() != "" {
		wt, err := h.lane(ctx, task, a)
		if err != nil {
			return err
		}
		ref, _, err := h.SetAside(ctx, wt, task, a.Base())
		if err != nil {
			return err
		}
		if ref != "" {
			if err := h.append(&record.LogRepaired{What: "the lane of " + task + " held work",
				Done: "set aside in " + ref + " of kept.git"}); err != nil {
				return err
			}
		}
	}
	return h.RemoveLane(ctx, task)
}

// SetLanesAside does that with all lanes, before what means the whole session.
func (h *Handle) SetLanesAside(ctx context.Context) error {
	if h.Git.IsDryRun() || !exists(h.S.Path(session.LanesDir)) {
		return nil
	}
	state, err := h.S.State()
	if err == nil {
		err = h.removeHalfMade(ctx)
	}
	if err != nil {
		return err
	}
	for _, task := range Lanes(h.S) {
		if err := h.setLaneAside(ctx, task, state.Tasks[task].Attempt); err != nil {
			return err
		}
	}
	h.dropLanesDir()
	return nil
}

// removeHalfMade removes the lanes of which a process that died had made, or left, a part.
func (h *Handle) removeHalfMade(ctx context.Context) error {
	half := laneNames(h.S.Path(session.LanesDir, newLanes))
	for _, task := range laneNames(h.S.Path(session.LanesDir, judgingLanes)) {
		if !HasLane(h.S, task) {
			half = append(half, task)
		}
	}
	for _, task := range half {
		if err := h.RemoveLane(ctx, task); err != nil {
			return err
		}
	}
	return proc.RemoveAll(h.S.Path(session.LanesDir, newLanes)) // marks that were half written
}

// removeLanes removes all lanes with what they hold.
func (h *Handle) removeLanes(ctx context.Context) error {
	for _, task := range Lanes(h.S) {
		if err := h.RemoveLane(ctx, task); err != nil {
			return err
		}
	}
	return proc.RemoveAll(h.S.Path(session.LanesDir))
}

// leaveToLanes takes out of the history what an attempt in a lane has left: it goes on there, and the session's
// worktree has nothing of it.
func (s *State) leaveToLanes() {
	h := &s.History
	if slices.Contains(s.Lanes, h.LastTask) {
		h.LastTask = ""
	}
	if slices.Contains(s.Lanes, s.Record.Head) {
		h.Accepted, h.Noted, h.Case, h.Refused, h.RefusedBy = nil, false, nil, nil, nil
	}
}
