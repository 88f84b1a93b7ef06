package gitx

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/git-tilth/git-tilth/internal/proc"
)

// entries yields the repository's admin directories of its worktrees, each with the .git file that it names, or "".
func entries(common string) iter.Seq2[string, string] {
	return func(yield func(admin, dotGit string) bool) {
		all := filepath.Join(common, "worktrees")
		names, _ := os.ReadDir(all)
		for _, e := range names {
			admin, dotGit := filepath.Join(all, e.Name()), ""
			if back, _ := readFile(filepath.Join(admin, "gitdir")); strings.TrimSpace(string(back)) != "" {
				dotGit = relativeTo(admin, trimLine(back))
			}
			if !yield(admin, dotGit) {
				return
			}
		}
	}
}

// WorktreesBelow lists the paths below dir for which the repository has a worktree entry, existing or not.
func WorktreesBelow(common, dir string) (paths []string) {
	top := filepath.Dir(resolveParents(filepath.Join(dir, "x")))
	for _, dotGit := range entries(common) {
		rel, err := filepath.Rel(top, filepath.Dir(resolveParents(dotGit)))
		if dotGit != "" && err == nil && rel != "." && filepath.IsLocal(rel) {
			paths = append(paths, filepath.Join(dir, rel))
		}
	}
	return paths
}

// removeEntry removes the entry of path, unless it now belongs to another worktree that `git worktree add` may be
// making under the same name.
func removeEntry(admin, path string) error {
	back, err := readFile(filepath.Join(admin, "gitdir"))
	if err != nil || !samePlace(relativeTo(admin, trimLine(back)), filepath.Join(path, ".git")) {
		return nil
	}
	if err := os.RemoveAll(admin); err != nil {
		return err
	}
	_ = os.Remove(filepath.Dir(admin)) // as in git, if it is empty
	return nil
}

// HasBranch reports whether a repository has a branch, by git's own files. For reftable refs, which only git can read,
// it returns true.
func HasBranch(common, branch string) bool {
	sha, known := readRef(common, "refs/heads/"+branch)
	return sha != "" || !known && hasReftable(common)
}

// removeHalfEntries removes the entries that a killed git left while it added or removed a worktree at path. They have
// the entry's name but no worktree path. It keeps them while another git process works in the repository, because
// that process may be making the entry.
func (g *Git) removeHalfEntries(common, path string) error {
	all := filepath.Join(common, "worktrees")
	names, err := os.ReadDir(all)
	if err != nil {
		return nil // none
	}
	for _, e := range names {
		// git appends a number to a name in use.
		if strings.TrimRight(e.Name(), "0123456789") != strings.TrimRight(filepath.Base(path), "0123456789") ||
			!e.IsDir() {
			continue
		}
		admin := filepath.Join(all, e.Name())
		fi, err := e.Info()
		if err != nil || !isHalf(admin) {
			continue
		}
		if left, _ := g.leftBehind(admin, fi, repoPlaces(common)); !left || !isHalf(admin) {
			continue
		}
		if err := os.RemoveAll(admin); err != nil {
			return err
		}
	}
	_ = os.Remove(all) // as in git, if it is empty
	return nil
}

// isHalf reports whether an entry names no worktree.
func isHalf(admin string) bool {
	fi, err := os.Stat(filepath.Join(admin, "gitdir"))
	return err == nil && fi.Size() == 0 || err != nil && isAbsent(err)
}

// AdminDir finds the repository's directory in common/worktrees for the worktree at path. Its gitdir file names path,
// or the .git file of path names it and its gitdir file names no other path.
func AdminDir(common, path string) (string, bool) {
	realCommon, err := filepath.EvalSymlinks(common)
	if err != nil {
		return "", false
	}
	all := filepath.Join(realCommon, "worktrees")
	dotGit := filepath.Join(path, ".git")
	own, back, _ := readLink(path)
	// In an intact worktree, entry and worktree name each other; the other entries need not be read.
	if filepath.Dir(own) == all && samePlace(back, dotGit) {
		return own, true
	}
	fallback := ""
	for admin, at := range entries(realCommon) {
		switch {
		case at != "" && samePlace(at, dotGit):
			return admin, true
		case at == "" && own == admin:
			fallback = admin
		}
	}
	return fallback, fallback != ""
}

// SamePath reports whether two paths lead to the same file or directory. For missing files it compares the parent
// directories with symlinks resolved.
func SamePath(a, b string) bool { return a == b || sameFile(a, b) || samePlace(a, b) }

// samePlace reports whether two paths name the same file, which need not exist.
func samePlace(a, b string) bool {
	return a == b || resolveParents(a) == resolveParents(b)
}

// resolveParents resolves the symlinks in the existing part of p.
func resolveParents(p string) string {
	p = filepath.Clean(p)
	for rest := ""; ; {
		if real, err := filepath.EvalSymlinks(filepath.Dir(p)); err == nil {
			return filepath.Join(real, filepath.Base(p), rest)
		}
		up := filepath.Dir(p)
		if up == p {
			return filepath.Join(p, rest)
		}
		rest = filepath.Join(filepath.Base(p), rest)
		p = up
	}
}

// repairLinks restores the links between a worktree and its entry, without which git refuses to remove either. The
// .git file may be missing because the directory was deleted and made again, or may have become a repository.
func repairLinks(admin, path string) error {
	if err := repairEntry(admin, path); err != nil {
		return err
	}
	dotGit := filepath.Join(path, ".git")
	fi, err := os.Lstat(path)
	if err != nil {
		return nil
	}
	if !fi.IsDir() {
		// A symlink or a file replaced the worktree. The target of a link is not the session's, so only the link is
		// removed.
		return os.Remove(path)
	}
	if to, err := readGitFile(dotGit); err == nil && sameFile(to, admin) {
		return nil
	}
	if err := os.RemoveAll(dotGit); err != nil {
		return err
	}
	return replaceFile(dotGit, "gitdir: "+admin+"\n")
}

// repairEntry restores the links of an entry to its repository and to the worktree at path.
func repairEntry(admin, path string) error {
	common := filepath.Dir(filepath.Dir(admin))
	if of, err := commonDir(admin); err != nil || of != common {
		if err := replaceFile(filepath.Join(admin, "commondir"), "../..\n"); err != nil {
			return err
		}
	}
	dotGit, back := filepath.Join(path, ".git"), filepath.Join(admin, "gitdir")
	if b, err := readFile(back); err == nil && samePlace(relativeTo(admin, trimLine(b)), dotGit) {
		return nil
	}
	return replaceFile(back, dotGit+"\n")
}

// tempMark is the prefix of replaceFile's temporary files. git does not accept such a name as a ref.
const tempMark = ".tilth-"

// replaceFile replaces any file at path. It does not follow a symlink.
func replaceFile(path, content string) error {
	f, err := os.CreateTemp(filepath.Dir(path), tempMark)
	if err != nil {
		return err
	}
	_, err = f.WriteString(content)
	if err = errors.Join(err, f.Chmod(0o644), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}

// Restore restores the .git file of the worktree at path, which the worker can write. It also removes the worker's
// settings and hooks from submodules, because git in the worktree runs git status in them.
func (g *Git) Restore(ctx context.Context, common, path string) error {
	admin, found := AdminDir(common, path)
	if g.dry || common == "" || !found {
		return nil
	}
	proc.KeepFile(filepath.Join(path, ".git"), "gitdir: "+admin+"\n")
	if err := g.putBackLink(Worktree{Path: path, AdminDir: admin}); err != nil {
		return err
	}
	index, err := readFile(filepath.Join(admin, "index"))
	if err != nil || !bytes.Contains(index, gitlinkMode) && !bytes.Contains(index, splitIndex) {
		return nil
	}
	return g.cleanModules(ctx, admin, filepath.Dir(filepath.Dir(admin)), path)
}

// putBackLink restores the .git file of a worktree. If the file is missing, only the directory that was checked before
// gets it. The caller handles a .git that is a directory.
func (g *Git) putBackLink(wt Worktree) error {
	if err := g.reopen(wt.Path); err != nil {
		return err
	}
	dotGit := filepath.Join(wt.Path, ".git")
	fi, err := os.Lstat(dotGit)
	top, _ := g.known.tops.get(wt.Path)
	switch {
	case g.dry, err == nil && fi.IsDir(), err != nil && (top == "" || top != identity(wt.Path)):
		return nil
	case err == nil && fi.Mode().IsRegular():
		if to, err := readGitFile(dotGit); err == nil && sameFile(to, wt.AdminDir) {
			return nil
		}
	}
	return replaceFile(dotGit, "gitdir: "+wt.AdminDir+"\n")
}

// reopen makes the top directory of a worktree accessible to its owner, because git-tilth needs it.
func (g *Git) reopen(path string) error {
	fi, err := os.Lstat(path)
	if g.dry || err != nil || !fi.IsDir() || fi.Mode()&0o700 == 0o700 {
		return nil
	}
	return os.Chmod(path, fi.Mode()|0o700)
}

// identity identifies a directory among later ones at the same path, as far as the file system can.
func identity(path string) string {
	var st unix.Stat_t
	if unix.Lstat(path, &st) != nil {
		return ""
	}
	return fmt.Sprint(st.Dev, st.Ino, born(path))
}

// MoveEntry gives the entry of a worktree without files, and its .git file, to another directory.
func (g *Git) MoveEntry(wt Worktree, path string) error {
	if g.plan(path, made); g.dry {
		return nil
	}
	if err := os.Rename(filepath.Join(wt.Path, ".git"), filepath.Join(path, ".git")); err != nil {
		return err
	}
	return repairEntry(wt.AdminDir, path)
}

// Relink restores the links between the repository and the worktree at path: it repairs an entry that names path, or
// updates the entry of a worktree that was moved to path. Otherwise done is false, and nothing changes.
func (g *Git) Relink(ctx context.Context, common, path string) (done bool, err error) {
	if admin, found := AdminDir(common, path); found {
		if g.plan(path, made); g.dry {
			return true, nil
		}
		return true, repairLinks(admin, path)
	}
	admin, back, err := readLink(path)
	real, realErr := filepath.EvalSymlinks(common)
	if errors.Join(err, realErr) != nil || filepath.Dir(admin) != filepath.Join(real, "worktrees") {
		return false, nil
	}
	if _, err := os.Lstat(back); !errors.Is(err, os.ErrNotExist) {
		return false, nil // a copy; the entry belongs to the original
	}
	_, err = g.Mutate(ctx, InRepo(common, "worktree", "repair", path))
	g.plan(path, made)
	return err == nil, err
}

// Sparse has a checkout's sparse patterns. The zero value is a full checkout.
type Sparse struct {
	Patterns []byte
	Cone     bool
}

// SparseOf returns the sparse patterns of a user's checkout.
func (g *Git) SparseOf(ctx context.Context, wt Worktree) (s Sparse) {
	is := func(name string) bool {
		value, _ := g.Line(ctx, InRepo(wt.AdminDir, "config", "--type=bool", name)) // "" if not set
		return value == "true"
	}
	patterns, err := readFile(filepath.Join(wt.AdminDir, "info/sparse-checkout"))
	if err != nil || len(patterns) == 0 || !is("core.sparseCheckout") {
		return s
	}
	return Sparse{patterns, is("core.sparseCheckoutCone")}
}
