package gitx

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// ReadTree makes the index equal to tree. The files stay as they are, and what git remembers of unchanged ones is
// kept, so that the next staging does not read them all again.
func (g *Git) ReadTree(ctx context.Context, wt Worktree, tree string) error {
	return g.change(ctx, wt, "read-tree", "--reset", tree)
}

// ReadTreeIntoFiles makes the index and the tracked files equal to tree. HEAD stays where it is.
func (g *Git) ReadTreeIntoFiles(ctx context.Context, wt Worktree, tree string) error {
	return g.change(ctx, wt, "read-tree", "--reset", "-u", tree)
}

// SoftReset moves the worktree's branch to sha; index and files stay, conflicts of a merge in the index included.
func (g *Git) SoftReset(ctx context.Context, wt Worktree, sha string) error {
	err := g.change(ctx, wt, "reset", "--soft", "--quiet", sha)
	if err == nil {
		return nil
	}
	// git reset --soft takes conflicts in the index for a merge under way, even when nothing else of it is left, and
	// refuses.
	c := g.inWorktree(wt, "ls-files", "-z", "--unmerged")
	c.limit = 1
	if out, lerr := g.run(ctx, c); lerr != nil || len(out.stdout) == 0 {
		return err
	}
	return g.change(ctx, wt, "update-ref", "-m", "reset: moving to "+sha, "HEAD", sha)
}

// LeaveOut gives paths in the index back what base has of them, or takes them out of it, and names the tree that is left.
// The files stay as they are.
func (g *Git) LeaveOut(ctx context.Context, wt Worktree, base string, paths []string) (tree string, err error) {
	c := g.inWorktree(wt, "--literal-pathspecs", "reset", "--quiet", base, "--pathspec-from-file=-", "--pathspec-file-nul")
	c.stdin = []byte(strings.Join(paths, "\x00") + "\x00")
	if _, err := g.mutate(ctx, c); err != nil {
		return "", err
	}
	out, err := g.mutate(ctx, g.inWorktree(wt, "write-tree"))
	return strings.TrimSpace(string(out.stdout)), err
}

// HardReset moves the worktree's branch to sha and makes index and tracked files equal to it.
func (g *Git) HardReset(ctx context.Context, wt Worktree, sha string) error {
	return g.change(ctx, wt, "reset", "--hard", "--quiet", sha)
}

// change runs a command that writes in the worktree, after what would stop it was put out of the way.
func (g *Git) change(ctx context.Context, wt Worktree, args ...string) error {
	if err := g.prepare(ctx, wt); err != nil {
		return err
	}
	_, err := g.mutate(ctx, g.inWorktree(wt, args...))
	return err
}

// unfinished are the files by which git knows that a worktree is in the middle of a merge, a rebase or the like. With
// them, a soft reset is refused and a commit becomes a merge.
var unfinished = []string{
	"MERGE_HEAD", "MERGE_MODE", "MERGE_MSG", "MERGE_RR", "AUTO_MERGE", "SQUASH_MSG", "CHERRY_PICK_HEAD", "REVERT_HEAD",
	"REBASE_HEAD", "BISECT_LOG", "BISECT_START", "rebase-merge", "rebase-apply", "sequencer",
}

// Unfinished names what was left unfinished in a worktree: "merge", "rebase" and so on, "" for nothing.
func Unfinished(wt Worktree) string {
	for _, o := range []struct{ file, name string }{
		{"rebase-merge", "rebase"}, {"rebase-apply", "rebase"}, {"MERGE_HEAD", "merge"}, {"CHERRY_PICK_HEAD", "cherry-pick"},
		{"REVERT_HEAD", "revert"}, {"BISECT_LOG", "bisection"},
	} {
		if _, err := os.Lstat(filepath.Join(wt.AdminDir, o.file)); err == nil {
			return o.name
		}
	}
	return ""
}

// QuitOperations forgets a merge, rebase, cherry-pick or bisection that was left unfinished in the worktree, as `git
// merge --quit` and its like do: HEAD, index and files stay as they are. (`git rebase --quit` would put an autostash
// among the user's stashes.) Every operation that writes does so first.
func (g *Git) QuitOperations(ctx context.Context, wt Worktree) error {
	return g.prepare(ctx, wt)
}

// prepare makes a worktree ready to be written: lock files of killed processes go, and what was left unfinished is
// forgotten.
func (g *Git) prepare(ctx context.Context, wt Worktree) error {
	if err := g.clearWorktreeLocks(ctx, wt); err != nil {
		return err
	}
	if g.dry {
		return nil
	}
	if _, err := os.Lstat(filepath.Join(wt.Path, ".git")); err != nil {
		if err := somethingAt(wt.Path); err != nil {
			return err
		}
		return fmt.Errorf("%s: %w: it has no .git file any more", wt.Path, ErrUnregistered)
	}
	for _, name := range unfinished {
		if err := os.RemoveAll(filepath.Join(wt.AdminDir, name)); err != nil {
			return err
		}
	}
	return nil
}

// Clean removes untracked files and directories that the ignore rules do not cover, as `git clean -fd` does, and
// untracked repositories with them.
func (g *Git) Clean(ctx context.Context, wt Worktree) error {
	_, err := g.clean(ctx, wt, nil)
	return err
}

// RewindTree makes the worktree what it was at sha: a hard reset and a clean. What the ignore rules covered before the
// reset, which is keep, as IgnoredBefore found it, stays, and so does what they cover after it.
func (g *Git) RewindTree(ctx context.Context, wt Worktree, sha string, keep []string) error {
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

// hardReset is HardReset past what can be in its way: an index that cannot be read, and directories without the right
// to write, which it returns. A reset that stops half-way has moved neither HEAD nor index, so it can simply be done
// again.
func (g *Git) hardReset(ctx context.Context, wt Worktree, sha string) (opened []openedDir, err error) {
	if err = g.HardReset(ctx, wt, sha); err == nil || ctx.Err() != nil {
		return nil, err
	}
	rebuilt, merr := g.rebuildIndex(ctx, wt)
	if merr != nil {
		return nil, merr
	}
	if rebuilt {
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

// IgnoredBefore lists what is ignored now, directories as one, if going to sha changes the ignore rules, and nothing
// if it does not: the look at the rules is cheap, the list is a walk through the worktree.
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
	out, err := g.read(ctx, g.inWorktree(wt, "ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory"))
	return fields(out), err
}

// rulesChanged reports whether going to sha may change the ignore rules.
func (g *Git) rulesChanged(ctx context.Context, wt Worktree, sha string) (bool, error) {
	// One star and no magic is what git matches fastest; that it takes in x.gitignore costs a list at worst. Threads
	// to stat a handful of files are a loss.
	out, err := g.read(ctx, g.inWorktree(wt, "-c", "core.preloadIndex=false", "diff-index", "-z", "--name-only", "--no-ext-diff",
		sha, "--", "*.gitignore"))
	return len(out) > 0, err
}

// clean runs `git clean -fd` on all but the paths in keep, and returns the directories that it had to open for that.
func (g *Git) clean(ctx context.Context, wt Worktree, keep []string) ([]openedDir, error) {
	if err := g.prepare(ctx, wt); err != nil {
		return nil, err
	}
	_, err := g.cleanOnce(ctx, wt, keep)
	if err == nil || ctx.Err() != nil {
		return nil, err
	}
	// Only what was in the way is tried again: an untracked .gitignore may have gone with the first pass, and over
	// all a second would take what it covered.
	opened := makeRemovable(wt.Path)
	if len(opened) > 0 {
		_, err = g.cleanOnce(ctx, wt, keep, topmost(opened)...)
	}
	return opened, err
}

// maxKeepArgs is how many bytes of paths go on git's command line.
const maxKeepArgs = 64 << 10

// cleanOnce cleans the given paths, or the whole worktree. What to keep is named on the command line, where a rule
// outranks every .gitignore, or in a file if that gets too long.
func (g *Git) cleanOnce(ctx context.Context, wt Worktree, keep []string, only ...string) (output, error) {
	// With one -f git clean spares untracked repositories, mostly without a word. They are the run's, like every
	// other untracked file.
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

// openedDir is a directory to which its owner was given the right to write.
type openedDir struct {
	path string // relative to the worktree
	mode fs.FileMode
}

// makeRemovable gives the owner back the right to write to the directories at path and below, and returns those that
// lacked it, the upper before the lower. Caches of build tools (Go's modules) are read-only, and git removes nothing
// from them.
func makeRemovable(path string) []openedDir {
	var opened []openedDir
	_ = filepath.WalkDir(path, func(p string, d fs.DirEntry, _ error) error {
		if d == nil || !d.IsDir() {
			return nil
		}
		fi, err := d.Info()
		if err != nil || fi.Mode()&0o700 == 0o700 || os.Chmod(p, fi.Mode().Perm()|0o700) != nil {
			return nil
		}
		if rel, err := filepath.Rel(path, p); err == nil {
			opened = append(opened, openedDir{path: rel, mode: fi.Mode().Perm()})
		}
		return nil
	})
	return opened
}

// topmost leaves out the directories that lie in others of the list.
func topmost(opened []openedDir) []string {
	var paths []string
	for _, d := range opened {
		if n := len(paths); n == 0 || !within(d.path, paths[n-1]) {
			paths = append(paths, d.path)
		}
	}
	return paths
}

// within reports whether path is dir or lies below it.
func within(path, dir string) bool {
	return path == dir || dir == "." || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// closeAgain gives the directories that are still there after a rewind the mode that they are to have: one with
// tracked files is as git makes it, the top as AddWorktree does, any other, which was ignored, as it was. What cannot
// be set stays open.
func (g *Git) closeAgain(ctx context.Context, wt Worktree, opened []openedDir) {
	if len(opened) == 0 || g.dry {
		return
	}
	out, err := g.read(ctx, g.inWorktree(wt, "ls-files", "-z", "--full-name"))
	if err != nil {
		return
	}
	tracked := map[string]bool{".": true}
	for _, f := range fields(out) {
		for dir := filepath.Dir(f); !tracked[dir]; dir = filepath.Dir(dir) {
			tracked[dir] = true
		}
	}
	asMade := newDirMode(wt.AdminDir)
	for _, d := range opened {
		path, mode := filepath.Join(wt.Path, d.path), d.mode
		switch {
		case d.path == ".":
			mode = topMode
		case tracked[d.path]:
			mode = asMade
		}
		if fi, err := os.Lstat(path); err == nil && fi.IsDir() {
			_ = os.Chmod(path, mode)
		}
	}
}

// newDirMode returns the mode that a directory is made with here, by git too. Only making one says so: the umask can
// be read no other way than by setting it, for all of the process.
func newDirMode(in string) fs.FileMode {
	dir, mode := filepath.Join(in, "tilth-mode"), fs.FileMode(topMode)
	if os.Mkdir(dir, 0o777) == nil {
		if fi, err := os.Stat(dir); err == nil {
			mode = fi.Mode().Perm()
		}
		os.Remove(dir)
	}
	return mode
}
