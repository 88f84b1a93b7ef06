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

// maxIgnored is the maximum number of ignored files to name.
const maxIgnored = 20

// noteIgnored remembers the ignored files that the worktree has before the worker begins.
func (a *attempt) noteIgnored(ctx context.Context, wt gitx.Worktree) (err error) {
	if !a.restored && !a.context.Partial {
		a.ignored, err = a.run.Untracked(ctx, wt, true)
	}
	return err
}

// madeIgnored returns the files that the attempt made and that git ignores, each with the rule. Build products,
// leftovers of tools and files that the judged checkout has from the setup are not among them.
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

// ruled adds to each of some ignored paths the rule by which git ignores it.
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
		if rules[p] != "" { // else it is a directory above an ignored one
			lines = append(lines, p+rules[p])
		}
	}
	if n := len(paths) - len(named); n > 0 {
		lines = append(lines, "and "+text.Plural(n, "more"))
	}
	return lines, nil
}
