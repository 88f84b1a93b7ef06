package gitx

import (
	"context"
	"strings"
)

// IsDirty tells whether the work tree at dir has changes to tracked files, in
// the index or out of it, or untracked files that are not ignored. It takes no
// lock and leaves the index as it is, byte for byte.
func (g *Git) IsDirty(ctx context.Context, dir string) (bool, error) {
	c := g.inUserDir(dir, "status", "--porcelain=v1", "-z", "--untracked-files=normal", "--ignore-submodules=dirty", "--no-renames")
	c.limit = 1
	out, err := g.run(ctx, c)
	return len(out.stdout) > 0, err
}

// HasWork is IsDirty for a session's worktree: build products, which stay
// untracked from one task to the next, are no one's work.
func (g *Git) HasWork(ctx context.Context, dir string) (bool, error) {
	out, err := g.read(ctx, g.inUserDir(dir, "status", "--porcelain=v1", "-z", "--untracked-files=normal", "--ignore-submodules=dirty", "--no-renames"))
	if err != nil {
		return false, err
	}
	var s survey
	for _, f := range fields(out) {
		path, untracked := strings.CutPrefix(f, "?? ")
		if !untracked {
			return true, nil
		}
		s.sortUntracked(dir, path)
		if len(s.refused)+len(s.heldBack) > 0 {
			return true, nil
		}
	}
	return false, nil
}

// TrackedFiles lists the files of the index at dir and below that match any of
// the pathspecs (all if there are none), relative to dir.
func (g *Git) TrackedFiles(ctx context.Context, dir string, pathspecs ...string) ([]string, error) {
	args := append([]string{"ls-files", "-z", "--cached", "--deduplicate", "--"}, pathspecs...)
	out, err := g.read(ctx, g.inUserDir(dir, args...))
	return fields(out), err
}

// IgnoredFiles lists the untracked files at dir and below that the ignore rules
// cover and that match any of the patterns, relative to dir. In a pattern, *
// stays within a path segment and ** does not; a directory stands for what is
// in it.
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
