package gitx

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/git-tilth/git-tilth/internal/proc"
)

const (
	// lockPatience is how long a live git process is waited for.
	lockPatience = 5 * time.Second
	lockPoll     = 20 * time.Millisecond
)

// ClearLocks removes the lock files below dir that a killed git left behind. Git takes a lock by making the file and
// drops it by renaming or removing it; a killed one leaves it for ever, and every later command fails on it. A file
// goes only if no live git process can be its owner; one that has an owner is waited for, and is errLocked if it stays.
// An owner works at path or at common, or with path "" in any worktree of the repository at common.
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

// staleAfter is the age from which a lock that is older than this process is taken for left behind, where other
// processes cannot be looked at.
const staleAfter = 10 * time.Second

// lockOwner names a live git process that may own the lock, or is "". A git that waits for an editor or a hook has
// closed the file and still owns it, so it does not matter who has it open: a git process that works in one of the
// places counts (any, without places), and so does one that hides where it works. The git processes that started this
// one do not: `git tilth` itself, or the command whose hook runs it. Where processes cannot be looked at, age has to
// do: this process holds the session's lock, so a file older than it is of a run that is over.
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
		return "it is recent; remove it if no git is at work there"
	}
	return "git, process " + strconv.Itoa(pid)
}

// leftBehind reports whether no live git can own what was found at path, or else which does. What is there is looked at
// once more: its owner may have ended just now, and the next git have made the same again.
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

// entryLocks are those of a worktree's entry that stand in the way of a change in the worktree.
var entryLocks = []string{"index.lock", "HEAD.lock", "ORIG_HEAD.lock"}

// LeftLocks are the lock files in a worktree's entry that a git which is no more has left. It changes nothing.
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

// ClearWorktreeLocks clears the locks that stand in the way of a change in the worktree. Nobody works on them from
// outside of the worktree, but by naming the git directory, as this package does.
func (g *Git) ClearWorktreeLocks(ctx context.Context, wt Worktree) error {
	err := g.ClearLocks(ctx, wt.Common, wt.Path, wt.AdminDir, entryLocks...)
	if err != nil || wt.Branch == "" {
		return err
	}
	return g.ClearLocks(ctx, wt.Common, wt.Path, wt.Common, "refs/heads/"+wt.Branch+".lock")
}

// clearBranchLocks clears what stands in the way of making or deleting a branch: git makes the branch after its lock,
// and takes its settings away after the branch. Some are shared with all of the repository's worktrees, so a git
// process in any of them may be the owner.
func (g *Git) clearBranchLocks(ctx context.Context, common, branch string) error {
	return g.ClearLocks(ctx, common, "", common, "refs/heads/"+branch+".lock", "packed-refs.lock", "packed-refs.new",
		"config.lock")
}

// repoPlaces are the directories in which a git process that works on the repository is. A machine on which git is
// never at rest elsewhere, as a build server, must not make a stale lock look owned for ever. It is nil, for any
// directory, where the main worktree is not beside the common directory.
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

// WatchRepo watches the user's repository while somebody else works in it. read returns what of it a worker could
// change and a session never does: by name ("refs/heads/main", "config", "hooks/pre-commit"), a value that is another
// one once the thing is. It costs no process as long as no file of the repository that counts has been touched. Where
// git cannot read the refs, because its config is broken for one, they are returned as they were, beside the error.
func (g *Git) WatchRepo(common string) (read func(context.Context) (state map[string]string, err error)) {
	var last string
	var now map[string]string
	return func(ctx context.Context) (map[string]string, error) {
		stamp := stampOf(common)
		if stamp == last {
			return now, nil
		}
		before := now
		var err error
		if now, err = g.readState(ctx, common); err == nil {
			last = stamp
			return now, nil
		}
		for what, value := range before {
			if strings.HasPrefix(what, "refs/") {
				now[what] = value
			}
		}
		return now, err
	}
}

// sessionRefs is where the branches of sessions are.
const sessionRefs = "refs/heads/session/"

// watchedFiles are the files and directories of a repository that say how git works in it.
var watchedFiles = []string{
	"HEAD", "config", "config.worktree", "shallow", "hooks", "info", "objects/info/alternates", "commondir",
}

// eachWatched calls do for each file that counts: the watched ones, those of refs but for sessions', and locks.
func eachWatched(common string, do func(name, path string)) {
	names := append([]string{"refs", "packed-refs", "reftable"}, watchedFiles...)
	own, _ := os.ReadDir(common)
	for _, e := range own {
		if strings.HasSuffix(e.Name(), ".lock") {
			names = append(names, e.Name())
		}
	}
	for _, name := range names {
		_ = filepath.WalkDir(filepath.Join(common, name), func(path string, d fs.DirEntry, err error) error {
			name, relErr := filepath.Rel(common, path)
			switch {
			case err != nil || relErr != nil:
			case d.IsDir() && name+"/" == sessionRefs:
				return filepath.SkipDir
			case !d.IsDir():
				do(name, path)
			}
			return nil
		})
	}
}

// stampOf changes whenever a file does that readState reads: a worker can set a file's modification time, and not the
// time of its change.
func stampOf(common string) string {
	var b strings.Builder
	eachWatched(common, func(name, path string) {
		var st unix.Stat_t
		if unix.Lstat(path, &st) == nil {
			fmt.Fprintf(&b, "%s %o %d %d %d %d\n", name, st.Mode, st.Size, st.Mtim.Nano(), st.Ino, st.Ctim.Nano())
		}
	})
	return b.String()
}

// readState reads the repository's refs other than those of sessions, replacements among them, with one command; its
// HEAD, config, hooks, info and alternates from their files; and the locks in it that no live git can own. Where git
// cannot read the refs, the rest is returned beside the error.
func (g *Git) readState(ctx context.Context, common string) (map[string]string, error) {
	state := map[string]string{}
	places := sync.OnceValue(func() []string { return repoPlaces(common) })
	eachWatched(common, func(name, path string) {
		top, _, below := strings.Cut(name, "/")
		if strings.HasSuffix(name, ".lock") && (top == "refs" || !below) {
			fi, err := os.Lstat(path)
			if err != nil {
				return
			}
			if left, _ := g.leftBehind(path, fi, places()); left {
				state[name] = "a lock that a git which has ended left behind, of " +
					fi.ModTime().UTC().Format(time.RFC3339)
			}
		} else if top != "refs" && top != "packed-refs" && top != "reftable" {
			state[name] = contentOf(path)
		}
	})
	out, err := g.Read(ctx, InRepo(common, "for-each-ref", "--format=%(refname) %(objectname) %(symref)"))
	for line := range strings.Lines(string(out)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if !strings.HasPrefix(name, sessionRefs) {
			state[name] = value
		}
	}
	return state, err
}

// contentOf says what a file is, by mode and content.
func contentOf(path string) string {
	link := ""
	if to, err := os.Readlink(path); err == nil {
		link = "link to " + to
		if fi, err := os.Stat(path); err != nil || !fi.Mode().IsRegular() {
			return link
		}
	}
	content, err := readFile(path)
	fi, statErr := os.Stat(path)
	if errors.Join(err, statErr) != nil {
		return "unreadable"
	}
	sum := sha256.Sum256(content)
	return fmt.Sprintf("%s%s sha256 %x", link, fi.Mode().Perm(), sum[:8])
}
