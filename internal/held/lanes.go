package held

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
)

// A lane is the worktree of one of several running tasks, lanes/<task>/, with HEAD detached at the attempt's base: the
// commit in the last context_reset or lane_merged. Its change is copied to the session's worktree only for the
// commit. Between two commits, the session's worktree equals the branch's tip.
//
// The state on disk while a lane is made, and a resume's reaction:
//  1. the mark lanes/.new/<task>      the directory has no work and is removed
//  2. the worktree, set up            the same
//  3. context_reset on record         the same
//  4. no mark                         a lane; its task continues there
//
// While its change is merged onto a newer tip (MoveLane):
//  1. lane_merged on record           finishes: writes the differences between was and tree, in files equal to was
//  2. some of the files               the same; missing and half written files are written
//  3. index and files                 the same, which changes nothing
//  4. HEAD at the new base            as the record says
//
// While its change is committed:
//  1. the verdict                     commits the tree if the branch is still where it was judged (MakePlan); else the
//     lane has the work, and a session's worktree with the accepted tree is reset
//  2. task_done                       the same, without another task_done
//  3. the commit                      the task is done, by its trailers
//  4. the mark lanes/.new/<task>      removes the lane of a finished task
//  5. the lane removed                removes the entry, by the mark or by git's entry alone; so does reset
//  6. the entry and the mark removed  nothing
//
// Commands on the whole session, such as a rewind, a fork or a push, first stash the lanes' work (StashLanes), like
// the work of a failed task. The next attempt gets it back.

// Directories next to the lanes: marks of unfinished lanes, and the judged checkouts, by the lanes' numbers. The latter
// serve one process.
const (
	newLanes     = ".new"
	judgingLanes = ".judge"
)

// LanePath returns the path of a task's lane, which may not exist.
func LanePath(s *session.Session, task string) string { return s.Path(session.LanesDir, task) }

// LaneJudge returns the judged checkout of the lane with a number.
func LaneJudge(s *session.Session, number int) string {
	return s.Path(session.LanesDir, judgingLanes, strconv.Itoa(number))
}

// LaneJudgeOnSeed returns the lane's judged checkout with the seed's dependencies; 0 is the session's own worktree.
func LaneJudgeOnSeed(s *session.Session, number int) string {
	return s.Path(session.LanesDir, judgingLanes, "seed-"+strconv.Itoa(number))
}

// LaneJudges returns the existing judged checkouts of lanes.
func LaneJudges(s *session.Session) (places []string) {
	entries, _ := os.ReadDir(s.Path(session.LanesDir, judgingLanes))
	for _, e := range entries {
		places = append(places, s.Path(session.LanesDir, judgingLanes, e.Name()))
	}
	return places
}

// Lanes lists the tasks that have a lane's directory, in the order of their ids.
func Lanes(s *session.Session) []string { return laneNames(s.Path(session.LanesDir)) }

// AllLanes lists the tasks with any part of a lane: its directory, its mark, or an entry of the repository at common,
// which may exist without the others.
func AllLanes(s *session.Session, common string) []string {
	tasks := slices.Concat(Lanes(s), laneNames(s.Path(session.LanesDir, newLanes)))
	for _, path := range gitx.WorktreesBelow(common, s.Path(session.LanesDir)) {
		if task := filepath.Base(path); path == LanePath(s, task) && session.ValidTaskID(task) {
			tasks = append(tasks, task)
		}
	}
	slices.Sort(tasks)
	return slices.Compact(tasks)
}

// BegunLanes lists the tasks with an attempt in a lane: it has no mark, and the directory is a worktree. An emptied
// directory without its .git file has no work.
func BegunLanes(ctx context.Context, g *gitx.Git, s *session.Session, common string) (tasks []string, err error) {
	half := laneNames(s.Path(session.LanesDir, newLanes))
	for _, task := range Lanes(s) {
		is := Exists(filepath.Join(LanePath(s, task), ".git"))
		if !is {
			is, err = LostLink(ctx, g, common, LanePath(s, task))
		}
		if err != nil {
			return nil, err
		}
		if is && !slices.Contains(half, task) {
			tasks = append(tasks, task)
		}
	}
	return tasks, nil
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
func HasLane(s *session.Session, task string) bool { return Exists(LanePath(s, task)) }

// MakeLane creates the lane of a task at a commit and sets it up. From LaneBegun on, a resume continues it.
func MakeLane(ctx context.Context, h *Handle, task, commit string, env ...string) error {
	path, err := LanePath(h.S, task), mark(h, task)
	var wt gitx.Worktree
	if err == nil {
		h.EntriesLock.Lock()
		wt, err = h.Git.AddWorktree(ctx, h.Common, path, "", commit, false)
		h.EntriesLock.Unlock()
	}
	if err == nil {
		err = h.Git.ReadTree(ctx, wt, commit, true)
	}
	if err == nil {
		err = h.RunSetup(ctx, path, env...)
	}
	return err
}

// mark marks a task's lane as being made or removed. The files of a marked lane do not count as work.
func mark(h *Handle, task string) error {
	at := h.S.Path(session.LanesDir, newLanes, task)
	if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
		return err
	}
	return jsonl.WriteFile(at, nil)
}

// LaneBegun removes the mark of a task's lane after its attempt is recorded. With task "" it does nothing.
func LaneBegun(h *Handle, task string) error {
	if task == "" {
		return nil
	}
	return proc.RemoveAll(h.S.Path(session.LanesDir, newLanes, task))
}

// RemoveLane removes a task's lane with its entry. It removes the files first: in a large tree that takes long, and
// other lanes need not wait.
func RemoveLane(ctx context.Context, h *Handle, task string) error {
	path := LanePath(h.S, task)
	if h.Git.IsDryRun() {
		return h.Git.RemoveWorktree(ctx, h.Common, path)
	}
	if err := mark(h, task); err != nil {
		return err
	}
	if err := removePlace(h, path); err != nil {
		return err
	}
	h.EntriesLock.Lock()
	err := h.Git.RemoveWorktree(ctx, h.Common, path)
	h.EntriesLock.Unlock()
	if err != nil {
		return err
	}
	return LaneBegun(h, task)
}

// removePlace removes a directory of commands with its cache layers.
func removePlace(h *Handle, dir string) error {
	rel, _ := filepath.Rel(h.S.Dir, dir)
	layers := strings.ReplaceAll(rel, string(filepath.Separator), "-")
	return errors.Join(proc.RemoveAll(dir), proc.RemoveAll(h.S.Path(session.CachesDir, layers)))
}

// dropJudging removes the judged checkouts of lanes concurrently, because most of the time is waiting for the disk.
func dropJudging(h *Handle) error {
	places := LaneJudges(h.S)
	errs := make([]error, len(places))
	var wg sync.WaitGroup
	for i, place := range places {
		wg.Go(func() { errs[i] = removePlace(h, place) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// DropLanes removes the directory of lanes if it has no lanes.
func DropLanes(h *Handle) error {
	if h.Git.IsDryRun() || len(Lanes(h.S))+len(laneNames(h.S.Path(session.LanesDir, newLanes))) > 0 {
		return nil
	}
	return errors.Join(dropJudging(h), proc.RemoveAll(h.S.Path(session.LanesDir)))
}

// LaneWorktree returns a task's lane, checked: registered with the source, at its path.
func LaneWorktree(ctx context.Context, h *Handle, task string) (gitx.Worktree, error) {
	path := LanePath(h.S, task)
	if err := h.PutBackDotGit(ctx, path); err != nil {
		return gitx.Worktree{}, err
	}
	return h.Git.Worktree(ctx, h.Common, path, "")
}

// MergeOnto merges the change from the commit base to a tree onto the commit tip, a descendant of base. It runs in
// kept.git without settings and without a working tree, so no attribute and no driver applies. The label is random each
// time.
func MergeOnto(ctx context.Context, h *Handle, base, tree, tip string) (gitx.Merge, error) {
	dir := h.S.Path(session.KeptGitDir)
	side, err := KeepSide(ctx, h, base, tree)
	if err != nil {
		return gitx.Merge{}, err
	}
	// The tree is for the user's repository, in which it will be committed.
	both := gitx.CommitsIn(h.Git, dir, append(slices.Clone(gitx.NoUserConfig), "GIT_ATTR_NOSYSTEM=1",
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=core.attributesFile", "GIT_CONFIG_VALUE_0="+os.DevNull,
		"GIT_OBJECT_DIRECTORY="+filepath.Join(h.Common, "objects"),
		"GIT_ALTERNATE_OBJECT_DIRECTORIES="+gitx.Quote(filepath.Join(dir, "objects"))))
	return both.Merge(ctx, tip, side)
}

// MoveLane changes a lane's files as a lane_merged describes, and its HEAD; now is the lane's tree.
func MoveLane(ctx context.Context, h *Handle, wt gitx.Worktree, e *record.LaneMerged, now string) error {
	if err := Bring(ctx, h, wt, e.Was, e.Tree, now); err != nil {
		return err
	}
	return h.Git.Reset(ctx, wt, e.Base, false)
}

// Bring changes the files of a worktree from one tree to another; now is its tree. It keeps files that changed since,
// except files that a killed Bring wrote only half.
func Bring(ctx context.Context, h *Handle, wt gitx.Worktree, from, to, now string) error {
	if err := h.Git.CatchUp(ctx, wt, from, to, now, true); err != nil {
		return err
	}
	return h.Git.FollowModules(ctx, wt)
}

// ResumeLane brings an existing lane to its recorded state.
func ResumeLane(ctx context.Context, h *Handle, task string, a record.Attempt) (gitx.Worktree, error) {
	path := LanePath(h.S, task)
	known, err := h.Git.Relink(ctx, h.Common, path)
	if err == nil && !known {
		err = errors.Join(h.newEntry(ctx, path, a.Base()), os.RemoveAll(h.S.Path(entryDir)))
	}
	if err != nil {
		return gitx.Worktree{}, err
	}
	wt, err := LaneWorktree(ctx, h, task)
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
		if err := h.Fold(ctx, wt, m.From); err != nil {
			return wt, err
		}
		now, _, err := h.Git.StageAll(ctx, wt, m.From)
		if err != nil {
			return wt, err
		}
		return wt, MoveLane(ctx, h, wt, m, now)
	}
	return wt, h.Fold(ctx, wt, a.Base())
}

// CleanWorktree makes the session's worktree equal to the branch's tip, as between two commits of lanes. It stashes
// other changes.
func CleanWorktree(ctx context.Context, h *Handle, accepted func(tree string) bool) (wt gitx.Worktree, err error) {
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
	ref, _, err := Stash(ctx, h, wt, session.WorkspaceDir, tip)
	if err != nil || ref == "" {
		return wt, err
	}
	return wt, h.Append(&record.LogRepaired{What: "the worktree had changes that belong to no task",
		Done: "stashed in " + ref + " of kept.git"})
}

// StashLane stashes a lane's work as its task's partial work, and removes the lane.
func StashLane(ctx context.Context, h *Handle, task string, a record.Attempt) error {
	if a.Base() != "" {
		wt, err := ResumeLane(ctx, h, task, a)
		if err != nil {
			return err
		}
		ref, _, err := Stash(ctx, h, wt, task, a.Base())
		if err != nil {
			return err
		}
		if ref != "" {
			if err := h.Append(&record.LogRepaired{What: "the lane of " + task + " had work",
				Done: "stashed in " + ref + " of kept.git"}); err != nil {
				return err
			}
		}
	}
	return RemoveLane(ctx, h, task)
}

// StashLanes does so for all lanes, before a command on the whole session.
func StashLanes(ctx context.Context, h *Handle) error {
	if len(AllLanes(h.S, h.Common)) == 0 {
		return nil
	}
	if h.Git.IsDryRun() {
		return RemoveLanes(ctx, h)
	}
	state, err := h.S.State()
	if err == nil {
		err = RemoveHalfLanes(ctx, h)
	}
	if err != nil {
		return err
	}
	for _, task := range Lanes(h.S) {
		if err := StashLane(ctx, h, task, state.Tasks[task].Attempt); err != nil {
			return err
		}
	}
	return DropLanes(h)
}

// RemoveHalfLanes removes lanes without work, entries without a directory, and the judged checkouts of a dead process.
// It moves other files from a lane's path.
func RemoveHalfLanes(ctx context.Context, h *Handle) error {
	begun, err := BegunLanes(ctx, h.Git, h.S, h.Common)
	if err != nil {
		return err
	}
	half := laneNames(h.S.Path(session.LanesDir, newLanes))
	gone := slices.DeleteFunc(AllLanes(h.S, h.Common), func(task string) bool { return slices.Contains(begun, task) })
	for _, task := range gone {
		path := LanePath(h.S, task)
		files, _ := os.ReadDir(path)
		if len(files) > 0 && !slices.Contains(half, task) {
			if _, err := h.moveAside(path, h.S.Path(session.WorkspaceDir)); err != nil {
				return err
			}
		}
		if err := RemoveLane(ctx, h, task); err != nil {
			return err
		}
	}
	marks := proc.RemoveAll(h.S.Path(session.LanesDir, newLanes)) // half-written marks
	return errors.Join(marks, dropJudging(h))
}

// RemoveLanes removes all lanes with their content.
func RemoveLanes(ctx context.Context, h *Handle) error {
	for _, task := range AllLanes(h.S, h.Common) {
		if err := RemoveLane(ctx, h, task); err != nil {
			return err
		}
	}
	return DropLanes(h)
}
