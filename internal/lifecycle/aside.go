package lifecycle

import (
	"context"
	"errors"
	"fmt"
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

// A task that fails in a run that goes on leaves its partial work in aside/<task>.bundle: one commit on the one at
// which its attempt began. The worktree goes back to there. The next attempt at the task gets the work back, or, where
// it does not fit on the branch's tip any more, is shown it.
//
// On disk after each step of setting aside, and what a resume makes of it:
//  1. task_failed                the task is the last that was worked on: it comes first, its work is in the worktree
//  2. the bundle                 as 1; bringing back what is there already changes nothing
//  3. the worktree at the base   the work comes back when the task is begun; a kill half-way leaves the index of 2,
//     from which bringing back restores all files
//  4. prd.json failed, progress  the same
//
// Of bringing back, which happens after context_reset has made the task the last that was worked on:
//  1. the bundle's objects       nothing refers to them; a gc may take them, and the next try has them again
//  2. index and files            what is there already applies again
//  3. the bundle is removed, or, where it does not fit, gets a number: it is shown from then on
//
// The end of a run removes what there is of tasks that are done, after the stop: the end of the next one does the same.
//
// A task that is skipped or removed while its work is in the worktree has it set aside by the next plan
// (Plan.SetAside), before any other task is begun. So work is either in the worktree, and its task comes first, or in a
// bundle.

// asideDir has partial work of tasks that failed, in git bundles, and records that a worker changed.
const asideDir = "aside"

// asidePath is where a task's work is set aside; n is 0 for what is to come back, else the number of what did not fit.
func asidePath(s *session.Session, task string, n int) string {
	if n > 0 {
		task = fmt.Sprintf("%s.%d", task, n)
	}
	return s.Path(asideDir, task+".bundle")
}

// AsideOf is the newest bundle of a task's work, "" for none.
func AsideOf(s *session.Session, task string) string {
	paths := []string{asidePath(s, task, 0)}
	for n := unfit(s, task); n > 0; n-- {
		paths = append(paths, asidePath(s, task, n))
	}
	if i := slices.IndexFunc(paths, isFile); i >= 0 {
		return paths[i]
	}
	return ""
}

// unfit is how many bundles there are of a task's work that did not fit when it was to come back.
func unfit(s *session.Session, task string) (n int) {
	for exists(asidePath(s, task, n+1)) {
		n++
	}
	return n
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// isFile reports whether path is a file that git can read: at a pipe it would wait for ever.
func isFile(path string) bool {
	fi, err := os.Lstat(path)
	return err == nil && fi.Mode().IsRegular()
}

// ownAside sees to it that aside/ is a directory of the session's own: through a link of somebody else's, what is
// written and removed there would be another's.
func (h *Handle) ownAside() error {
	dir := h.S.Path(asideDir)
	if fi, err := os.Lstat(dir); err != nil || fi.IsDir() {
		return nil
	}
	if err := h.change(func() error { return os.Remove(dir) }); err != nil {
		return err
	}
	return h.append(&record.LogRepaired{File: asideDir, Why: "was no directory", Done: "removed"})
}

// dropAside removes what was set aside of tasks that are done.
func (h *Handle) dropAside() error {
	tasks, err := h.S.Tasks()
	if fi, e := os.Lstat(h.S.Path(asideDir)); err != nil || e != nil || !fi.IsDir() {
		return nil // a plan that cannot be read says of none that it is done
	}
	for _, t := range tasks {
		for path := AsideOf(h.S, t.ID); t.Status == session.TaskDone && path != ""; path = AsideOf(h.S, t.ID) {
			if err := proc.RemoveAll(path); err != nil {
				return err
			}
		}
	}
	return nil
}

// SetAside takes what is in the worktree, whose branch is at base, for a task's partial work, and puts it into a
// bundle. The worktree is then what base is, but for ignored files. It returns the bundle's name in the session's
// directory and the commit in it, "" where there is nothing to set aside.
func (h *Handle) SetAside(ctx context.Context, wt gitx.Worktree, task, base string) (name, sha string, err error) {
	path := asidePath(h.S, task, 0)
	if err := h.ownAside(); err != nil {
		return "", "", err
	}
	if exists(path) { // a resume that was killed brought it back, or began to
		if _, err := h.RestoreAside(ctx, wt, task, base); err != nil {
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
	dir := filepath.Dir(path)
	if err := h.change(func() error { return os.MkdirAll(dir, 0o700) }); err != nil {
		return "", "", err
	}
	if sha, err = h.bundle(ctx, path, task, tree, base); err != nil {
		return "", "", err
	}
	return filepath.Join(asideDir, filepath.Base(path)), sha, h.Git.Reset(ctx, wt, base, true)
}

// bundle writes the bundle, whole or not at all.
func (h *Handle) bundle(ctx context.Context, path, task, tree, base string) (sha string, err error) {
	dir := filepath.Join(filepath.Dir(path), ".scratch")
	if err := h.change(func() error { return proc.RemoveAll(dir) }); err != nil {
		return "", err
	}
	s, err := newScratch(h.Git, h.Common, dir)
	if err != nil {
		return "", err
	}
	if sha, err = s.commit(ctx, tree, base, "Partial work of "+task+"\n"); err != nil {
		return "", err
	}
	file := filepath.Join(dir, "bundle")
	if err := s.bundle(ctx, file, base, map[string]string{task: sha}); err != nil {
		return "", err
	}
	err = h.change(func() error {
		if err := os.Rename(file, path); err != nil {
			return err
		}
		return jsonl.SyncDir(filepath.Dir(path))
	})
	if err != nil {
		return "", err
	}
	return sha, s.remove()
}

// RestoreAside gives the worktree, whose branch is at tip, a task's work that was set aside, on top of what is in it.
// back is false where there is none, or where it does not fit: then Earlier shows it.
func (h *Handle) RestoreAside(ctx context.Context, wt gitx.Worktree, task, tip string) (back bool, err error) {
	path := asidePath(h.S, task, 0)
	if err := h.ownAside(); err != nil || !exists(path) {
		return false, err
	}
	tree, err := h.withAside(ctx, wt, path, task, tip)
	if err != nil {
		return false, err
	}
	if tree == "" {
		kept := asidePath(h.S, task, unfit(h.S, task)+1)
		return false, h.change(func() error {
			if err := os.Rename(path, kept); err != nil {
				return err
			}
			return jsonl.SyncDir(filepath.Dir(path))
		})
	}
	if err := h.Git.ReadTree(ctx, wt, tree, true); err != nil {
		return false, err
	}
	// A bundle that came back after a power cut would be taken for newer than what the worker has done since.
	return true, h.change(func() error {
		return errors.Join(os.Remove(path), jsonl.SyncDir(filepath.Dir(path)))
	})
}

// withAside names the tree that what is in the worktree becomes with the work in a bundle, "" where that does not fit.
func (h *Handle) withAside(ctx context.Context, wt gitx.Worktree, path, task, tip string) (string, error) {
	work, base, err := h.asideCommit(ctx, path, task)
	if err != nil || work == nil {
		return "", err
	}
	tree, err := h.Git.Mutate(ctx, h.Git.InWorktree(wt, "write-tree"))
	if conflicts := gitx.ExitCode(err) == 128; !conflicts && (err != nil || tree == work.Tree) {
		return tree, err // setting it aside was cut short: files may be gone that the index has
	}
	now, _, err := h.Git.StageAll(ctx, wt, tip)
	if err != nil {
		return "", err
	}
	tree, _, err = h.Git.ApplyChange(ctx, wt, base, work.SHA, now)
	return tree, err
}

// asideCommit is the commit in a bundle and the one that it was made on; nil where the bundle, or what it stands on, is
// not to be had any more, which is put on record.
func (h *Handle) asideCommit(ctx context.Context, path, task string) (c *gitx.Commit, base string, err error) {
	sha := ""
	err = errors.New("it is no file")
	if isFile(path) {
		sha, err = bundleHead(ctx, h.Git, h.Common, path, task)
	}
	if err == nil {
		err = unbundle(ctx, h.Git, h.Common, path)
	}
	if ctx.Err() != nil {
		return nil, "", ctx.Err()
	}
	if err != nil {
		name := filepath.Join(asideDir, filepath.Base(path))
		return nil, "", h.append(&record.LogRepaired{File: name, Why: "cannot be read: " + err.Error(),
			Done: "the task begins without it"})
	}
	commits, err := h.Git.Log(ctx, h.Common, sha, "", 1)
	if err != nil || len(commits) == 0 || len(commits[0].Parents) != 1 {
		return nil, "", err
	}
	return &commits[0], commits[0].Parents[0], nil
}

// Earlier is the newest work of a task that did not fit when it was to come back, as a patch of at most limit bytes; ""
// for none.
func (h *Handle) Earlier(ctx context.Context, task string, limit int64) (string, error) {
	n := unfit(h.S, task)
	if n == 0 {
		return "", nil
	}
	work, base, err := h.asideCommit(ctx, asidePath(h.S, task, n), task)
	if err != nil || work == nil {
		return "", err
	}
	patch, _, err := h.Git.Diff(ctx, h.Common, base, work.SHA, limit)
	return strings.ToValidUTF8(string(patch), "\uFFFD"), err
}

// clearAside sets aside what a task that is not to be done now has left in the worktree.
func (x *execution) clearAside(ctx context.Context, wt gitx.Worktree) error {
	task := x.out.SetAside
	if task == "" {
		return nil
	}
	tip, ok, err := x.Git.Tip(ctx, wt)
	if err != nil || !ok {
		return errors.Join(err, fs.ErrNotExist)
	}
	name, _, err := x.SetAside(ctx, wt, task, tip)
	if err != nil || name == "" {
		return err
	}
	return x.append(&record.LogRepaired{What: "the worktree held work of " + task + ", which is not to be done",
		Done: "set aside in " + name})
}
