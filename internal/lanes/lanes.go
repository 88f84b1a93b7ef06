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

// A lane is the worktree of one of several running tasks, lanes/<task>/, with HEAD detached at the attempt's base: the
// commit in the last context_reset or lane_merged. Its change comes to the session's worktree only to be committed
// there; between two commits that worktree equals the branch's tip.
//
// The state on disk while a lane is made, and a resume's reaction:
//  1. the mark lanes/.new/<task>      the directory has no work and is removed
//  2. the worktree, set up            the same
//  3. context_reset on record         the same
//  4. no mark                         a lane; its task continues there
//
// While its change is merged onto a newer tip (Move):
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
// Commands on the whole session, such as a rewind, a fork or a push, first stash the lanes' work (SetAllAside), like
// the work of a failed task. The next attempt gets it back.

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

// All lists the tasks with any part of a lane: its directory, its mark, or an entry of the repository at common, which
// may exist without both.
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

// Make makes the lane of a task at a commit, and sets it up. After SetBegun a resume continues it.
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

// mark marks a task's lane as being made or removed, so that its files are no work.
func mark(h *held.Handle, task string) error {
	at := h.S.Path(session.LanesDir, newLanes, task)
	if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
		return err
	}
	return jsonl.WriteFile(at, nil)
}

// SetBegun removes the mark of a task's lane after its attempt is on record; "" is no task.
func SetBegun(h *held.Handle, task string) error {
	if task == "" {
		return nil
	}
	return proc.RemoveAll(h.S.Path(session.LanesDir, newLanes, task))
}

// Remove removes a task's lane with its entry. It removes the files first: in a large tree that takes long, and other
// lanes need not wait.
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

// removePlace removes a directory in which commands ran, with its cache layers.
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

// Fold moves a worker's own commits in a lane back into the index, with HEAD at base.
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

// MergeOnto merges the change from the commit base to a tree onto the commit tip, a descendant of base. It runs in
// kept.git without settings and without a working tree, so no attribute and no driver applies. The label is random each
// time.
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

// Move changes a lane's files as a lane_merged describes; now is the lane's tree. Files that changed since are
// somebody's work and stay, except those that a killed Move wrote in part.
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
	return wt, h.Append(&record.LogRepaired{What: "the worktree had changes that belong to no task",
		Done: "stashed in " + ref + " of kept.git"})
}

// SetAside stashes a lane's work as its task's partial work, and removes the lane.
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
			if err := h.Append(&record.LogRepaired{What: "the lane of " + task + " had work",
				Done: "stashed in " + ref + " of kept.git"}); err != nil {
				return err
			}
		}
	}
	return Remove(ctx, h, task)
}

// SetAllAside does so for all lanes, before a command on the whole session.
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

// RemoveHalfMade removes lanes without work, entries without a directory, and the judged checkouts of a dead process.
// It moves other files at a lane's path aside.
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

// RemoveAll removes all lanes with their content.
func RemoveAll(ctx context.Context, h *held.Handle) error {
	for _, task := range All(h.S, h.Common) {
		if err := Remove(ctx, h, task); err != nil {
			return err
		}
	}
	return DropDir(h)
}
