package gitx

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/proc"
)

// Worktree is a linked worktree that passed a check. Only [Git.Worktree] returns one, and every writing command in a
// worktree needs one, so that no command runs in a directory that only looks like a worktree.
type Worktree struct {
	Path     string // recorded path
	Branch   string // branch of the check, or ""
	Head     string // branch of its HEAD; "" for a detached HEAD
	Common   string // common directory of its repository, with symlinks resolved
	AdminDir string // its git directory, below Common/worktrees
}

// Worktree checks that path is a worktree of the repository with this common directory and that its HEAD is on branch.
// With branch "", HEAD may be anywhere, for restoring a moved HEAD. It reads git's files and starts no process, except
// with reftable refs. A dry run also accepts a worktree that skipped commands would have created or put back on its
// branch. The error is ErrNotFound if path is missing or an empty directory.
func (g *Git) Worktree(ctx context.Context, common, path, branch string) (Worktree, error) {
	wt, err := registered(common, path)
	if err == nil {
		wt.Branch = branch
		wt.Head, err = g.headBranch(ctx, wt)
	}
	switch {
	case err != nil:
	case branch == "" || wt.Head == branch:
		g.known.tops.set(path, identity(path))
		return wt, nil
	case wt.Head == "":
		err = fmt.Errorf("worktree %s has a detached HEAD, not branch %s", path, branch)
	default:
		err = fmt.Errorf("worktree %s is on branch %s, not %s", path, wt.Head, branch)
	}
	if g.placeOf(path) != made {
		return Worktree{}, err
	}
	admin, found := AdminDir(common, path)
	if !found {
		admin = filepath.Join(common, "worktrees", filepath.Base(path))
	}
	return Worktree{Path: path, Branch: branch, Head: branch, Common: common, AdminDir: admin}, nil
}

// registered is Worktree without the check of HEAD.
func registered(common, path string) (Worktree, error) {
	if err := somethingAt(path); err != nil {
		return Worktree{}, err
	}
	refuse := func(format string, a ...any) (Worktree, error) {
		return Worktree{}, fmt.Errorf("%s: %w: %s", path, errUnregistered, fmt.Sprintf(format, a...))
	}
	dotGit := filepath.Join(path, ".git")
	if fi, err := os.Lstat(dotGit); err != nil || !fi.Mode().IsRegular() {
		return refuse("it has no .git file")
	}
	real, err := filepath.EvalSymlinks(common)
	if err != nil {
		return refuse("the repository no longer exists: %v", err)
	}
	admin, at, err := readLink(path)
	if err != nil {
		return refuse("%v", err)
	}
	if filepath.Dir(admin) != filepath.Join(real, "worktrees") {
		return refuse("its .git file names %s, which is not a worktree of %s", admin, real)
	}
	if !sameFile(at, dotGit) {
		return refuse("the repository knows it at %s", filepath.Dir(at))
	}
	if of, err := commonDir(admin); err != nil || of != real {
		return refuse("git's entry for it does not name %s", real)
	}
	return Worktree{Path: path, Common: real, AdminDir: admin}, nil
}

// readLink follows the .git file of the worktree at path to the repository's entry. back is the .git file that the
// entry names.
func readLink(path string) (admin, back string, err error) {
	if admin, err = readGitFile(filepath.Join(path, ".git")); err != nil {
		return "", "", err
	}
	if admin, err = filepath.EvalSymlinks(admin); err != nil {
		return "", "", err
	}
	b, err := readFile(filepath.Join(admin, "gitdir"))
	if err != nil && !isAbsent(err) {
		return "", "", err
	}
	return admin, relativeTo(admin, trimLine(b)), nil
}

// somethingAt returns errMissing if `git worktree add` can use path.
func somethingAt(path string) error {
	fi, err := os.Lstat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("%s: %w", path, errMissing)
	case err != nil:
		return fmt.Errorf("%w: %w", errUnregistered, err)
	case !fi.IsDir():
		return fmt.Errorf("%s: %w: not a directory", path, errUnregistered)
	}
	d, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("%w: %w", errUnregistered, err)
	}
	defer d.Close()
	if names, _ := d.Readdirnames(1); len(names) == 0 {
		return fmt.Errorf("%s: %w: the directory is empty", path, errMissing)
	}
	return nil
}

// sameFile reports whether two paths lead to the same existing file or directory.
func sameFile(a, b string) bool {
	fa, err := os.Stat(a)
	if err != nil {
		return false
	}
	fb, err := os.Stat(b)
	return err == nil && os.SameFile(fa, fb)
}

// reftableHead is the content of HEAD files in a repository with reftable refs.
const reftableHead = "refs/heads/.invalid"

// headBranch returns the branch of the worktree's HEAD, or "" if it is detached.
func (g *Git) headBranch(ctx context.Context, wt Worktree) (string, error) {
	head := filepath.Join(wt.AdminDir, "HEAD")
	// core.preferSymlinkRefs makes HEAD a symlink to the ref.
	ref, err := os.Readlink(head)
	if err != nil {
		b, err := readFile(head)
		if err != nil {
			return "", fmt.Errorf("%s: %w: %w", wt.Path, errUnregistered, err)
		}
		var symbolic bool
		if ref, symbolic = strings.CutPrefix(trimLine(b), "ref: "); !symbolic {
			return "", nil
		}
	}
	if ref == reftableHead {
		if ref, err = g.Line(ctx, g.InEntry(wt, "symbolic-ref", "--quiet", "HEAD")); err != nil {
			return "", err
		}
	}
	return strings.TrimPrefix(ref, "refs/heads/"), nil
}

// WorktreeEntry is one line of the repository's list of worktrees.
type WorktreeEntry struct {
	Path             string
	Branch           string // short name; "" for bare or detached
	Locked, Prunable bool
	Gone             bool // Path does not exist; an unreadable path does
}

// Worktrees lists the worktrees of a repository, the main one first.
func (g *Git) Worktrees(ctx context.Context, common string) ([]WorktreeEntry, error) {
	list, err := g.List(ctx, InRepo(common, "worktree", "list", "--porcelain", "-z"))
	return parseWorktrees(list), err
}

// parseWorktrees reads `git worktree list --porcelain -z`: attributes end with NUL, entries with an empty attribute.
func parseWorktrees(list []string) []WorktreeEntry {
	var entries []WorktreeEntry
	for _, attr := range list {
		name, value, _ := strings.Cut(attr, " ")
		if name == "worktree" {
			entries = append(entries, WorktreeEntry{Path: value, Gone: absent(value)})
			continue
		}
		if len(entries) == 0 {
			continue
		}
		e := &entries[len(entries)-1]
		switch name {
		case "branch":
			e.Branch = strings.TrimPrefix(value, "refs/heads/")
		case "locked":
			e.Locked = true
		case "prunable":
			e.Prunable = true
		}
	}
	return entries
}

// topMode is the mode of a worktree's top directory.
const topMode = 0o700

// AddWorktree adds a worktree at path on branch. It creates the branch at the commit base; with base "" the branch
// exists. With branch "" the HEAD is detached at base. Without checkout the worktree has only its .git file. It drops
// an entry of a missing worktree if the entry has exactly this path or this branch, and keeps all others. It runs no
// hook and sets no upstream. The worktree's top is private (0700).
func (g *Git) AddWorktree(ctx context.Context, common, path, branch, base string, checkout bool) (wt Worktree,
	err error) {
	// In a dry run, a directory that would have been moved may still exist.
	if g.placeOf(path) != removed && (g.dry || somethingAt(path) != nil) {
		_, found := AdminDir(common, path)
		switch {
		case found:
			err = g.RemoveWorktree(ctx, common, path)
		case g.dry: // below, no command fails in a dry run
			_, err = g.dropStale(ctx, common, branch)
		}
		if err != nil {
			return wt, err
		}
	}
	add := InRepo(common, "worktree", "add", "--quiet", "--no-guess-remote", "--no-checkout")
	switch {
	case branch == "":
		add.Args = append(add.Args, "--detach", path, base)
	case base == "":
		add.Args = append(add.Args, path, branch)
	default:
		add.again = append(slices.Clone(add.Args), "--no-track", "-B", branch, path, base) // a new branch
		add.Args = append(add.Args, "--no-track", "-b", branch, path, base)
	}
	if branch != "" {
		if err := g.clearBranchLocks(ctx, common, branch); err != nil {
			return wt, err
		}
	}
	_, err = g.Mutate(ctx, add)
	if err != nil && branch != "" && ctx.Err() == nil {
		// A deleted worktree may still have the branch.
		if dropped, derr := g.dropStale(ctx, common, branch); derr == nil && len(dropped) > 0 {
			_, err = g.Mutate(ctx, add)
		}
	}
	if g.plan(path, made); err == nil && !g.dry {
		// git's directories follow the umask. A file system without modes keeps its own.
		_ = os.Chmod(path, topMode)
		err = linkForeign(common, path)
	}
	if err != nil {
		return wt, err
	}
	if wt, err = g.Worktree(ctx, common, path, branch); err == nil && checkout {
		err = g.Strict().ReadTree(ctx, wt, "HEAD", true)
	}
	if err != nil && ctx.Err() == nil { // as in git
		err = errors.Join(err, g.RemoveWorktree(ctx, common, path))
	}
	return wt, err
}

// RemoveWorktree removes the repository's worktree at path with everything in it, also if it is locked, has submodules
// or is half removed. It also removes entries that killed git processes left. It keeps a directory for which the
// repository has no entry. It deletes the files first, because git refuses to remove a worktree with a broken link, or
// next to an incomplete entry. Then it removes the entry itself.
func (g *Git) RemoveWorktree(ctx context.Context, common, path string) error {
	if admin, found := AdminDir(common, path); found {
		if g.plan(path, removed); !g.dry {
			if err := proc.RemoveAll(path); err != nil {
				return err
			}
		}
		_, err := g.Mutate(ctx, InRepo(common, "worktree", "remove", "--force", "--force", path))
		if err != nil {
			err = cmp.Or(ctx.Err(), removeEntry(admin, path))
		}
		if err != nil {
			return err
		}
	}
	if g.dry {
		return nil
	}
	return g.removeHalfEntries(common, path)
}

// dropStale removes entries of missing worktrees with branch checked out: moved with `git worktree move` or with their
// parent directory, and then deleted. Until then git treats the branch as checked out. It keeps a locked entry,
// because users lock worktrees on removable disks. It returns the paths.
func (g *Git) dropStale(ctx context.Context, common, branch string) (dropped []string, err error) {
	entries, err := g.Worktrees(ctx, common)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if e.Branch != branch || e.Locked || !e.Gone {
			continue
		}
		if err := g.RemoveWorktree(ctx, common, e.Path); err != nil {
			return dropped, err
		}
		dropped = append(dropped, e.Path)
	}
	return dropped, nil
}

// absent reports whether path does not exist. An unreadable path is not absent.
func absent(path string) bool {
	_, err := os.Lstat(path)
	return err != nil && isAbsent(err)
}

// place is the state of a worktree's path after the skipped commands of a dry run.
type place int

const (
	unchanged place = iota
	made            // the worktree exists, on its branch
	removed         // neither files nor an entry exist
)

// IsDryRun reports whether this Git runs no mutations.
func (g *Git) IsDryRun() bool { return g.dry }

// plan stores the state of a path after a skipped command of a dry run.
func (g *Git) plan(path string, p place) {
	if g.dry {
		g.known.planned.set(path, p)
	}
}

func (g *Git) placeOf(path string) place {
	if !g.dry {
		return unchanged
	}
	p, _ := g.known.planned.get(path)
	return p
}
