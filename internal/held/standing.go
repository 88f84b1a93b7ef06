package held

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
)

// TreeState is the state of a session's worktree path.
type TreeState string

// The states of a worktree, as MakePlan tells them apart.
const (
	TreeFine         TreeState = "fine"         // registered, at its path, on the session's branch
	TreeMissing      TreeState = "missing"      // nothing there
	TreePlain        TreeState = "plain"        // a directory that is no worktree
	TreeUnregistered TreeState = "unregistered" // a worktree whose admin entry, or .git file, is gone
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
		return false, nil // an entry or an index that cannot be read proves nothing
	}
	gone, err := list("--deleted")
	return err == nil && len(gone)*2 < len(all), err
}

// CheckedOutIn says in which other worktree the session's branch is checked out, and how to free it for the command
// again; "" if in none.
func CheckedOutIn(ctx context.Context, g *gitx.Git, s *session.Session, common, path, again string) (place,
	hint string, err error) {
	entries, err := g.Worktrees(ctx, common, path)
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

// GitLine is a git command as a line that can be pasted into a shell.
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
