package gitx

import (
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
