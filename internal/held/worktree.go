package held

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
)

// WholeWorktree returns the worktree on its branch. It creates or repairs the worktree if necessary, for an operation
// that must work in any state.
func (h *Handle) WholeWorktree(ctx context.Context) (gitx.Worktree, error) {
	state, _ := TreeAt(ctx, h.Git, h.Common, h.Path(), h.S.Branch())
	if _, _, err := h.RepairWorktree(ctx, state); err != nil {
		return gitx.Worktree{}, err
	}
	if err := h.WorktreeMade(); err != nil {
		return gitx.Worktree{}, err
	}
	return h.Worktree(ctx)
}

// RepairWorktree repairs or recreates the worktree. It returns whether the worktree is new, and the new path of a
// directory that was in the way. It loses no work: that directory is kept, and a directory without its admin entry is
// registered again with its files.
//
// The state on disk while a new one is made, and a resume's view of it:
//  1. the marker RemakeMark                missing, whatever is there: missing files are not deletions
//  2. branch checked out at the path       the same
//  3. set up, the marker removed           fine; step 3 is the caller's (WorktreeMade)
func (h *Handle) RepairWorktree(ctx context.Context, state TreeState) (fresh bool, aside string, err error) {
	path := h.Path()
	if Remaking(h.S) {
		if err := h.clearPlace(ctx, path); err != nil {
			return false, "", err
		}
		state = TreeMissing
	}
	switch state {
	case TreeFine:
		return false, "", nil
	case TreeElsewhere:
		return false, "", h.BringBack(ctx, false, "")
	case TreeUnregistered:
		return false, "", h.register(ctx, path)
	}
	if err := h.branchFree(ctx, path); err != nil {
		return false, "", err
	}
	if state == TreePlain {
		if aside, err = h.moveAside(path, path); err != nil {
			return false, "", err
		}
	}
	if err := h.Change(func() error { return jsonl.WriteFile(h.S.Path(RemakeMark), nil) }); err != nil {
		return false, "", err
	}
	_, err = h.Git.AddWorktree(ctx, h.Common, path, h.S.Branch(), "", true)
	return true, aside, err
}

// moveAside moves a directory that is not a worktree from a worktree's path to a free name that begins with to. It
// records that and returns the name.
func (h *Handle) moveAside(path, to string) (aside string, err error) {
	aside = asideOf(to, h.Now())
	if err := h.Change(func() error { return os.Rename(path, aside) }); err != nil {
		return "", err
	}
	return aside, h.Append(&record.LogRepaired{What: "a directory that is not a worktree was at " + path,
		Done: "moved to " + aside})
}

const asideSuffix = ".found-"

// asideOf returns a free path next to a worktree for the files found in it. Two can be found within a second.
func asideOf(path string, at time.Time) string {
	base := path + asideSuffix + at.UTC().Format("20060102-150405")
	aside := base
	for n := 2; Exists(aside); n++ {
		aside = fmt.Sprintf("%s-%d", base, n)
	}
	return aside
}

// PutBackDotGit restores the .git file of the worktree at path.
func (h *Handle) PutBackDotGit(ctx context.Context, path string) error {
	if fi, err := os.Lstat(filepath.Join(path, ".git")); err == nil && fi.IsDir() && !h.Git.IsDryRun() {
		if err := h.putAwayRepository(ctx, path); err != nil {
			return err
		}
	}
	return h.Git.Restore(ctx, h.Common, path)
}

// PutAwayNested moves the .git of repositories in the worktree at path out of it. All other files stay.
func (h *Handle) PutAwayNested(path string, repositories []string) error {
	aside, err := h.moveDotGits(path, repositories)
	if err != nil {
		return err
	}
	return h.Append(&record.LogRepaired{What: "the worktree had repositories in " + strings.Join(repositories, ", "),
		Done: "their .git moved to " + aside + ", their files kept"})
}

// moveDotGits moves the .git of directories below path to a free place next to it.
func (h *Handle) moveDotGits(path string, dirs []string) (aside string, err error) {
	aside = asideOf(path, h.Now())
	for _, dir := range dirs {
		if err = os.MkdirAll(filepath.Join(aside, dir), 0o700); err == nil {
			err = os.Rename(filepath.Join(path, dir, ".git"), filepath.Join(aside, dir, ".git"))
		}
		if err != nil {
			return "", err
		}
	}
	return aside, nil
}

// putAwayRepository moves away a repository that replaced the worktree's .git file, and restores the file. All files of
// the worktree stay.
func (h *Handle) putAwayRepository(ctx context.Context, path string) error {
	if _, ours := gitx.AdminDir(h.Common, path); !ours {
		return nil
	}
	aside, err := h.moveDotGits(path, []string{"."})
	if err != nil {
		return err
	}
	h.putAway.Store(path, true)
	if _, err := h.Git.Relink(ctx, h.Common, path); err != nil {
		return err
	}
	return h.Append(&record.LogRepaired{What: "the worktree's .git was a separate repository",
		Done: "moved to " + aside + ", the worktree's files kept"})
}

// HadRepository reports whether a repository had replaced the .git file of the worktree at path, and forgets it.
func (h *Handle) HadRepository(path string) bool {
	_, had := h.putAway.LoadAndDelete(path)
	return had
}

// MovedAside lists the absolute paths of directories that a resume moved from the worktree's path.
func MovedAside(s *session.Session) []string {
	entries, err := os.ReadDir(s.Dir)
	if err != nil {
		return nil
	}
	var out []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), session.WorkspaceDir+asideSuffix) {
			out = append(out, filepath.Join(s.Dir, e.Name()))
		}
	}
	return out
}

// WorktreeMade finishes RepairWorktree for a new worktree.
func (h *Handle) WorktreeMade() error {
	return h.Change(func() error { return os.RemoveAll(h.S.Path(RemakeMark)) })
}

// clearPlace removes the leftovers of a git that was killed while making a worktree, at path and in the repository.
func (h *Handle) clearPlace(ctx context.Context, path string) error {
	if err := h.Git.RemoveWorktree(ctx, h.Common, path); err != nil {
		return err
	}
	return h.Change(func() error { return os.RemoveAll(path) })
}

// BringBack sets HEAD to the session's branch again. The worker's files stay: a worker may run `git checkout -b` and
// continue. If HEAD is at a commit that does not contain the branch, other files are updated to the branch, or finished
// tasks would be undone. With byWorker, changes since the common ancestor stay, committed or not; else the user checked
// out another commit, and only differences from that are work. lost is the branch's last commit, if the branch was
// deleted.
func (h *Handle) BringBack(ctx context.Context, byWorker bool, lost string) error {
	wt, err := h.Git.Worktree(ctx, h.Common, h.Path(), "")
	if err != nil {
		return err
	}
	tip, ok, err := h.Git.BranchTip(ctx, h.Common, h.S.Branch())
	if err != nil {
		return err
	}
	if !ok {
		tip = lost
	}
	head, err := h.Git.RevParse(ctx, wt.AdminDir, "HEAD^{commit}")
	switch {
	case tip == "", errors.Is(err, gitx.ErrNotFound): // an orphan branch: everything in the index is new
	case err != nil:
		return err
	default:
		from, err := h.MergeBase(ctx, head, tip)
		held := from == tip || byWorker && from == ""
		if !byWorker {
			from = head
		}
		if err == nil && !held {
			err = h.catchUp(ctx, wt, from, tip)
		}
		if err != nil {
			return err
		}
	}
	// HEAD last, so that after a kill this runs again.
	return h.Git.AttachHead(ctx, wt, h.S.Branch())
}

// Fold moves a worker's own commits in a worktree back into the index, with HEAD at base. If the worker moved HEAD to
// an older or unrelated commit, its changes since the common ancestor stay, committed or not, and finished tasks are
// not undone.
func (h *Handle) Fold(ctx context.Context, wt gitx.Worktree, base string) error {
	head, err := h.Git.RevParse(ctx, wt.AdminDir, "HEAD^{commit}")
	switch {
	case err == nil && head == base && wt.Head == wt.Branch:
		return nil
	case err == nil:
		from, err := h.MergeBase(ctx, head, base)
		if err == nil && from != "" && from != base {
			err = h.catchUp(ctx, wt, from, base)
		}
		if err != nil {
			return err
		}
	case errors.Is(err, gitx.ErrNotFound) && wt.Branch != "": // the worker renamed or deleted the branch
		err = h.Append(&record.LogRepaired{What: wt.Branch + " was gone", Done: "made again at " + base +
			", files kept"})
		if err != nil {
			return err
		}
	case !errors.Is(err, gitx.ErrNotFound): // else the worker is on a branch without a commit
		return err
	}
	return h.Git.Reset(ctx, wt, base, false)
}

// MergeBase names the best common ancestor of two commits; it is "" if they have none.
func (h *Handle) MergeBase(ctx context.Context, a, b string) (string, error) {
	return h.Git.Line(ctx, gitx.InRepo(h.Common, "merge-base", "--end-of-options", a, b))
}

func (h *Handle) catchUp(ctx context.Context, wt gitx.Worktree, from, to string) error {
	tree, _, err := h.Git.StageAll(ctx, wt, to)
	if err != nil {
		return err
	}
	return h.Git.CatchUp(ctx, wt, from, to, tree, false)
}

// register links the source and the worktree at path again: after a move of the sessions root, a missing .git file, or
// a pruned admin entry.
func (h *Handle) register(ctx context.Context, path string) error {
	known, err := h.Git.Relink(ctx, h.Common, path)
	if err == nil && !known {
		err = h.newEntry(ctx, path, "")
	}
	if err == nil {
		err = h.Change(func() error { return os.RemoveAll(h.S.Path(entryDir)) })
	}
	if err != nil || !known {
		return err
	}
	if state, _ := TreeAt(ctx, h.Git, h.Common, path, h.S.Branch()); state == TreeElsewhere {
		return h.BringBack(ctx, false, "")
	}
	return nil
}

// branchFree fails if the branch is checked out elsewhere. It runs before any file is moved, because git would refuse
// halfway.
func (h *Handle) branchFree(ctx context.Context, path string) error {
	place, hint, err := CheckedOutIn(ctx, h.Git, h.S, h.Common, path, "git tilth resume "+h.S.ID)
	if err == nil && place != "" {
		err = &StepError{Step: "worktree " + path, Err: fmt.Errorf("the branch is checked out in %s", place),
			Hint: hint}
	}
	return err
}

// newEntry makes a new admin entry for a worktree with a pruned one and keeps its files: for a lane at a commit, for
// the session's own worktree (commit "") on its branch.
//
// The state on disk after each step, and a resume's view of it:
//  1. a worktree without files, in entry/    unregistered as before; it is removed and made again
//  2. its index at the branch's tip          the same
//  3. its .git file in the directory         a moved worktree: Relink
//  4. its entry points to the directory      fine
func (h *Handle) newEntry(ctx context.Context, path, commit string) (err error) {
	name, branch := filepath.Base(path), ""
	if commit == "" {
		name, branch, err = session.WorkspaceDir, h.S.Branch(), h.branchFree(ctx, path)
	}
	at := h.S.Path(entryDir, name)
	if err == nil {
		err = h.clearPlace(ctx, at)
	}
	var wt gitx.Worktree
	if err == nil {
		wt, err = h.Git.AddWorktree(ctx, h.Common, at, branch, commit, false)
	}
	if err == nil {
		err = h.Git.ReadTree(ctx, wt, cmp.Or(commit, "HEAD"), false)
	}
	if err == nil {
		err = h.Git.MoveEntry(wt, path)
	}
	return err
}

// TreeState is the state of a session's worktree path.
type TreeState string

// The states of a worktree for MakePlan.
const (
	TreeFine         TreeState = "fine"         // registered, at its path, on the session's branch
	TreeMissing      TreeState = "missing"      // nothing there
	TreePlain        TreeState = "plain"        // a directory that is not a worktree
	TreeUnregistered TreeState = "unregistered" // a worktree without its admin entry or .git file
	TreeElsewhere    TreeState = "elsewhere"    // registered, but HEAD is not on the session's branch
)

// LostLink reports whether path is a worktree that lacks only its .git file: the repository still has its entry, and
// most files of the entry's index exist. A different directory at the path has few of them or none.
func LostLink(ctx context.Context, g *gitx.Git, common, path string) (bool, error) {
	admin, found := gitx.AdminDir(common, path)
	if !found || Exists(filepath.Join(path, ".git")) {
		return false, nil
	}
	list := func(which string) ([]string, error) {
		c := gitx.InRepo(admin, "--work-tree="+path, "ls-files", "-z", "--deduplicate", which)
		c.Dir = path
		return g.List(ctx, c)
	}
	all, err := list("--cached")
	if err != nil || len(all) == 0 {
		return false, nil // unknown if the entry or index cannot be read
	}
	gone, err := list("--deleted")
	return err == nil && len(gone)*2 < len(all), err
}

// CheckedOutIn names the other worktree in which the session's branch is checked out, with the command that frees the
// branch; "" if there is none.
func CheckedOutIn(ctx context.Context, g *gitx.Git, s *session.Session, common, path, again string) (place,
	hint string, err error) {
	entries, err := g.Worktrees(ctx, common)
	if err != nil {
		return "", "", err
	}
	for _, e := range entries {
		if e.Branch != s.Branch() || e.Prunable || gitx.SamePath(e.Path, path) || IsHalfEntry(s, e) {
			continue
		}
		if dir := filepath.Dir(e.Path); IsCopyOf(s, dir) {
			return e.Path,
				"TILTH_SESSIONS_DIR=" + text.ShellQuote(filepath.Dir(dir)) + " git tilth resume " + s.ID, nil
		}
		free := GitLine(e.Path, "switch", "--detach")
		admin, _ := gitx.AdminDir(common, e.Path)
		if strings.TrimRight(filepath.Base(admin), "0123456789") == session.WorkspaceDir {
			// git keeps an entry's name when a worktree is moved: this is the session's own, with its uncommitted work.
			free = GitLine(common, "worktree", "move", e.Path, path)
		}
		return e.Path, free + " && " + again, nil
	}
	return "", "", nil
}

// GitLine returns a git command as a line that can be pasted into a shell.
func GitLine(dir string, args ...string) string {
	return text.ShellQuote(append([]string{"git", "-C", dir}, args...)...)
}

// TreeAt returns the state of the worktree's path, and the branch of its HEAD if that is not the session's.
func TreeAt(ctx context.Context, g *gitx.Git, common, path, branch string) (TreeState, string) {
	_, err := g.Worktree(ctx, common, path, branch)
	if err == nil {
		return TreeFine, ""
	}
	if wt, err := g.Worktree(ctx, common, path, ""); err == nil {
		return TreeElsewhere, wt.Head
	}
	if errors.Is(err, gitx.ErrNotFound) {
		return TreeMissing, ""
	}
	if fi, err := os.Lstat(filepath.Join(path, ".git")); err == nil && fi.Mode().IsRegular() {
		return TreeUnregistered, ""
	}
	return TreePlain, ""
}

// InProgress names the unfinished git operation in a worktree: "merge", "rebase" and so on, or "".
func InProgress(wt gitx.Worktree) string {
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
