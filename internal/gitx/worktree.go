package gitx

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Worktree is a linked worktree that passed a check. Only [CheckWorktree] and
// [RegisteredWorktree] make one, and every command that writes in a worktree
// takes one, so that none runs in a directory that merely looks like it.
type Worktree struct {
	Path     string // as recorded
	Branch   string // the branch it was checked against; "" from RegisteredWorktree
	Common   string // common directory of its repository, symlinks resolved
	AdminDir string // its own git directory, below Common/worktrees
}

// CheckWorktree checks that path is the worktree that the repository with this
// common directory knows there and that its HEAD is on branch. It reads git's
// own files and starts no process (but for a repository with reftable refs,
// whose HEAD only git can read). The error is ErrWorktreeMissing,
// ErrUnregistered or a *WrongBranchError.
func CheckWorktree(common, path, branch string) (Worktree, error) {
	wt, err := RegisteredWorktree(common, path)
	if err != nil {
		return Worktree{}, err
	}
	on, err := headBranch(wt)
	if err != nil {
		return Worktree{}, err
	}
	if on != branch {
		return Worktree{}, &WrongBranchError{Path: path, Want: branch, On: on}
	}
	wt.Branch = branch
	return wt, nil
}

// RegisteredWorktree is CheckWorktree without a look at HEAD: for bringing back
// a HEAD that was moved. The error is ErrWorktreeMissing or ErrUnregistered.
func RegisteredWorktree(common, path string) (Worktree, error) {
	if err := somethingAt(path); err != nil {
		return Worktree{}, err
	}
	refuse := func(format string, a ...any) (Worktree, error) {
		return Worktree{}, fmt.Errorf("%s: %w: %s", path, ErrUnregistered, fmt.Sprintf(format, a...))
	}
	dotGit := filepath.Join(path, ".git")
	fi, err := os.Lstat(dotGit)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return refuse("it has no .git file")
	case err != nil:
		return refuse("%v", err)
	case !fi.Mode().IsRegular():
		return refuse("its .git is not a file, it is a repository of its own")
	}
	admin, err := readGitFile(dotGit)
	if err != nil {
		return refuse("%v", err)
	}
	realCommon, err := filepath.EvalSymlinks(common)
	if err != nil {
		return refuse("its repository is gone: %v", err)
	}
	realAdmin, err := filepath.EvalSymlinks(admin)
	if err != nil {
		return refuse("the repository has forgotten it: %v", err)
	}
	if rel, err := filepath.Rel(realCommon, realAdmin); err == nil && filepath.IsLocal(rel) && filepath.Dir(rel) != "worktrees" {
		return refuse("its .git file names %s, which is not the git directory of a worktree of its own", realAdmin)
	}
	if filepath.Dir(realAdmin) != filepath.Join(realCommon, "worktrees") {
		return refuse("it belongs to %s, not to %s", realAdmin, realCommon)
	}
	back, err := os.ReadFile(filepath.Join(realAdmin, "gitdir"))
	if err != nil {
		return refuse("%v", err)
	}
	if at := relativeTo(realAdmin, trimLine(back)); !sameFile(at, dotGit) {
		return refuse("the repository knows it at %s", filepath.Dir(at))
	}
	if of, err := commonDir(realAdmin); err != nil || of != realCommon {
		return refuse("its administrative files do not lead to %s", realCommon)
	}
	return Worktree{Path: path, Common: realCommon, AdminDir: realAdmin}, nil
}

// somethingAt returns ErrWorktreeMissing if there is nothing at path that a
// worktree could not simply be added over.
func somethingAt(path string) error {
	fi, err := os.Lstat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("%s: %w", path, ErrWorktreeMissing)
	case err != nil:
		return fmt.Errorf("%w: %w", ErrUnregistered, err)
	case !fi.IsDir():
		return fmt.Errorf("%s: %w: it is not a directory", path, ErrUnregistered)
	}
	d, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnregistered, err)
	}
	defer d.Close()
	if names, _ := d.Readdirnames(1); len(names) == 0 {
		return fmt.Errorf("%s: %w: the directory is empty", path, ErrWorktreeMissing)
	}
	return nil
}

func sameFile(a, b string) bool {
	fa, err := os.Stat(a)
	if err != nil {
		return false
	}
	fb, err := os.Stat(b)
	return err == nil && os.SameFile(fa, fb)
}

// reftableHead is what a repository with reftable refs has in its HEAD files.
const reftableHead = "refs/heads/.invalid"

// headBranch returns the branch that the worktree's HEAD is on, "" if it is
// detached.
func headBranch(wt Worktree) (string, error) {
	head := filepath.Join(wt.AdminDir, "HEAD")
	// core.preferSymlinkRefs makes HEAD a symlink to the ref.
	ref, err := os.Readlink(head)
	if err != nil {
		b, err := os.ReadFile(head)
		if err != nil {
			return "", fmt.Errorf("%s: %w: %w", wt.Path, ErrUnregistered, err)
		}
		var symbolic bool
		if ref, symbolic = strings.CutPrefix(trimLine(b), "ref: "); !symbolic {
			return "", nil
		}
	}
	if ref == reftableHead {
		g := New(os.Environ(), nil)
		// Exit 1 without a word: HEAD is detached.
		ref, err = g.line(context.Background(), g.inWorktree(wt, "symbolic-ref", "--quiet", "HEAD"))
		if err != nil && exitCode(err) != 1 {
			return "", err
		}
	}
	return strings.TrimPrefix(ref, "refs/heads/"), nil
}
