package loop

import (
	"context"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/project"
	"github.com/git-tilth/git-tilth/internal/text"
)

// maxIgnored is the largest number of ignored files in a list.
const maxIgnored = 20

// noteIgnored stores the worktree's ignored files before the worker begins.
func (a *attempt) noteIgnored(ctx context.Context, wt gitx.Worktree) (err error) {
	if !a.restored && !a.context.Partial {
		a.ignored, err = a.run.Untracked(ctx, wt, true)
	}
	return err
}

// madeIgnored returns the ignored files that the attempt created, each with the ignore rule. It leaves out build
// products, temporary files of tools, and files that setup also creates in the judged checkout.
func (a *attempt) madeIgnored(ctx context.Context, j *judged) ([]string, error) {
	if a.byPerson {
		return nil, nil
	}
	all, err := a.run.Untracked(ctx, j.wt, true)
	return a.ruled(ctx, j.wt, slices.DeleteFunc(all, func(p string) bool {
		_, absent := os.Lstat(filepath.Join(j.dir, filepath.FromSlash(p)))
		return absent == nil || slices.Contains(a.ignored, p) || project.IsForeign(path.Base(p)) ||
			project.IsLeftover(path.Base(p))
	}), err)
}

// ruled adds the ignore rule to each of some ignored paths.
func (a *attempt) ruled(ctx context.Context, wt gitx.Worktree, paths []string, err error) ([]string, error) {
	if err != nil || len(paths) == 0 {
		return nil, err
	}
	named := paths[:min(len(paths), maxIgnored)]
	c := a.run.Git.InWorktree(wt, "check-ignore", "--verbose", "-z", "--stdin")
	c.Stdin = []byte(strings.Join(named, "\x00"))
	said, err := a.run.Git.List(ctx, c)
	if err != nil && gitx.ExitCode(err) != 1 {
		return nil, err
	}
	rules := map[string]string{} // by path, from groups of file, line, pattern and path
	for f := range slices.Chunk(said, 4) {
		if len(f) == 4 {
			rules[f[3]] = " (" + f[0] + ":" + f[1] + ": " + f[2] + ")"
		}
	}
	lines := make([]string, 0, len(named)+1)
	for _, p := range named {
		if rules[p] != "" { // no rule: a directory above an ignored path
			lines = append(lines, p+rules[p])
		}
	}
	if n := len(paths) - len(named); n > 0 {
		lines = append(lines, "and "+text.Plural(n, "more"))
	}
	return lines, nil
}
