package gitx

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Incomplete reports whether the repository has an entry for path that a killed git left without what makes it one.
// git's list of worktrees may fail on it altogether; RemoveWorktree removes it.
func Incomplete(common, path string) bool {
	admin, found := adminDirFor(common, path)
	return found && !complete(admin)
}

// complete reports whether an entry has what makes it a repository to git.
func complete(admin string) bool {
	for _, name := range []string{"HEAD", "commondir"} {
		if fi, err := os.Stat(filepath.Join(admin, name)); err != nil || fi.Size() == 0 {
			return false
		}
	}
	return true
}

// removeIncomplete removes what a git that was killed while it made or removed a worktree has left. git refuses to:
// the entry is no repository.
func (g *Git) removeIncomplete(common, admin, path string) error {
	if g.dry {
		return nil
	}
	if err := os.RemoveAll(path); err != nil {
		makeRemovable(path)
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	return g.RemoveAdminDir(common, admin, path)
}

// AdminDir returns the repository's own directory for the worktree at path, in common/worktrees; ok is false if it
// has none.
func AdminDir(common, path string) (dir string, ok bool) { return adminDirFor(common, path) }

// RemoveAdminDir removes what a `git worktree remove` that was killed has left of admin, which AdminDir gave for path
// before. A directory that has become another worktree's is left alone.
func (g *Git) RemoveAdminDir(common, admin, path string) error {
	realCommon, err := filepath.EvalSymlinks(common)
	if err != nil {
		return err
	}
	if all := filepath.Join(realCommon, "worktrees"); g.dry || filepath.Dir(admin) != all || filepath.Base(admin) == ".." {
		return nil
	}
	back, err := os.ReadFile(filepath.Join(admin, "gitdir"))
	if err == nil && !samePath(relativeTo(admin, trimLine(back)), filepath.Join(path, ".git")) {
		return nil
	}
	if err := os.RemoveAll(admin); err != nil {
		return err
	}
	_ = os.Remove(filepath.Dir(admin)) // as git does, if it is empty
	return nil
}

// Holdings reads once which branches below refs/heads/<dir> and which worktrees a repository has, from git's own files.
// The answer reports whether it has the branch or an entry for a worktree at path. Of reftable refs it says yes: only
// git can read them.
func Holdings(common, dir string) (holds func(branch, path string) bool) {
	if _, err := os.Stat(filepath.Join(common, "reftable")); err == nil {
		return func(string, string) bool { return true }
	}
	refs, places := map[string]bool{}, map[string]bool{}
	loose, _ := os.ReadDir(filepath.Join(common, "refs", "heads", dir))
	for _, e := range loose {
		refs["refs/heads/"+dir+"/"+e.Name()] = !e.IsDir()
	}
	packed, _ := os.ReadFile(filepath.Join(common, "packed-refs"))
	for line := range strings.Lines(string(packed)) {
		if _, ref, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			refs[ref] = true
		}
	}
	entries, _ := os.ReadDir(filepath.Join(common, "worktrees"))
	for _, e := range entries {
		admin := filepath.Join(common, "worktrees", e.Name())
		if back, err := os.ReadFile(filepath.Join(admin, "gitdir")); err == nil {
			places[resolveParents(relativeTo(admin, trimLine(back)))] = true
		}
	}
	return func(branch, path string) bool {
		return refs["refs/heads/"+branch] || len(places) > 0 && places[resolveParents(filepath.Join(path, ".git"))]
	}
}

// RemoveHalfCreated removes entries that a `git worktree add` for path was killed over before it wrote down whose they
// are. Such an entry is empty, or its files are, or it holds nothing but the note that it is being made, which keeps
// `git worktree prune` off it for ever. While a git process works in the repository, it may be the one that makes it.
func (g *Git) RemoveHalfCreated(common, path string) error {
	all := filepath.Join(common, "worktrees")
	names, err := os.ReadDir(all)
	if err != nil || g.dry {
		return nil // none
	}
	for _, e := range names {
		// git appends a number to a name that is taken.
		if strings.TrimRight(e.Name(), "0123456789") != strings.TrimRight(filepath.Base(path), "0123456789") || !e.IsDir() {
			continue
		}
		admin := filepath.Join(all, e.Name())
		if !halfCreated(admin) {
			continue
		}
		fi, err := e.Info()
		if err != nil || g.lockOwner(fi, repoPlaces(common)) != "" {
			continue
		}
		if err := os.RemoveAll(admin); err != nil {
			return err
		}
	}
	_ = os.Remove(all) // as git does, if it is empty
	return nil
}

func halfCreated(admin string) bool {
	// Nearly every entry says whose it is, which one stat tells.
	if fi, err := os.Stat(filepath.Join(admin, "gitdir")); err == nil && fi.Size() > 0 {
		return false
	}
	entries, err := os.ReadDir(admin)
	if err != nil {
		return false
	}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(admin, e.Name()))
		if err != nil || len(data) > 0 && (e.Name() != "locked" || trimLine(data) != "initializing") {
			return false
		}
	}
	return true
}

// adminDirFor finds the repository's entry for a worktree at path: the one whose gitdir file names it, else the one
// that path's own .git file names and that names no other place.
func adminDirFor(common, path string) (string, bool) {
	realCommon, err := filepath.EvalSymlinks(common)
	if err != nil {
		return "", false
	}
	all := filepath.Join(realCommon, "worktrees")
	dotGit := filepath.Join(path, ".git")
	own, _ := readGitFile(dotGit)
	// A worktree that is whole names its entry, and the entry names it; the others need not be read then.
	if real, err := filepath.EvalSymlinks(own); own != "" && err == nil && filepath.Dir(real) == all {
		if b, err := os.ReadFile(filepath.Join(real, "gitdir")); err == nil && samePath(relativeTo(real, trimLine(b)), dotGit) {
			return real, true
		}
	}
	names, err := os.ReadDir(all)
	if err != nil {
		return "", false
	}
	fallback, found := "", false
	for _, e := range names {
		admin := filepath.Join(all, e.Name())
		b, err := os.ReadFile(filepath.Join(admin, "gitdir"))
		back := strings.TrimSpace(string(b))
		if back != "" && samePath(relativeTo(admin, trimLine(b)), dotGit) {
			return admin, true
		}
		if (err != nil || back == "") && own != "" && sameFile(own, admin) {
			fallback, found = admin, true
		}
	}
	return fallback, found
}

// samePath reports whether two paths name the same place, which need not exist: the parent directories are compared
// with their symlinks resolved.
func samePath(a, b string) bool {
	return a == b || resolveParents(a) == resolveParents(b)
}

// resolveParents resolves the symlinks of the part of p that exists.
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

// repairLinks puts the links between a worktree and its entry back, without which git refuses to remove either: the
// .git file may be gone with a directory that was deleted and made again, or may have become a repository.
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
		// A symlink or a file in the place of the worktree: what a link leads to is not the session's, so only the
		// link goes.
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

// repairEntry makes an entry lead to its repository and to the worktree at path.
func repairEntry(admin, path string) error {
	common := filepath.Dir(filepath.Dir(admin))
	if of, err := commonDir(admin); err != nil || of != common {
		if err := replaceFile(filepath.Join(admin, "commondir"), "../..\n"); err != nil {
			return err
		}
	}
	dotGit, back := filepath.Join(path, ".git"), filepath.Join(admin, "gitdir")
	if b, err := os.ReadFile(back); err == nil && samePath(relativeTo(admin, trimLine(b)), dotGit) {
		return nil
	}
	return replaceFile(back, dotGit+"\n")
}

// replaceFile puts a file in the place of whatever is there; a symlink is replaced and not followed.
func replaceFile(path, content string) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".tilth-")
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

// RestoreEntry puts back what a worker rewrote of the files by which the worktree at path and the repository know each
// other: the worktree's .git file, and commondir, gitdir and HEAD of its entry. With a foreign commondir the user's own
// `git worktree list` fails as well. A worktree that was moved or copied, an entry that a killed git left half created
// and a HEAD on another branch are not rewritten; they are left as they are.
func (g *Git) RestoreEntry(common, path, branch string) error {
	dotGit := filepath.Join(path, ".git")
	fi, err := os.Lstat(dotGit)
	if g.dry || err != nil || fi.IsDir() {
		return nil
	}
	admin, found := g.ownEntry(common, path, branch)
	if !found {
		return nil
	}
	if err := repairEntry(admin, path); err != nil {
		return err
	}
	head := filepath.Join(admin, "HEAD")
	if b, err := os.ReadFile(head); err != nil || !strings.HasPrefix(string(b), "ref: refs/") && !isObjectID(trimLine(b)) {
		if err := replaceFile(head, "ref: refs/heads/"+branch+"\n"); err != nil {
			return err
		}
	}
	if to, err := readGitFile(dotGit); fi.Mode().IsRegular() && err == nil && sameFile(to, admin) {
		return nil
	}
	return replaceFile(dotGit, "gitdir: "+admin+"\n")
}

// ownEntry finds the entry of a worktree of which each file may be the worker's word: the one that names path, else
// the one that path names or that is on branch, if no other worktree has it.
func (g *Git) ownEntry(common, path, branch string) (admin string, found bool) {
	real, err := filepath.EvalSymlinks(common)
	if err != nil {
		return "", false
	}
	if admin, found = adminDirFor(common, path); found {
		_, err := os.Lstat(filepath.Join(admin, "index"))
		return admin, err == nil // without an index, it was never whole
	}
	all := filepath.Join(real, "worktrees")
	entries, _ := os.ReadDir(all)
	own, _ := readGitFile(filepath.Join(path, ".git"))
	for _, e := range entries {
		admin := filepath.Join(all, e.Name())
		head, _ := os.ReadFile(filepath.Join(admin, "HEAD"))
		if !sameFile(own, admin) && trimLine(head) != "ref: refs/heads/"+branch {
			continue
		}
		back, _ := os.ReadFile(filepath.Join(admin, "gitdir"))
		at := relativeTo(admin, trimLine(back))
		if _, err := os.Lstat(at); err != nil {
			continue // it was moved: see RepairMoved
		}
		if to, err := readGitFile(at); err != nil || !sameFile(to, admin) {
			return admin, true
		}
	}
	return "", false
}

// LostLink reports whether path is a worktree whose .git file alone is gone: the repository still has its entry, and
// most of the files of the entry's index are there. A directory that something else made in the place of a worktree
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
	if g.plan(path, made); g.dry {
		return nil
	}
	return repairLinks(admin, path)
}

// RepairMoved makes the repository know a worktree at path that it knows at another place where nothing is any more:
// someone moved the directory. moved is false, and nothing is changed, if that is not how it is.
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
	g.plan(path, made)
	return err == nil, err
}
