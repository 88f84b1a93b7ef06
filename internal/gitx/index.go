package gitx

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// rebuildIndex replaces an index that git cannot read, as a machine that lost its power leaves one, by the one of HEAD,
// and reports whether it did: git does nothing in the worktree with it, not even a reset. Only for where what was
// staged is given up anyway; no file is touched.
//
// On disk after each step: 1. no index, which git takes for an empty one; 2. the index of HEAD.
func (g *Git) rebuildIndex(ctx context.Context, wt Worktree) (rebuilt bool, err error) {
	if g.dry || !g.indexBroken(ctx, wt) {
		return false, nil
	}
	err = os.Remove(filepath.Join(wt.AdminDir, "index"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return false, err
	}
	return true, g.change(ctx, wt, "read-tree", "--reset", "HEAD")
}

// indexBroken reports whether git says of the index that it cannot be read.
func (g *Git) indexBroken(ctx context.Context, wt Worktree) bool {
	c := g.inWorktree(wt, "ls-files", "-z", "--cached")
	c.limit = 1
	_, err := g.read(ctx, c)
	var said *commandError
	return errors.As(err, &said) && said.ExitCode == 128 && strings.Contains(said.Stderr, "index") &&
		!strings.Contains(said.Stderr, "Permission denied")
}

// IsDirty reports whether the work tree at dir has changes to tracked files, in the index or out of it, or untracked
// files that are not ignored. Build products, which stay untracked from one task to the next, are no one's work. It
// takes no lock and leaves the index as it is, byte for byte.
func (g *Git) IsDirty(ctx context.Context, dir string) (bool, error) {
	out, err := g.read(ctx, g.inUserDir(dir, "status", "--porcelain=v1", "-z", "--untracked-files=normal",
		"--ignore-submodules=dirty", "--no-renames"))
	var s survey
	for _, f := range fields(out) {
		path, untracked := strings.CutPrefix(f, "?? ")
		if untracked {
			s.sortUntracked(dir, path)
		}
		if !untracked || len(s.refused)+len(s.heldBack) > 0 {
			return true, err
		}
	}
	return false, err
}

// TrackedFiles lists the files of the index at dir and below that match any of the pathspecs (all if there are none),
// relative to dir.
func (g *Git) TrackedFiles(ctx context.Context, dir string, pathspecs ...string) ([]string, error) {
	args := append([]string{"ls-files", "-z", "--cached", "--deduplicate", "--"}, pathspecs...)
	out, err := g.read(ctx, g.inUserDir(dir, args...))
	return fields(out), err
}

// IgnoredFiles lists the untracked files at dir and below that the ignore rules cover and that match any of the
// patterns, relative to dir. In a pattern, * stays within a path segment and ** does not; a directory stands for what
// is in it.
func (g *Git) IgnoredFiles(ctx context.Context, dir string, patterns []string) ([]string, error) {
	if len(patterns) == 0 {
		return nil, nil
	}
	args := []string{"ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--"}
	for _, p := range patterns {
		args = append(args, ":(glob)"+p)
	}
	out, err := g.read(ctx, g.inUserDir(dir, args...))
	return fields(out), err
}

// ignored lists what the ignore rules keep out of the worktree's tree. A directory of which all is ignored is one
// entry, with a slash at its end.
func (g *Git) ignored(ctx context.Context, wt Worktree) ([]string, error) {
	out, err := g.read(ctx, g.inWorktree(wt, "ls-files", "-z", "--others", "--ignored", "--exclude-standard",
		"--directory"))
	return fields(out), err
}

// IgnoredEntries lists what the ignore rules keep out of the worktree's tree and is no build product. A directory of
// which all is ignored is one entry, with a slash at its end.
func (g *Git) IgnoredEntries(ctx context.Context, wt Worktree) ([]string, error) {
	all, err := g.ignored(ctx, wt)
	return slices.DeleteFunc(all, namesProduct), err
}

// CheckIgnored returns those of the paths, relative to the worktree, that git would ignore there. The paths need not
// exist.
func (g *Git) CheckIgnored(ctx context.Context, wt Worktree, paths []string) (map[string]bool, error) {
	ignored := map[string]bool{}
	if len(paths) == 0 {
		return ignored, nil
	}
	c := g.inWorktree(wt, "check-ignore", "-z", "--stdin")
	c.stdin = []byte(strings.Join(paths, "\x00") + "\x00")
	out, err := g.read(ctx, c)
	// Exit code 1 says that none of them is.
	if err != nil && exitCode(err) != 1 {
		return nil, err
	}
	for _, path := range fields(out) {
		ignored[path] = true
	}
	return ignored, nil
}

// MergeBase names the best common ancestor of two commits; it is "" if they have none.
func (g *Git) MergeBase(ctx context.Context, common, a, b string) (string, error) {
	base, err := g.line(ctx, inRepo(common, "merge-base", "--end-of-options", a, b))
	if exitCode(err) == 1 {
		return "", nil
	}
	return base, err
}

// CatchUp brings to the index and the files what changed from one commit to another, in those paths that tree, which
// StageAll just made of the files, still has as they are in from. The others are somebody's work: they stay as they
// are. HEAD stays where it is, and a second time changes nothing.
//
// This is the two-tree merge of git read-tree -m, but that one refuses as a whole where both sides changed one path.
func (g *Git) CatchUp(ctx context.Context, wt Worktree, from, to, tree string) error {
	changed, err := g.paths(ctx, wt, from, to)
	if err != nil {
		return err
	}
	var worked []string
	if !g.dry { // the tree of a dry run is in no repository
		if worked, err = g.paths(ctx, wt, from, tree); err != nil {
			return err
		}
	}
	theirs := map[string]bool{}
	for _, p := range worked {
		theirs[p] = true
	}
	var list strings.Builder
	for _, p := range changed {
		if !theirs[p] {
			list.WriteString(p + "\x00")
		}
	}
	if list.Len() == 0 {
		return nil
	}
	if err := g.prepare(ctx, wt); err != nil {
		return err
	}
	c := g.inWorktree(wt, "--literal-pathspecs", "restore", "--quiet", "--source="+to, "--staged", "--worktree",
		"--ignore-skip-worktree-bits",
		"--pathspec-from-file=-", "--pathspec-file-nul")
	c.stdin = []byte(list.String())
	_, err = g.mutate(ctx, c)
	return err
}

// paths lists what differs between two commits or trees.
func (g *Git) paths(ctx context.Context, wt Worktree, a, b string) ([]string, error) {
	out, err := g.read(ctx, g.inWorktree(wt, "diff-tree", "-r", "-z", "--name-only", "--no-renames",
		"--ignore-submodules=none",
		"--no-relative", "--end-of-options", a, b, "--"))
	return fields(out), err
}
