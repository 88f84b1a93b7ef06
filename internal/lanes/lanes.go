// Package lanes has the worktrees in which tasks are worked on side by side.
package lanes

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
	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/snapshot"
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
// While it is brought to what its change becomes on a newer tip (Move):
//  1. lane_merged on record           done from here: what differs between was and tree, where the files are as in was
//  2. a part of the files             the same; what is gone or half written is written
//  3. index and files                 the same, which changes nothing
//  4. HEAD at the new base            as the record says
//
// While its change is committed:
//  1. the verdict                     resume commits the tree if the branch is where that was judged (MakePlan); else
//     the lane has the work, and a session's worktree that has the accepted tree goes back
//  2. task_done                       the same, without another task_done
//  3. the commit                      the task is done, by its trailers
//  4. the mark lanes/.new/<task>      a lane of a task that is done is removed by the next resume
//  5. the lane gone                   the mark, or git's entry alone, has the next resume or reset remove the entry
//  6. the entry and the mark gone     nothing
//
// Whatever else means the whole session, as going back, a fork or a push, sets aside what lanes hold first
// (SetAllAside), like the work of a task that failed: the next attempt has it back.

// Places beside the lanes: marks of those that are being made, and where changes are judged, by the lanes' numbers.
// What is in the latter serves one process.
const (
	newLanes     = ".new"
	judgingLanes = ".judge"
)

// Path is where a task's lane is, or would be.
func Path(s *session.Session, task string) string { return s.Path(session.LanesDir, task) }

// Judging is where changes of the lane with a number are judged, whatever its task.
func Judging(s *session.Session, number int) string {
	return s.Path(session.LanesDir, judgingLanes, strconv.Itoa(number))
}

// JudgingPlaces are those that are there.
func JudgingPlaces(s *session.Session) (places []string) {
	entries, _ := os.ReadDir(s.Path(session.LanesDir, judgingLanes))
	for _, e := range entries {
		places = append(places, s.Path(session.LanesDir, judgingLanes, e.Name()))
	}
	return places
}

// Of lists the tasks that have a lane's directory, in the order of their ids.
func Of(s *session.Session) []string { return laneNames(s.Path(session.LanesDir)) }

// All lists the tasks of which there is anything of a lane: its directory, its mark or an entry of the repository at
// common, which outlives both.
func All(s *session.Session, common string) []string {
	tasks := slices.Concat(Of(s), laneNames(s.Path(session.LanesDir, newLanes)))
	for _, path := range gitx.WorktreesBelow(common, s.Path(session.LanesDir)) {
		if task := filepath.Base(path); path == Path(s, task) && session.ValidTaskID(task) {
			tasks = append(tasks, task)
		}
	}
	slices.Sort(tasks)
	return slices.Compact(tasks)
}

// Begun lists the tasks that have an attempt in a lane: no mark says otherwise, and the directory is a worktree. One
// that somebody emptied together with its .git file holds no work.
func Begun(ctx context.Context, g *gitx.Git, s *session.Session, common string) (tasks []string, err error) {
	half := laneNames(s.Path(session.LanesDir, newLanes))
	for _, task := range Of(s) {
		is := held.Exists(filepath.Join(Path(s, task), ".git"))
		if !is {
			is, err = held.LostLink(ctx, g, common, Path(s, task))
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

// Has reports whether a task has a lane.
func Has(s *session.Session, task string) bool { return held.Exists(Path(s, task)) }

// Make makes the lane of a task, at a commit, with the setup of any worktree. From SetBegun on it is one that a
// resume goes on with.
func Make(ctx context.Context, h *held.Handle, task, commit string, env ...string) error {
	path, err := Path(h.S, task), mark(h, task)
	var wt gitx.Worktree
	if err == nil {
		h.EntriesLock.Lock()
		wt, err = h.Git.AddDetached(ctx, h.Common, path, commit)
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

// mark says that what stands in a task's lane is no work: it is being made, or removed.
func mark(h *held.Handle, task string) error {
	at := h.S.Path(session.LanesDir, newLanes, task)
	if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
		return err
	}
	return jsonl.WriteFile(at, nil)
}

// SetBegun takes the mark from a task's lane, whose attempt is on record now; "" is none.
func SetBegun(h *held.Handle, task string) error {
	if task == "" {
		return nil
	}
	return proc.RemoveAll(h.S.Path(session.LanesDir, newLanes, task))
}

// Remove removes a task's lane, with what there is in it and of it: its files first, which takes long in a large tree,
// and no other lane waits for.
func Remove(ctx context.Context, h *held.Handle, task string) error {
	path := Path(h.S, task)
	if h.Git.IsDryRun() {
		return h.Git.RemoveWorktree(ctx, h.Common, path, "")
	}
	if err := mark(h, task); err != nil {
		return err
	}
	if err := removePlace(h, path); err != nil {
		return err
	}
	h.EntriesLock.Lock()
	err := h.Git.RemoveWorktree(ctx, h.Common, path, "")
	h.EntriesLock.Unlock()
	if err != nil {
		return err
	}
	return SetBegun(h, task)
}

// removePlace removes a directory in which commands ran, with what they wrote over the user's caches.
func removePlace(h *held.Handle, dir string) error {
	rel, _ := filepath.Rel(h.S.Dir, dir)
	layers := strings.ReplaceAll(rel, string(filepath.Separator), "-")
	return errors.Join(proc.RemoveAll(dir), proc.RemoveAll(h.S.Path(session.CachesDir, layers)))
}

// dropJudging removes the places in which changes of lanes were judged, all at once: that is mostly waiting for the
// disk.
func dropJudging(h *held.Handle) error {
	places := JudgingPlaces(h.S)
	errs := make([]error, len(places))
	var wg sync.WaitGroup
	for i, place := range places {
		wg.Go(func() { errs[i] = removePlace(h, place) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// DropDir removes the directory of lanes where it has none any more.
func DropDir(h *held.Handle) error {
	if h.Git.IsDryRun() || len(Of(h.S))+len(laneNames(h.S.Path(session.LanesDir, newLanes))) > 0 {
		return nil
	}
	return errors.Join(dropJudging(h), proc.RemoveAll(h.S.Path(session.LanesDir)))
}

// Worktree is a task's lane, checked: registered with the source, at its path.
func Worktree(ctx context.Context, h *held.Handle, task string) (gitx.Worktree, error) {
	path := Path(h.S, task)
	if err := h.PutBackDotGit(ctx, path); err != nil {
		return gitx.Worktree{}, err
	}
	return h.Git.Worktree(ctx, h.Common, path, "")
}

// Fold takes what a worker committed by itself in a lane back into the index: HEAD is at base again.
func Fold(ctx context.Context, h *held.Handle, wt gitx.Worktree, base string) error {
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

// MergeOnto says what the change from the commit base to a tree becomes on the commit tip, which base is an ancestor
// of. It happens in kept.git, without any setting and without a working tree, so that no attribute and no driver has a
// say. The label is drawn anew each time.
func MergeOnto(ctx context.Context, h *held.Handle, base, tree, tip string) (gitx.Merge, error) {
	dir := h.S.Path(session.KeptGitDir)
	side, err := snapshot.KeepSide(ctx, h, base, tree)
	if err != nil {
		return gitx.Merge{}, err
	}
	// The tree is for the user's repository, where it will be committed.
	both := gitx.CommitsIn(h.Git, dir, append(slices.Clone(gitx.NoUserConfig), "GIT_ATTR_NOSYSTEM=1",
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=core.attributesFile", "GIT_CONFIG_VALUE_0="+os.DevNull,
		"GIT_OBJECT_DIRECTORY="+filepath.Join(h.Common, "objects"),
		"GIT_ALTERNATE_OBJECT_DIRECTORIES="+gitx.Quote(filepath.Join(dir, "objects"))))
	return both.Merge(ctx, tip, side)
}

// Move brings a lane to what a lane_merged says; now is the tree that it holds. Files that are not as they were
// then are somebody's work since and stay, but for those of which a process that was killed here wrote a part.
func Move(ctx context.Context, h *held.Handle, wt gitx.Worktree, e *record.LaneMerged, now string) error {
	half, err := h.Git.HalfWritten(ctx, wt, e.Was, e.Tree, now)
	if err == nil {
		err = h.Git.CatchUp(ctx, wt, e.Was, e.Tree, now, half...)
	}
	if err == nil {
		err = h.Git.FollowModules(ctx, wt)
	}
	if err != nil {
		return err
	}
	return h.Git.Detach(ctx, wt, e.Base)
}

// Resume is a lane that stands, brought to where the record says that it is.
func Resume(ctx context.Context, h *held.Handle, task string, a record.Attempt) (gitx.Worktree, error) {
	path := Path(h.S, task)
	known, err := h.Git.Relink(ctx, h.Common, path)
	if err == nil && !known {
		err = errors.Join(h.NewEntry(ctx, path, a.Base()), os.RemoveAll(h.S.Path(held.EntryDir)))
	}
	if err != nil {
		return gitx.Worktree{}, err
	}
	wt, err := Worktree(ctx, h, task)
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
		if err := Fold(ctx, h, wt, m.From); err != nil {
			return wt, err
		}
		now, _, err := h.Git.StageAll(ctx, wt, m.From)
		if err != nil {
			return wt, err
		}
		return wt, Move(ctx, h, wt, m, now)
	}
	return wt, Fold(ctx, h, wt, a.Base())
}

// CleanWorktree is the session's worktree as it is between two commits of lanes: like the branch's tip. What somebody
// did there is set aside.
func CleanWorktree(ctx context.Context, h *held.Handle, accepted func(tree string) bool) (wt gitx.Worktree, err error) {
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
	ref, _, err := snapshot.SetAside(ctx, h, wt, session.WorkspaceDir, tip)
	if err != nil || ref == "" {
		return wt, err
	}
	return wt, h.Append(&record.LogRepaired{What: "the worktree held changes of nobody's task",
		Done: "set aside in " + ref + " of kept.git"})
}

// SetAside takes what a lane holds for its task's partial work, and removes the lane.
func SetAside(ctx context.Context, h *held.Handle, task string, a record.Attempt) error {
	if a.Base() != "" {
		wt, err := Resume(ctx, h, task, a)
		if err != nil {
			return err
		}
		ref, _, err := snapshot.SetAside(ctx, h, wt, task, a.Base())
		if err != nil {
			return err
		}
		if ref != "" {
			if err := h.Append(&record.LogRepaired{What: "the lane of " + task + " held work",
				Done: "set aside in " + ref + " of kept.git"}); err != nil {
				return err
			}
		}
	}
	return Remove(ctx, h, task)
}

// SetAllAside does that with all lanes, before what means the whole session.
func SetAllAside(ctx context.Context, h *held.Handle) error {
	if len(All(h.S, h.Common)) == 0 {
		return nil
	}
	if h.Git.IsDryRun() {
		return RemoveAll(ctx, h)
	}
	state, err := h.S.State()
	if err == nil {
		err = RemoveHalfMade(ctx, h)
	}
	if err != nil {
		return err
	}
	for _, task := range Of(h.S) {
		if err := SetAside(ctx, h, task, state.Tasks[task].Attempt); err != nil {
			return err
		}
	}
	return DropDir(h)
}

// RemoveHalfMade removes the lanes that hold no work, with the entries of those whose directory is gone, and the places
// in which a process that died judged. Other files in the place of a lane are moved aside.
func RemoveHalfMade(ctx context.Context, h *held.Handle) error {
	begun, err := Begun(ctx, h.Git, h.S, h.Common)
	if err != nil {
		return err
	}
	half := laneNames(h.S.Path(session.LanesDir, newLanes))
	var places []string
	gone := slices.DeleteFunc(All(h.S, h.Common), func(task string) bool { return slices.Contains(begun, task) })
	for _, task := range gone {
		places = append(places, Path(h.S, task))
	}
	if err := h.Git.RemoveIncomplete(h.Common, places); err != nil {
		return err
	}
	for i, task := range gone {
		files, _ := os.ReadDir(places[i])
		if len(files) > 0 && !slices.Contains(half, task) {
			if _, err := h.MoveAside(places[i], h.S.Path(session.WorkspaceDir)); err != nil {
				return err
			}
		}
		if err := Remove(ctx, h, task); err != nil {
			return err
		}
	}
	marks := proc.RemoveAll(h.S.Path(session.LanesDir, newLanes)) // those that were half written
	return errors.Join(marks, dropJudging(h))
}

// RemoveAll removes all lanes with what they hold.
func RemoveAll(ctx context.Context, h *held.Handle) error {
	for _, task := range All(h.S, h.Common) {
		if err := Remove(ctx, h, task); err != nil {
			return err
		}
	}
	return DropDir(h)
}
