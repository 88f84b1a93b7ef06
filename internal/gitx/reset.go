package gitx

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/proc"
)

// ReadTree makes the index equal to tree, and with files the tracked files too. HEAD does not move. The index keeps
// the stat data of unchanged files, so that the next staging does not read them all.
func (g *Git) ReadTree(ctx context.Context, wt Worktree, tree string, files bool) error {
	if !files {
		return g.change(ctx, wt, g.InWorktree(wt, "read-tree", "--reset", tree))
	}
	if err := g.FetchMissing(ctx, wt, tree); err != nil {
		return err
	}
	return g.orAsTheyLie(ctx, func(g *Git) error {
		return g.change(ctx, wt, g.InWorktree(wt, "read-tree", "--reset", "-u", tree))
	})
}

// Reset moves the worktree's branch to sha, or the detached HEAD of a worktree without a branch. Index and files stay,
// including conflicts of a merge in the index. With files they become equal to sha, even with an unreadable index or
// read-only directories. An interrupted Reset has moved neither HEAD nor index and can be repeated.
func (g *Git) Reset(ctx context.Context, wt Worktree, sha string, files bool) error {
	if files {
		if err := g.resetFiles(ctx, wt, sha); err != nil {
			return err
		}
	}
	args := []string{"update-ref", "-m", "reset: moving to " + sha, "HEAD", sha}
	if wt.Branch == "" {
		args = slices.Insert(args, 1, "--no-deref")
	}
	return g.change(ctx, wt, g.InEntry(wt, args...))
}

func (g *Git) resetFiles(ctx context.Context, wt Worktree, sha string) error {
	reset := func() error { return g.ReadTree(ctx, wt, sha, true) }
	err := reset()
	if err == nil || ctx.Err() != nil {
		return err
	}
	rebuilt, merr := g.rebuildIndex(ctx, wt)
	if merr != nil {
		return merr
	}
	if rebuilt {
		err = reset()
	}
	if err != nil && ctx.Err() == nil && len(proc.MakeRemovable(wt.Path)) > 0 {
		err = reset()
	}
	return err
}

// change runs a command that writes to the worktree or its entry, after removing stale locks.
func (g *Git) change(ctx context.Context, wt Worktree, c Command) error {
	if err := g.ClearInProgress(ctx, wt); err != nil {
		return err
	}
	_, err := g.Mutate(ctx, c)
	return err
}

// unfinished are the files that mark an unfinished merge, rebase or similar operation in a worktree. They make git
// refuse a soft reset, and make a merge of the next commit.
var unfinished = []string{
	"MERGE_HEAD", "MERGE_MODE", "MERGE_MSG", "MERGE_RR", "AUTO_MERGE", "SQUASH_MSG", "CHERRY_PICK_HEAD", "REVERT_HEAD",
	"REBASE_HEAD", "BISECT_LOG", "BISECT_START", "rebase-merge", "rebase-apply", "sequencer",
}

// ClearInProgress ends an unfinished merge, rebase, cherry-pick or bisection in the worktree, like `git merge --quit`.
// HEAD, index and files do not change. (`git rebase --quit` would put an autostash among the user's stashes.) It also
// removes lock files of killed processes. Every writing operation calls it first.
func (g *Git) ClearInProgress(ctx context.Context, wt Worktree) error {
	if err := g.ClearWorktreeLocks(ctx, wt); err != nil {
		return err
	}
	if g.dry {
		return nil
	}
	if err := g.putBackLink(wt); err != nil {
		return err
	}
	if _, err := os.Lstat(filepath.Join(wt.Path, ".git")); err != nil {
		if err := somethingAt(wt.Path); err != nil {
			return err
		}
		return fmt.Errorf("%s: %w: it has no .git file any more", wt.Path, errUnregistered)
	}
	entries, err := os.ReadDir(wt.AdminDir)
	for _, e := range entries {
		if slices.Contains(unfinished, e.Name()) {
			err = cmp.Or(err, os.RemoveAll(filepath.Join(wt.AdminDir, e.Name())))
		}
	}
	return err
}

// RewindTree resets the worktree to sha: a hard reset and a clean, also of untracked repositories. Files that were
// ignored before the reset (keep, from IgnoredBefore) or are ignored after it stay. It makes directories accessible if
// they block the reset, and does not restore their modes. The top directory becomes private again.
func (g *Git) RewindTree(ctx context.Context, wt Worktree, sha string, keep []string) error {
	if err := g.Reset(ctx, wt, sha, true); err != nil {
		return err
	}
	if err := g.clean(ctx, wt, keep); err != nil || g.dry {
		return err
	}
	_ = os.Chmod(wt.Path, topMode)
	return nil
}

// IgnoredBefore lists the ignored paths, a directory as one path, if a reset to sha changes the ignore rules.
// Otherwise it lists none, because comparing the rules is cheap and listing walks the worktree.
func (g *Git) IgnoredBefore(ctx context.Context, wt Worktree, sha string) ([]string, error) {
	changed, err := g.rulesChanged(ctx, wt, sha)
	if err != nil && ctx.Err() == nil {
		if rebuilt, merr := g.rebuildIndex(ctx, wt); merr != nil || !rebuilt {
			return nil, cmp.Or(merr, err)
		}
		changed, err = g.rulesChanged(ctx, wt, sha)
	}
	if err != nil || !changed {
		return nil, err
	}
	return g.List(ctx, g.InWorktree(wt, "ls-files", "-z", "--others", "--ignored", "--exclude-standard",
		"--directory"))
}

// rulesChanged reports whether going to sha may change the ignore rules.
func (g *Git) rulesChanged(ctx context.Context, wt Worktree, sha string) (bool, error) {
	// git matches a single star without magic fastest. It also matches x.gitignore, which costs at worst a list.
	// Threads to stat a few files cost more than they save.
	out, err := g.Read(ctx, g.InWorktree(wt, "-c", "core.preloadIndex=false", "diff-index", "-z", "--name-only",
		"--no-ext-diff", sha, "--", "*.gitignore"))
	return len(out) > 0, err
}

// clean removes untracked files and directories, except ignored ones and the paths in keep.
func (g *Git) clean(ctx context.Context, wt Worktree, keep []string) error {
	if err := g.ClearInProgress(ctx, wt); err != nil {
		return err
	}
	err := g.cleanOnce(ctx, wt, keep)
	if err == nil || ctx.Err() != nil {
		return err
	}
	// Try only the blocked paths again. The first pass may have removed an untracked .gitignore, and a second pass
	// over everything would remove the files that it covered.
	if opened := slices.Concat(proc.MakeRemovable(wt.Path), shorten(wt.Path)); len(opened) > 0 {
		return g.cleanOnce(ctx, wt, keep, opened...)
	}
	return err
}

// cleanOnce cleans the given paths, or the whole worktree.
func (g *Git) cleanOnce(ctx context.Context, wt Worktree, keep []string, only ...string) error {
	// With one -f, git clean silently keeps most untracked repositories. They belong to the run, like every other
	// untracked file.
	c := g.InWorktree(wt, "clean", "-fd", "--force", "--quiet")
	if len(only) > 0 {
		c.Args = append(c.Args, "--")
		for _, p := range only {
			c.Args = append(c.Args, ":(literal)"+p)
		}
	}
	if g.dry {
		_, err := g.Mutate(ctx, c)
		return err
	}
	var rules strings.Builder
	for _, p := range keep {
		rules.WriteString(exactRule(p) + "\n")
	}
	return g.quarantined(ctx, wt, false, func(in *Git) error {
		_, err := in.in.addRules(rules.String())
		if err == nil {
			_, err = in.Mutate(ctx, c)
		}
		return err
	})
}

// longPath is the longest path of a directory in a worktree, in bytes. git names files by their whole paths, and the
// kernel accepts 4096 bytes.
const longPath = 3000

// shorten removes directories below path whose paths are too long for git. It returns the entries of path that
// contained them.
func shorten(path string) (in []string) {
	_ = filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		rel, relErr := filepath.Rel(path, p)
		if err != nil || relErr != nil || !d.IsDir() || len(rel) < longPath {
			return nil
		}
		if proc.RemoveAll(p) == nil {
			top, _, _ := strings.Cut(rel, string(filepath.Separator))
			in = append(in, top)
		}
		return fs.SkipDir
	})
	return slices.Compact(in)
}

// rebuildIndex replaces an index that git cannot read, for example after a power cut, by the index of HEAD, and
// reports whether it did. With such an index git refuses everything in the worktree, even a reset. It changes no file.
// Use it only if staged changes are discarded anyway.
//
// On disk after each step: 1. no index, which git reads as an empty one; 2. the index of HEAD.
func (g *Git) rebuildIndex(ctx context.Context, wt Worktree) (rebuilt bool, err error) {
	if g.dry || !g.indexBroken(ctx, wt) {
		return false, nil
	}
	err = os.Remove(filepath.Join(wt.AdminDir, "index"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return false, err
	}
	return true, g.change(ctx, wt, g.InWorktree(wt, "read-tree", "--reset", "HEAD"))
}

// indexBroken reports whether git cannot read the index.
func (g *Git) indexBroken(ctx context.Context, wt Worktree) bool {
	c := g.InWorktree(wt, "ls-files", "-z", "--cached")
	c.Limit = 1
	_, err := g.Read(ctx, c)
	said := saidBy(err)
	return said.ExitCode == 128 && strings.Contains(said.Stderr, "index") &&
		!strings.Contains(said.Stderr, "Permission denied")
}

// CatchUp applies the changes from one commit to another to index and files, in the paths that are the same in tree,
// just made by StageAll, and in from. It keeps other paths, because they have changes; with again it replaces those
// that a killed CatchUp wrote only half. HEAD does not move, and a second call changes nothing.
//
// This is the two-tree merge of git read-tree -m, which refuses everything if both sides changed one path.
func (g *Git) CatchUp(ctx context.Context, wt Worktree, from, to, tree string, again bool) error {
	changed, err := g.Paths(ctx, wt, from, to)
	if err != nil {
		return err
	}
	if !g.dry && tree != from { // no repository has the tree of a dry run
		theirs, err := g.Paths(ctx, wt, from, tree)
		if err == nil && again {
			theirs = slices.DeleteFunc(theirs, func(p string) bool { return !slices.Contains(changed, p) })
			theirs, err = g.notHalfWritten(ctx, wt, from, to, tree, theirs)
		}
		if err != nil {
			return err
		}
		stays := map[string]bool{}
		for _, p := range theirs {
			stays[p] = true
		}
		changed = slices.DeleteFunc(changed, func(p string) bool { return stays[p] })
	}
	if len(changed) == 0 {
		return nil
	}
	if err := g.FetchMissing(ctx, wt, to+"^{tree}"); err != nil {
		return err
	}
	c := g.InWorktree(wt, "--literal-pathspecs", "restore", "--quiet", "--source="+to, "--staged", "--worktree",
		"--ignore-skip-worktree-bits", "--pathspec-from-file=-", "--pathspec-file-nul")
	return g.change(ctx, wt, c.with(changed))
}

// notHalfWritten returns the paths changed in tree since from, except those that a killed CatchUp wrote only half. git
// removes a file and then writes it, so a missing file, or a file that is a prefix of its new content, is half
// written. A power cut may have left zeros at the end.
func (g *Git) notHalfWritten(ctx context.Context, wt Worktree, from, to, tree string, paths []string) (
	[]string, error,
) {
	if len(paths) == 0 {
		return nil, nil
	}
	gone, err := g.Paths(ctx, wt, from, tree, "--diff-filter=D")
	if err != nil {
		return nil, err
	}
	is, err := g.FilesAt(ctx, wt.Common, tree, paths)
	if err != nil {
		return nil, err
	}
	whole, err := g.FilesAt(ctx, wt.Common, to, paths)
	return slices.DeleteFunc(paths, func(p string) bool {
		now, there := is[p]
		want, known := whole[p]
		begun := there && known && bytes.HasPrefix(want, bytes.TrimRight(now, "\x00"))
		return begun || slices.Contains(gone, p)
	}), err
}

// Paths lists the paths that differ between two commits or trees; filter has options of git diff-tree.
func (g *Git) Paths(ctx context.Context, wt Worktree, a, b string, filter ...string) ([]string, error) {
	args := append([]string{"diff-tree", "-r", "-z", "--name-only", "--no-renames", "--ignore-submodules=none",
		"--no-relative"}, filter...)
	return g.List(ctx, g.InEntry(wt, append(args, "--end-of-options", a, b, "--")...))
}
