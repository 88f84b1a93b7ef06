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
	keep, err := g.IgnoredBefore(ctx, wt, sha)
	if err != nil {
		return err
	}
	return g.RewindTreeKeeping(ctx, wt, sha, keep)
}

// RewindTreeKeeping is RewindTree with what IgnoredBefore had found: for a
// rewind that may have been begun before, when the rules are gone already.
func (g *Git) RewindTreeKeeping(ctx context.Context, wt Worktree, sha string, keep []string) error {
	if err := g.HardReset(ctx, wt, sha); err != nil {
		return err
	}
	return g.clean(ctx, wt, keep)
}

// IgnoredBefore lists what is ignored now, directories as one, if going to sha
// changes the ignore rules, and nothing if it does not: the look at the rules
// is cheap, the list is a walk through the worktree.
func (g *Git) IgnoredBefore(ctx context.Context, wt Worktree, sha string) ([]string, error) {
	// One star and no magic is what git matches fastest; that it takes in x.gitignore
	// costs a list at worst. Threads to stat a handful of files are a loss.
	out, err := g.read(ctx, g.inWorktree(wt, "-c", "core.preloadIndex=false", "diff-index", "-z", "--name-only", "--no-ext-diff",
		sha, "--", "*.gitignore"))
	if err != nil || len(out) == 0 {
		return nil, err
	}
	out, err = g.read(ctx, g.inWorktree(wt, "ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory"))
	return fields(out), err
}

// clean runs `git clean -fd` on all but the paths in keep.
func (g *Git) clean(ctx context.Context, wt Worktree, keep []string) error {
	if err := g.prepare(ctx, wt); err != nil {
		return err
	}
	_, err := g.cleanOnce(ctx, wt, keep)
	if err == nil || ctx.Err() != nil {
		return err
	}
	// Only what was in the way is tried again: an untracked .gitignore may have
	// gone with the first pass, and over all a second would take what it covered.
	locked := makeRemovable(wt.Path)
	if len(locked) > 0 {
		_, err = g.cleanOnce(ctx, wt, keep, locked...)
	}
	return err
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

// makeRemovable gives the owner back the right to write to the directories at
// path and below, and returns the topmost of those that lacked it, relative to
// path. Caches of build tools (Go's modules) are read-only, and git removes
// nothing from them.
func makeRemovable(path string) []string {
	var changed []string
	_ = filepath.WalkDir(path, func(p string, d fs.DirEntry, _ error) error {
		if d == nil || !d.IsDir() {
			return nil
		}
		fi, err := d.Info()
		if err != nil || fi.Mode()&0o700 == 0o700 || os.Chmod(p, fi.Mode().Perm()|0o700) != nil {
			return nil
		}
		rel, err := filepath.Rel(path, p)
		if n := len(changed); err == nil && (n == 0 || !within(rel, changed[n-1])) {
			changed = append(changed, rel)
		}
		return nil
	})
	return changed
}

// within tells whether path is dir or lies below it.
func within(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}
