package held

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
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

// A failed task in a run with --keep-going leaves its partial work in kept.git as refs/aside/<task>: one commit on the
// attempt's base. The worktree returns to that base. The next attempt gets the work back, or sees it in its prompt if
// it no longer fits on the branch's tip.
//
// The state on disk after each step of stashing, and a resume's reaction:
//  1. task_failed                the task's attempt is the newest: it comes first, its work is in the worktree
//  2. the ref                    as 1; restoring existing work changes nothing
//  3. the worktree at the base   restores the work when the task starts; a kill in between leaves the index of 2,
//     from which restoring writes all files
//  4. prd.json failed, progress  the same
//
// Of restoring, after context_reset has made the task's attempt the newest:
//  1. the objects in the repository  unreferenced; a gc may remove them, and the next try copies them again
//  2. index and files                existing changes apply again
//  3. the ref removed or, if the work does not fit, numbered: later attempts see it in their prompt
//
// The end of a run removes, after the stop, numbered work of finished tasks; the end of the next run does the same.
// Stashed work of a task that the user marked done stays, because the task's commit does not contain it.
//
// If a task is skipped or removed while its work is in the worktree, the next plan stashes the work (Plan.SetAside)
// before another task starts. So work is either in the worktree, and its task comes first, or in kept.git.

// stashRef returns the ref of a task's stashed work; n is 0 for work to restore, else the number of a stash that did
// not apply.
func stashRef(task string, n int) string {
	if n > 0 {
		task = fmt.Sprintf("%s.%d", task, n)
	}
	return "aside/" + task
}

// stashedWork is the stashed work of a task.
type stashedWork struct {
	Ref string // ref in kept.git
	SHA string // commit of the stash
	Dir string // a git directory that has the commit
}

// StashOf returns the newest stashed work of a task, or nil.
func StashOf(s *session.Session, task string) *stashedWork {
	for _, n := range []int{0, unfit(s, task)} {
		if sha := readRef(s, stashRef(task, n)); sha != "" {
			return &stashedWork{Ref: "refs/" + stashRef(task, n), SHA: sha, Dir: s.Path(session.KeptGitDir)}
		}
	}
	return nil
}

// HasStash reports whether a task's stash must be restored.
func HasStash(s *session.Session, task string) bool { return readRef(s, stashRef(task, 0)) != "" }

// unfit returns how often stashed work of a task could not be restored.
func unfit(s *session.Session, task string) (n int) {
	for readRef(s, stashRef(task, n+1)) != "" {
		n++
	}
	return n
}

// DropUnreadable removes and records the refs of stashes that kept.git can no longer read, for example after a power
// cut. Their tasks start without that work.
func DropUnreadable(ctx context.Context, h *Handle) error {
	dir := h.S.Path(session.KeptGitDir)
	if fi, err := os.Stat(dir); err != nil || h.Common == "" || h.Git.IsDryRun() {
		return nil // no stash
	} else if !fi.IsDir() {
		return os.Remove(dir)
	}
	refs, _ := os.ReadDir(h.S.Path(session.AsideDir))
	for _, e := range refs {
		in, err := openKept(h)
		if err != nil {
			return err
		}
		sha := readRef(h.S, "aside/"+e.Name())
		_, err = in.git.Read(ctx, in.command("rev-list", "--objects", "--quiet", "--end-of-options", sha, "^"+sha+"^"))
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			err = errors.Join(proc.RemoveAll(h.S.Path(session.AsideDir, e.Name())), h.Append(&record.LogRepaired{
				File: session.AsideDir + "/" + e.Name(), Why: "cannot be read", Done: "the task starts without it"}))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// DropDoneStashes removes stashes of finished tasks that did not apply.
func DropDoneStashes(h *Handle) error {
	tasks, err := h.S.Tasks()
	if err != nil {
		return nil // an unreadable plan has no finished task
	}
	for _, t := range tasks {
		if t.Status == session.TaskDone {
			if err := forgetAside(h, t.ID); err != nil {
				return err
			}
		}
	}
	return dropKeptGit(h.S)
}

// forgetAside removes a task's stashes that did not apply.
func forgetAside(h *Handle, task string) error {
	for n := unfit(h.S, task); n > 0; n-- {
		if err := proc.RemoveAll(h.S.Path(session.KeptGitDir, "refs", stashRef(task, n))); err != nil {
			return err
		}
	}
	return nil
}

// Stash stashes the worktree's changes in kept.git as a task's partial work; the branch is at base. The worktree
// then equals base, except for ignored files. It returns the ref and its commit, or "" without changes.
func Stash(ctx context.Context, h *Handle, wt gitx.Worktree, task, base string) (ref, sha string, err error) {
	h.Kept.Lock()
	defer h.Kept.Unlock()
	if readRef(h.S, stashRef(task, 0)) != "" { // a killed resume has restored the stash, at least partly
		if _, err := restoreAside(ctx, h, wt, task, base); err != nil {
			return "", "", err
		}
	}
	tree, _, err := h.Git.StageAll(ctx, wt, base)
	if err != nil {
		return "", "", err
	}
	if was, err := h.Git.RevParse(ctx, h.Common, base+"^{tree}"); err != nil || was == tree {
		return "", "", err
	}
	ignored, err := h.Git.IgnoredBefore(ctx, wt, base)
	if err != nil {
		return "", "", err
	}
	if sha, err = keepWork(ctx, h, task, tree, base, 0); err != nil {
		return "", "", err
	}
	if err := h.Git.Reset(ctx, wt, base, true); err != nil {
		return "", "", err
	}
	return "refs/" + stashRef(task, 0), sha, dropUncovered(ctx, h, wt, ignored)
}

// KeepUnfit stashes a tree, made on the commit base, as work of a task that did not apply.
func KeepUnfit(ctx context.Context, h *Handle, task, tree, base string) error {
	h.Kept.Lock()
	defer h.Kept.Unlock()
	_, err := keepWork(ctx, h, task, tree, base, unfit(h.S, task)+1)
	return err
}

// keepWork keeps a tree, made on the commit base, as work of a task.
func keepWork(ctx context.Context, h *Handle, task, tree, base string, n int) (sha string, err error) {
	in, err := openKept(h)
	if err == nil {
		sha, err = in.commit(ctx, tree, base, "Partial work of "+task+"\n")
	}
	if err == nil {
		err = in.keep(ctx, base, stashRef(task, n), sha)
	}
	return sha, err
}

// KeepSide makes the commit of one side of a merge without a ref. Lanes write one at a time. Its message is random
// each time.
func KeepSide(ctx context.Context, h *Handle, base, tree string) (sha string, err error) {
	h.Kept.Lock()
	defer h.Kept.Unlock()
	in, err := openKept(h)
	if err != nil {
		return "", err
	}
	side := gitx.CommitsIn(h.Git, in.dir, slices.Clone(gitx.NoUserConfig))
	sha, err = side.Commit(ctx, gitx.TreeCommit{Tree: tree, Parent: base, Message: rand.Text() + "\n"})
	if err == nil { // permissions of all files of a session
		err = os.Chmod(filepath.Join(in.dir, "objects", sha[:2], sha[2:]), 0o600)
	}
	return sha, err
}

// dropUncovered removes files that only the task's rules ignored, because without the rules they would become part of
// the next task. Dependencies and build products stay, because git-tilth never commits them.
func dropUncovered(ctx context.Context, h *Handle, wt gitx.Worktree, ignored []string) error {
	if len(ignored) == 0 || h.Git.IsDryRun() {
		return nil
	}
	others, err := h.Git.List(ctx, h.Git.InWorktree(wt, "ls-files", "-z", "--others", "--exclude-standard"))
	if err != nil {
		return err
	}
	was := map[string]bool{}
	for _, name := range ignored {
		was[strings.TrimSuffix(name, "/")] = true
	}
	for _, name := range others {
		if within(name, was) && gitx.ProductRoot(wt.Path, name) == "" {
			if err := proc.RemoveAll(filepath.Join(wt.Path, name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// Unstash restores a task's stashed work in the worktree, on top of its changes; the branch is at tip. back is false
// without stashed work, or if it does not apply; EarlierWork then returns it.
func Unstash(ctx context.Context, h *Handle, wt gitx.Worktree, task, tip string) (back bool, err error) {
	h.Kept.Lock()
	defer h.Kept.Unlock()
	return restoreAside(ctx, h, wt, task, tip)
}

func restoreAside(ctx context.Context, h *Handle, wt gitx.Worktree, task, tip string) (back bool, err error) {
	sha := readRef(h.S, stashRef(task, 0))
	if sha == "" {
		return false, nil
	}
	in, err := openKept(h)
	if err == nil {
		err = in.give(ctx, h.Common, stashRef(task, 0))
	}
	if err != nil {
		return false, err
	}
	tree, err := withAside(ctx, h, wt, sha, tip)
	if err != nil {
		return false, err
	}
	at := h.S.Path(session.KeptGitDir, "refs", stashRef(task, 0))
	if tree == "" {
		kept := h.S.Path(session.KeptGitDir, "refs", stashRef(task, unfit(h.S, task)+1))
		return false, h.Change(func() error {
			if err := os.Rename(at, kept); err != nil {
				return err
			}
			return jsonl.SyncDir(filepath.Dir(at))
		})
	}
	if err := h.Git.ReadTree(ctx, wt, tree, true); err != nil {
		return false, err
	}
	// The directory is synced: a ref restored by a power cut would look newer than the worker's later changes.
	return true, h.Change(func() error { return errors.Join(os.Remove(at), jsonl.SyncDir(filepath.Dir(at))) })
}

// withAside returns the tree of the worktree's changes with the stashed work applied, or "" if it does not apply.
func withAside(ctx context.Context, h *Handle, wt gitx.Worktree, sha, tip string) (string, error) {
	commits, err := h.Git.Log(ctx, h.Common, sha, "", 1)
	if err != nil || len(commits) == 0 || len(commits[0].Parents) != 1 {
		return "", err
	}
	tree, err := h.Git.Mutate(ctx, h.Git.InWorktree(wt, "write-tree"))
	if conflicts := gitx.ExitCode(err) == 128; !conflicts && (err != nil || tree == commits[0].Tree) {
		return tree, err // an interrupted stash may have removed files that the index has
	}
	now, _, err := h.Git.StageAll(ctx, wt, tip)
	if err != nil {
		return "", err
	}
	return h.Git.ApplyChange(ctx, h.Common, commits[0].Parents[0], sha, now)
}

// EarlierWork returns the newest stashed work of a task that could not be restored, as a patch of at most limit bytes,
// or "".
func EarlierWork(ctx context.Context, h *Handle, task string, limit int64) (string, error) {
	n := unfit(h.S, task)
	if n == 0 {
		return "", nil
	}
	sha := readRef(h.S, stashRef(task, n))
	patch, _, err := h.Git.Diff(ctx, h.S.Path(session.KeptGitDir), sha+"^", sha, limit)
	return strings.ToValidUTF8(string(patch), "\uFFFD"), err
}
