package gitx

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/text"
)

// Hooks returns the directory of the repository's hooks, with the files that they may run, if it is in the worktree;
// else "". has reports whether one of some hooks exists. It starts no process if the settings are known.
func (g *Git) Hooks(ctx context.Context, wt Worktree) (inTree string, has func(names ...string) bool, err error) {
	dir, err := g.HookFile(ctx, wt, "")
	if err != nil {
		return "", nil, err
	}
	rel, err := filepath.Rel(wt.Path, dir)
	if err == nil && filepath.IsLocal(rel) && rel != "." {
		inTree = path.Dir(filepath.ToSlash(rel))
		if inTree == "." {
			inTree = filepath.ToSlash(rel)
		}
	}
	return inTree, func(names ...string) bool {
		return slices.ContainsFunc(names, func(name string) bool {
			fi, err := os.Stat(filepath.Join(dir, name))
			return err == nil && fi.Mode().IsRegular() && fi.Mode()&0o111 != 0
		})
	}, nil
}

// HookFile returns the path of a hook of the repository.
func (g *Git) HookFile(ctx context.Context, wt Worktree, name string) (string, error) {
	s, err := g.settingsOf(ctx, wt)
	if err != nil {
		return "", err
	}
	return filepath.Join(s.hooks(wt), name), nil
}

// hooks returns the hooks directory of a worktree. If the directory is tracked in the checkout, it is the worktree's
// own. Otherwise, as with husky, it is the one in the main checkout, and a worker's files do not become hooks.
func (s *settings) hooks(wt Worktree) string {
	top, ok := strings.CutSuffix(wt.Common, "/.git")
	users := filepath.Join(top, s.hooksRel)
	if s.hooksRel != "" && ok && !absent(users) {
		index, err := readFile(filepath.Join(wt.Common, "index"))
		inside := path.Clean(filepath.ToSlash(s.hooksRel)) + "/"
		if err == nil && !bytes.Contains(index, []byte(inside)) {
			return users
		}
	}
	return cmp.Or(s.hooksPath, filepath.Join(wt.Common, "hooks"))
}

// RunHook runs a hook, if the repository has it, in quarantine, with all refs and a copy of the worktree's index.
// TILTH_HOOK_INPUT names a file with input, which is also on standard input if git can pass it on (2.40). It returns
// the hook's output on both streams.
func (g *Git) RunHook(ctx context.Context, wt Worktree, name string, input []byte, vars []string,
	args ...string) (said string, err error) {
	_, has, err := g.Hooks(ctx, wt)
	if err != nil || g.dry || !has(name) {
		return "", err
	}
	err = g.quarantined(ctx, wt, false, func(in *Git) (err error) {
		err = errors.Join(g.refs(ctx, in.in), writeIn(in.in.dir, hookInput, string(input)))
		if err == nil {
			said, err = in.hook(ctx, wt, name, len(input) > 0, vars, args...)
		}
		return err
	})
	return said, err
}

// hookInput is the name of a quarantine's file with a hook's input.
const hookInput = "hook-input"

// hook runs a hook in a quarantine.
func (g *Git) hook(ctx context.Context, wt Worktree, name string, input bool, vars []string,
	args ...string) (said string, err error) {
	c := g.InWorktree(wt, "hook", "run", "--ignore-missing")
	c.Hooks = true
	c.Vars = slices.Concat(c.Vars, []string{"GIT_INDEX_FILE=" + g.in.file("index")}, vars)
	if input {
		c.Vars = append(c.Vars, "TILTH_HOOK_INPUT="+g.in.file(hookInput))
		if _, can := g.Version(ctx, 2, 40); can {
			c.Args = append(c.Args, "--to-stdin="+g.in.file(hookInput))
		}
	}
	c.Args = append(append(c.Args, name, "--"), args...)
	return g.Mutate(ctx, c)
}

// beforeCommit are the hooks that run before a commit, in git's order.
var beforeCommit = []string{"pre-commit", "prepare-commit-msg", "commit-msg"}

// HookRefusedError means that one of the repository's hooks refused a commit. Nothing was committed.
type HookRefusedError struct {
	Output string // output of the hook, limited
}

func (e *HookRefusedError) Error() string {
	if said := text.FirstLines(e.Output, 3); said != "" {
		return "a commit hook refused: " + said
	}
	return "a commit hook refused without output"
}

// BeforeCommit runs the hooks that git commit runs before a commit, on private copies of index, refs and message. It
// keeps their changes to the index, and returns their message and tree, "" if no hook ran. The error is a
// *HookRefusedError if a hook refused.
func (g *Git) BeforeCommit(ctx context.Context, wt Worktree, message string, vars ...string) (TreeCommit, error) {
	c := TreeCommit{Message: message}
	_, has, err := g.Hooks(ctx, wt)
	if err != nil || g.dry || !has(beforeCommit...) {
		return c, err
	}
	if err := g.ClearInProgress(ctx, wt); err != nil {
		return c, err
	}
	names := slices.DeleteFunc(slices.Clone(beforeCommit), func(name string) bool { return !has(name) })
	err = g.quarantined(ctx, wt, true, func(in *Git) error { return in.propose(ctx, &c, names, vars) })
	return c, err
}

// TryHooks runs hooks as BeforeCommit does, but makes no commit. It runs them in a worktree, or in the user's
// checkout, which they may not change. The index has the commit's tree, else a sample file on the tree of its parent.
// If the commit has neither, the index stays the same.
func (g *Git) TryHooks(ctx context.Context, wt Worktree, c TreeCommit, names []string, vars ...string) (
	TreeCommit, error,
) {
	if g.dry {
		return c, nil
	}
	q := quarantine{wt: wt, shut: wt.Branch == "", tip: c.Parent}
	err := g.quarantinedIn(ctx, &q, func(in *Git) (err error) {
		switch {
		case c.Tree != "":
			_, err = in.Mutate(ctx, in.InWorktree(wt, "read-tree", c.Tree))
		case c.Parent != "":
			err = in.stageSample(ctx, c.Parent)
		}
		if err == nil {
			err = in.propose(ctx, &c, names, vars)
		}
		return err
	})
	return c, err
}

// stageSample stages a sample file on the tree of a commit, in a quarantine.
func (g *Git) stageSample(ctx context.Context, commit string) error {
	if _, err := g.Mutate(ctx, g.InWorktree(g.in.wt, "read-tree", commit)); err != nil {
		return err
	}
	c := g.InWorktree(g.in.wt, "hash-object", "-w", "--stdin")
	c.Stdin = []byte("A sample of a change.\n")
	blob, err := g.Mutate(ctx, c)
	if err != nil {
		return err
	}
	_, err = g.Mutate(ctx, g.InWorktree(g.in.wt, "update-index", "--add", "--cacheinfo",
		"100644,"+blob+",tilth-sample.txt"))
	return err
}

// CheckoutAt returns the user's checkout or repository at dir, which must not be changed.
func (g *Git) CheckoutAt(common, dir string) (Worktree, error) {
	gitDir, named := g.known.separate.get(dir)
	if !named {
		var err error
		if gitDir, err = gitDirAt(dir); err != nil {
			return Worktree{}, err
		}
	}
	return Worktree{Path: dir, Common: common, AdminDir: gitDir}, nil
}

// propose runs the hooks of a future commit in a quarantine. A hook that was killed counts as a refusal.
func (g *Git) propose(ctx context.Context, c *TreeCommit, names, vars []string) error {
	file := g.in.file("COMMIT_EDITMSG")
	if err := errors.Join(g.refs(ctx, g.in), replaceFile(file, c.Message)); err != nil {
		return err
	}
	vars = append(slices.Clone(vars), "GIT_EDITOR=:") // as git sets it without an editor
	for _, name := range names {
		args := map[string][]string{"prepare-commit-msg": {file, "message"}, "commit-msg": {file}}[name]
		said, err := g.hook(ctx, g.in.wt, name, false, vars, args...)
		switch {
		case errors.Is(err, errHookTime):
			said += "\nThe hooks took longer than " + g.inTree.String() + " and were ended."
			return &HookRefusedError{strings.TrimSpace(said)}
		case ExitCode(err) > 0:
			return &HookRefusedError{said}
		case err != nil:
			return err
		}
	}
	var err error
	if c.Message, err = g.message(ctx, filepath.Base(file)); err == nil {
		c.Tree, err = g.Mutate(ctx, g.InWorktree(g.in.wt, "write-tree"))
	}
	return err
}

// message cleans a commit's message like --cleanup=whitespace.
func (g *Git) message(ctx context.Context, name string) (string, error) {
	dir, err := os.OpenRoot(g.in.dir)
	if err != nil {
		return "", err
	}
	defer dir.Close()
	if fi, err := dir.Lstat(name); err != nil || !sole(fi) || fi.Size() > maxGitsFile {
		return "", &HookRefusedError{"the hooks left no message"}
	}
	b, err := dir.ReadFile(name)
	if err != nil {
		return "", err
	}
	out, err := g.Read(ctx, Command{Dir: "/", Args: []string{"stripspace"}, Stdin: b})
	if err == nil && len(out) == 0 {
		err = &HookRefusedError{"Aborting commit due to empty commit message."}
	}
	return string(out), err
}
