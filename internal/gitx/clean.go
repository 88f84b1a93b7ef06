package gitx

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Clean removes untracked files and directories that the ignore rules do not
// cover, as `git clean -fd` does, and untracked repositories with them.
func (g *Git) Clean(ctx context.Context, wt Worktree) error {
	return g.clean(ctx, wt, nil)
}

// RewindTree makes the worktree what it was at sha: a hard reset and a clean.
// What the ignore rules covered before the reset stays, also where the reset
// takes the rule away, and so does what they cover after it.
func (g *Git) RewindTree(ctx context.Context, wt Worktree, sha string) error {
	keep, err := g.ignoredBefore(ctx, wt, sha)
	if err != nil {
		return err
	}
	if err := g.HardReset(ctx, wt, sha); err != nil {
		return err
	}
	return g.clean(ctx, wt, keep)
}

// ignoredBefore lists what is ignored now, directories as one, if going to sha
// changes the ignore rules, and nothing if it does not: the look at the rules
// is cheap, the list is a walk through the worktree.
func (g *Git) ignoredBefore(ctx context.Context, wt Worktree, sha string) ([]string, error) {
	out, err := g.read(ctx, g.inWorktree(wt, "diff-index", "-z", "--name-only", "--no-ext-diff", sha, "--", ":(glob)**/.gitignore"))
	if err != nil || len(out) == 0 {
		return nil, err
	}
	out, err = g.read(ctx, g.inWorktree(wt, "ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory"))
	return fields(out), err
}

// maxKeepArgs is how many bytes of paths go on git's command line.
const maxKeepArgs = 64 << 10

// clean runs `git clean -fd` on all but the paths in keep.
func (g *Git) clean(ctx context.Context, wt Worktree, keep []string) error {
	if err := g.prepare(ctx, wt); err != nil {
		return err
	}
	out, err := g.cleanOnce(ctx, wt, "-fd", keep)
	if err != nil && ctx.Err() == nil && makeRemovable(wt.Path) {
		out, err = g.cleanOnce(ctx, wt, "-fd", keep)
	}
	// A single -f spares untracked repositories and says so. They are the
	// run's, like every other untracked file.
	if err == nil && strings.Contains("\n"+string(out.stdout), "\nSkipping repository ") {
		_, err = g.cleanOnce(ctx, wt, "-ffd", keep)
	}
	return err
}

// cleanOnce names what to keep on the command line, where a rule outranks every
// .gitignore, or in a file if that gets too long.
func (g *Git) cleanOnce(ctx context.Context, wt Worktree, flags string, keep []string) (output, error) {
	c := g.inWorktree(wt, "clean", flags)
	var rules strings.Builder
	var args []string
	for _, p := range keep {
		rule := exactRule(p)
		rules.WriteString(rule + "\n")
		args = append(args, "-e", rule)
	}
	if rules.Len() <= maxKeepArgs {
		c.args = append(c.args, args...)
	} else if err := g.addRules(ctx, wt, &c, "tilth-keep", rules.String()); err != nil {
		return output{}, err
	}
	return g.mutate(ctx, c)
}

// makeRemovable gives the owner back the right to write to the directories at
// path and below, and tells whether there was one that lacked it. Caches of
// build tools (Go's modules) are read-only, and git does not remove from them.
func makeRemovable(path string) bool {
	changed := false
	_ = filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		if d == nil || !d.IsDir() {
			return nil
		}
		if fi, statErr := d.Info(); statErr == nil && fi.Mode()&0o700 != 0o700 {
			if os.Chmod(p, fi.Mode().Perm()|0o700) == nil {
				changed = true
			}
		}
		return nil
	})
	return changed
}
