package gitx

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/git-tilth/git-tilth/internal/proc"
)

const (
	// lockPatience is the maximum wait for a live git process.
	lockPatience = 5 * time.Second
	lockPoll     = 20 * time.Millisecond
)

// ClearLocks removes lock files below dir that a killed git left. Git takes a lock by creating the file and releases
// it by renaming or removing it. A killed git leaves it for ever, and every later command fails. ClearLocks removes a
// file only if no live git process can own it. It waits for an owner, and returns errLocked if the file stays. An
// owner works at path or at common, or with path "" in any worktree of the repository at common.
func (g *Git) ClearLocks(ctx context.Context, common, path, dir string, names ...string) error {
	for _, name := range names {
		lock := filepath.Join(dir, filepath.FromSlash(name))
		if _, err := os.Lstat(lock); err != nil || g.dry {
			continue
		}
		places := []string{path, common}
		if path == "" {
			places = repoPlaces(common)
		}
		if err := g.clearLock(ctx, lock, places); err != nil {
			return err
		}
	}
	return nil
}

func (g *Git) clearLock(ctx context.Context, lock string, places []string) error {
	deadline := time.Now().Add(g.patience)
	for {
		fi, err := os.Lstat(lock)
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		left, owner := g.leftBehind(lock, fi, places)
		if left {
			if err := os.Remove(lock); err != nil && !errors.Is(err, os.ErrNotExist) {
				return err
			}
			return nil
		}
		if owner != "" && time.Now().After(deadline) {
			return fmt.Errorf("%s: %w: %s", lock, errLocked, owner)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(lockPoll):
		}
	}
}

// staleAfter is the age after which a lock older than this process counts as stale, if other processes cannot be
// inspected.
const staleAfter = 10 * time.Second

// lockOwner returns a live git process that may own the lock, or "". A git that waits for an editor or a hook has
// closed the file but still owns it, so open files prove nothing. Any git process counts that works in one of the
// places (any directory without places) or that hides its directory. The git processes that started this one do not
// count: `git tilth` itself, or a command with a hook that runs it. If processes cannot be examined, age decides: this
// process holds the session's lock, so a file older than this process is stale.
func (g *Git) lockOwner(lock fs.FileInfo, places []string) string {
	q := proc.Query{Name: isGitName, Argument: "--git-dir=", Variable: "GIT_DIR="}
	for _, place := range places {
		q.Places = append(q.Places, resolveParents(place))
	}
	if made, ok := lock.Sys().(*syscall.Stat_t); ok {
		q.Owner = made.Uid
	}
	pid, err := g.find(q)
	switch {
	case err == nil && pid == 0, err != nil && lock.ModTime().Before(g.started) &&
		time.Since(lock.ModTime()) > staleAfter:
		return ""
	case err != nil:
		return "it is recent; remove it if no git process is running there"
	}
	return "git, process " + strconv.Itoa(pid)
}

// leftBehind reports whether no live git can own the file found at path, or returns its owner. It checks the file
// twice, because its owner may have exited just now and another git may have created it again.
func (g *Git) leftBehind(path string, found fs.FileInfo, places []string) (left bool, owner string) {
	if owner = g.lockOwner(found, places); owner != "" {
		return false, owner
	}
	now, err := os.Lstat(path)
	return err == nil && os.SameFile(found, now) && found.ModTime().Equal(now.ModTime()), ""
}

// isGitName reports whether a process of this name is git or one of its helpers.
func isGitName(name string) bool {
	return name == "git" || strings.HasPrefix(name, "git-") && !strings.HasPrefix(name, "git-tilth")
}

// entryLocks returns the locks of a worktree's entry that block a change in the worktree.
var entryLocks = []string{"index.lock", "HEAD.lock", "ORIG_HEAD.lock"}

// LeftLocks returns the lock files that dead git processes left in a worktree's entry. It changes nothing.
func (g *Git) LeftLocks(wt Worktree) (paths []string) {
	for _, name := range entryLocks {
		lock := filepath.Join(wt.AdminDir, name)
		fi, err := os.Lstat(lock)
		if wt.AdminDir == "" || err != nil || time.Since(fi.ModTime()) < staleAfter {
			continue
		}
		if left, _ := g.leftBehind(lock, fi, []string{wt.Path, wt.Common}); left {
			paths = append(paths, lock)
		}
	}
	return paths
}

// ClearWorktreeLocks clears stale locks that block a change in the worktree. Their owner works in the worktree, or
// names its git directory, as this package does.
func (g *Git) ClearWorktreeLocks(ctx context.Context, wt Worktree) error {
	err := g.ClearLocks(ctx, wt.Common, wt.Path, wt.AdminDir, entryLocks...)
	if err != nil || wt.Branch == "" {
		return err
	}
	return g.ClearLocks(ctx, wt.Common, wt.Path, wt.Common, "refs/heads/"+wt.Branch+".lock")
}

// clearBranchLocks clears stale locks that block creating or deleting a branch. Git creates the branch after its lock,
// and removes the branch's settings after the branch. All worktrees share some of the locks, so a git process in any
// of them may be the owner.
func (g *Git) clearBranchLocks(ctx context.Context, common, branch string) error {
	return g.ClearLocks(ctx, common, "", common, "refs/heads/"+branch+".lock", "packed-refs.lock", "packed-refs.new",
		"config.lock")
}

// repoPlaces returns the directories in which a git process of this repository works. Without this limit, a build
// server on which git always runs would make a stale lock look owned for ever. It returns nil (any directory) if the
// main worktree is not next to the common directory.
func repoPlaces(common string) []string {
	real, err := filepath.EvalSymlinks(common)
	if err != nil || filepath.Base(real) != ".git" {
		return nil
	}
	places := []string{filepath.Dir(real)}
	for _, dotGit := range entries(real) {
		if dotGit != "" {
			places = append(places, resolveParents(filepath.Dir(dotGit)))
		}
	}
	return places
}
