package gitx

import (
	"cmp"
	"context"
	"os"
	"strings"
)

// Clean removes untracked files and directories that the ignore rules do not
// cover, as `git clean -fd` does, and untracked repositories with them.
func (g *Git) Clean(ctx context.Context, wt Worktree) error {
	_, err := g.clean(ctx, wt, nil)
	return err
}

// RewindTree makes the worktree what it was at sha: a hard reset and a clean.
// What the ignore rules covered before the reset stays, also where the reset
// takes the rule away, and so does what they cover after it.
func (g *Git) RewindTree(ctx context.Context, wt Worktree, sha string) error {
	keep, err := g.IgnoredBefore(ctx, wt, sha)
	if err != nil {
		return err
	}
	return g.RewindTreeKeeping(ctx, wt, sha, keep)
}

// RewindTreeKeeping is RewindTree with what IgnoredBefore had found: for a
// rewind that may have been begun before, when the rules are gone already.
func (g *Git) RewindTreeKeeping(ctx context.Context, wt Worktree, sha string, keep []string) error {
	opened, err := g.hardReset(ctx, wt, sha)
	if err != nil {
		return err
	}
	more, err := g.clean(ctx, wt, keep)
	if err != nil {
		return err
	}
	g.closeAgain(ctx, wt, append(opened, more...))
	if fi, err := os.Lstat(wt.Path); err == nil && fi.Mode()&0o700 != 0o700 && !g.dry {
		_ = os.Chmod(wt.Path, topMode) // closed by the run, though nothing was in the way
	}
	return nil
}

// hardReset is HardReset past what can be in its way: an index that cannot be
// read, and directories without the right to write, which it returns. A reset
// that stops half-way has moved neither HEAD nor index, so it can simply be done
// again.
func (g *Git) hardReset(ctx context.Context, wt Worktree, sha string) (opened []openedDir, err error) {
	if err = g.HardReset(ctx, wt, sha); err == nil || ctx.Err() != nil {
		return nil, err
	}
	mended, merr := g.mendIndex(ctx, wt)
	if merr != nil {
		return nil, merr
	}
	if mended {
		err = g.HardReset(ctx, wt, sha)
	}
	if err == nil || ctx.Err() != nil {
		return nil, err
	}
	if opened = makeRemovable(wt.Path); len(opened) > 0 {
		err = g.HardReset(ctx, wt, sha)
	}
	return opened, err
}

// IgnoredBefore lists what is ignored now, directories as one, if going to sha
// changes the ignore rules, and nothing if it does not: the look at the rules
// is cheap, the list is a walk through the worktree.
func (g *Git) IgnoredBefore(ctx context.Context, wt Worktree, sha string) ([]string, error) {
	changed, err := g.rulesChanged(ctx, wt, sha)
	if err != nil && ctx.Err() == nil {
		if mended, merr := g.mendIndex(ctx, wt); merr != nil || !mended {
			return nil, cmp.Or(merr, err)
		}
		changed, err = g.rulesChanged(ctx, wt, sha)
	}
	if err != nil || !changed {
		return nil, err
	}
	out, err := g.read(ctx, g.inWorktree(wt, "ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory"))
	return fields(out), err
}

// rulesChanged tells whether going to sha may change the ignore rules.
func (g *Git) rulesChanged(ctx context.Context, wt Worktree, sha string) (bool, error) {
	// One star and no magic is what git matches fastest; that it takes in x.gitignore
	// costs a list at worst. Threads to stat a handful of files are a loss.
	out, err := g.read(ctx, g.inWorktree(wt, "-c", "core.preloadIndex=false", "diff-index", "-z", "--name-only", "--no-ext-diff",
		sha, "--", "*.gitignore"))
	return len(out) > 0, err
}

// clean runs `git clean -fd` on all but the paths in keep, and returns the
// directories that it had to open for that.
func (g *Git) clean(ctx context.Context, wt Worktree, keep []string) ([]openedDir, error) {
	if err := g.prepare(ctx, wt); err != nil {
		return nil, err
	}
	_, err := g.cleanOnce(ctx, wt, keep)
	if err == nil || ctx.Err() != nil {
		return nil, err
	}
	// Only what was in the way is tried again: an untracked .gitignore may have
	// gone with the first pass, and over all a second would take what it covered.
	opened := makeRemovable(wt.Path)
	if len(opened) > 0 {
		_, err = g.cleanOnce(ctx, wt, keep, topmost(opened)...)
	}
	return opened, err
}

// maxKeepArgs is how many bytes of paths go on git's command line.
const maxKeepArgs = 64 << 10

// cleanOnce cleans the given paths, or the whole worktree. What to keep is named
// on the command line, where a rule outranks every .gitignore, or in a file if
// that gets too long.
func (g *Git) cleanOnce(ctx context.Context, wt Worktree, keep []string, only ...string) (output, error) {
	// With one -f git clean spares untracked repositories, mostly without a word.
	// They are the run's, like every other untracked file.
	c := g.inWorktree(wt, "clean", "-fd", "--force", "--quiet")
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
	if len(only) > 0 {
		c.args = append(c.args, "--")
		for _, p := range only {
			c.args = append(c.args, ":(literal)"+p)
		}
	}
	return g.mutate(ctx, c)
}
