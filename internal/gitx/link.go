package gitx

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// LinkedCommon returns the common directory of the repository that the worktree
// at path says it belongs to. registered tells whether the repository knows it
// at this place. No process is started. The error is ErrNotRepo if there is no
// linked worktree at path, os.ErrNotExist if its link leads nowhere any more,
// and anything else if that cannot be told.
func LinkedCommon(path string) (common string, registered bool, err error) {
	dotGit := filepath.Join(path, ".git")
	admin, err := readGitFile(dotGit)
	if err != nil {
		// A worktree that a worker closed to its owner tells no more than one without a link.
		return "", false, fmt.Errorf("%s: %w", path, ErrNotRepo)
	}
	if filepath.Base(filepath.Dir(admin)) != "worktrees" {
		return "", false, fmt.Errorf("%s: %w: it is no linked worktree", path, ErrNotRepo)
	}
	real, err := filepath.EvalSymlinks(filepath.Dir(filepath.Dir(admin)))
	if err != nil {
		return "", false, err
	}
	if err := checkGitDir(real); err != nil {
		return "", false, err
	}
	admin = filepath.Join(real, "worktrees", filepath.Base(admin))
	back, err := os.ReadFile(filepath.Join(admin, "gitdir"))
	return real, err == nil && sameFile(relativeTo(admin, trimLine(back)), dotGit), nil
}

// HasBranch tells whether a repository has a branch, from git's own files; it
// starts no process. Of reftable refs it says yes: only git can read them.
func HasBranch(common, branch string) bool {
	ref := "refs/heads/" + branch
	if fi, err := os.Lstat(filepath.Join(common, filepath.FromSlash(ref))); err == nil && !fi.IsDir() {
		return true
	}
	if _, err := os.Stat(filepath.Join(common, "reftable")); err == nil {
		return true
	}
	packed, err := os.ReadFile(filepath.Join(common, "packed-refs"))
	return err == nil && strings.Contains(string(packed)+"\n", " "+ref+"\n")
}

// Vanished tells whether err, which CommonDirOf gave for path, means that no
// repository is there any more. One that is there and cannot be read, or lacks
// a part, has not vanished: what it knows of a worktree is still in it.
func Vanished(path string, err error) bool {
	if isAbsent(err) {
		return true
	}
	if !errors.Is(err, ErrNotRepo) {
		return false
	}
	if !filepath.IsAbs(path) {
		return true
	}
	for _, name := range []string{".git", "objects", "refs"} {
		if _, err := os.Lstat(filepath.Join(path, name)); !isAbsent(err) {
			return false
		}
	}
	return true
}

// mendLinks puts the two links between a worktree and its entry back, without
// which git refuses to remove either: the .git file may be gone with a
// directory that was deleted and made again, or may have become a repository.
func mendLinks(admin, path string) error {
	dotGit := filepath.Join(path, ".git")
	back := filepath.Join(admin, "gitdir")
	if b, err := os.ReadFile(back); err != nil || !samePath(relativeTo(admin, trimLine(b)), dotGit) {
		if err := os.WriteFile(back, []byte(dotGit+"\n"), 0o666); err != nil {
			return err
		}
	}
	fi, err := os.Lstat(path)
	if err != nil {
		return nil
	}
	if !fi.IsDir() {
		// A symlink or a file in the place of the worktree: what a link leads
		// to is not the session's, so only the link goes.
		return os.Remove(path)
	}
	if to, err := readGitFile(dotGit); err == nil && sameFile(to, admin) {
		return nil
	}
	if err := os.RemoveAll(dotGit); err != nil {
		return err
	}
	return os.WriteFile(dotGit, []byte("gitdir: "+admin+"\n"), 0o666)
}

// LostLink tells whether path is a worktree whose .git file alone is gone: the
// repository still has its entry, and most of the files of the entry's index
// are there. A directory that something else made in the place of a worktree
// that is gone has few of them or none.
func (g *Git) LostLink(ctx context.Context, common, path string) (bool, error) {
	admin, found := adminDirFor(common, path)
	if _, err := os.Lstat(filepath.Join(path, ".git")); !found || err == nil || !complete(admin) {
		return false, nil
	}
	list := func(which ...string) ([]string, error) {
		c := inRepo(admin, append([]string{"--work-tree=" + path, "ls-files", "-z", "--deduplicate"}, which...)...)
		c.dir = path
		out, err := g.read(ctx, c)
		return fields(out), err
	}
	all, err := list("--cached")
	if err != nil || len(all) == 0 {
		return false, nil // an index that cannot be read proves nothing
	}
	gone, err := list("--deleted")
	return err == nil && len(gone)*2 < len(all), err
}

// Relink puts back the .git file of a worktree that LostLink tells of.
func (g *Git) Relink(common, path string) error {
	admin, found := adminDirFor(common, path)
	if !found {
		return fmt.Errorf("%s: %w", path, ErrUnregistered)
	}
	if g.plan(path); g.dry {
		return nil
	}
	return mendLinks(admin, path)
}

// RepairMoved makes the repository know a worktree at path that it knows at
// another place where nothing is any more: someone moved the directory. moved is
// false, and nothing is changed, if that is not how it is.
func (g *Git) RepairMoved(ctx context.Context, common, path string) (moved bool, err error) {
	admin, err := readGitFile(filepath.Join(path, ".git"))
	if err != nil {
		return false, nil
	}
	realCommon, err := filepath.EvalSymlinks(common)
	if err != nil {
		return false, nil
	}
	admin, err = filepath.EvalSymlinks(admin)
	if err != nil || filepath.Dir(admin) != filepath.Join(realCommon, "worktrees") {
		return false, nil
	}
	back, err := os.ReadFile(filepath.Join(admin, "gitdir"))
	if err != nil {
		return false, nil
	}
	if _, err := os.Lstat(relativeTo(admin, trimLine(back))); !errors.Is(err, os.ErrNotExist) {
		return false, nil // a copy: the entry is the other one's
	}
	_, err = g.mutate(ctx, inRepo(common, "worktree", "repair", path))
	g.plan(path)
	return err == nil, err
}
