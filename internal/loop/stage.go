package loop

import (
	"context"
	"maps"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/lanes"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/urgency"
)

// foldedWorktree is the worktree, settled, with everything that the worker committed by itself since the attempt
// began taken back into the index: a task is one commit, and that is the harness's.
func (a *attempt) foldedWorktree(ctx context.Context) (gitx.Worktree, error) {
	wt, err := a.settledWorktree(ctx)
	if err != nil {
		return wt, err
	}
	if a.at.lane != "" {
		return wt, lanes.Fold(ctx, a.run.Handle, wt, a.base)
	}
	tip, ok, err := a.run.Git.BranchTip(ctx, wt.Common, wt.Branch)
	switch {
	case err != nil || tip == a.base:
		return wt, err
	case ok:
		err = a.run.CatchUp(ctx, wt, tip, a.base)
	default:
		// The worker renamed or deleted the branch; the commit is the attempt's base.
		err = a.emit(&record.LogRepaired{What: a.run.S.Branch() + " was gone", Done: "made again at " + a.base +
			", files kept"})
	}
	if err == nil {
		err = a.run.Git.Reset(ctx, wt, a.base, false)
	}
	return wt, err
}

// foldAtStop moves the worker's own commits back into the index at a stop within the attempt, unless the task's commit
// may exist already: commits after it are the user's.
func (a *attempt) foldAtStop(ctx context.Context) {
	if !a.accepted {
		_, _ = a.foldedWorktree(urgency.IgnoreFirstSignal(ctx))
	}
}

// stage stages everything to be judged and names the tree. Build products that were left out are named in the record
// once.
func (a *attempt) stage(ctx context.Context, wt gitx.Worktree) (tree string, leftOut []string, err error) {
	return a.stageWith(ctx, a.run.Git.Strict(), wt)
}

func (a *attempt) stageWith(ctx context.Context, git *gitx.Git, wt gitx.Worktree) (tree string, leftOut []string,
	err error) {
	tree, leftOut, err = git.WithMaxFileSize(a.run.o.MaxFile).StageAll(ctx, wt, a.base)
	if err != nil {
		return "", nil, err
	}
	var news []string
	for _, p := range leftOut {
		if !a.at.notified[p] {
			a.at.notified[p] = true
			news = append(news, p)
		}
	}
	if len(news) > 0 {
		err = a.emit(&record.BuildProducts{LeftOut: news, Reason: "build products that no .gitignore covers, " +
			"nested repositories, unreadable files, and large numbers of large files"})
	}
	return tree, leftOut, err
}

// unfitFiles says which of the files that are staged, or were left out, must not be committed, and why, by path.
func (a *attempt) unfitFiles(ctx context.Context, wt gitx.Worktree, files []gitx.FileChange, leftOut []string) (
	map[string]string, error,
) {
	found, err := checkFit(ctx, a.run.Git, wt, files, leftOut, a.run.o.MaxFile)
	if err != nil {
		return nil, err
	}
	more, err := unread(wt, files, a.run.o.AllowBinary, func(path, oid string) (bool, error) {
		was, err := a.run.seedTree(ctx)
		return was[path] == linkMode+" "+oid, err
	})
	maps.Copy(found, more)
	return found, err
}

// withoutUnfit returns a staged tree without files that must not be committed; these stay in the worktree.
func (a *attempt) withoutUnfit(ctx context.Context, wt gitx.Worktree, tree string) (string, error) {
	files, _, _, err := a.run.Git.Changes(ctx, a.run.Common, a.judged, tree, 0)
	if err != nil {
		return "", err
	}
	unfit, err := a.unfitFiles(ctx, wt, files, nil)
	if err != nil || len(unfit) == 0 {
		return tree, err
	}
	c := a.run.Git.InWorktree(wt, "--literal-pathspecs", "reset", "--quiet", a.judged, "--pathspec-from-file=-",
		"--pathspec-file-nul")
	for path := range unfit {
		c.Stdin = append(c.Stdin, path+"\x00"...)
	}
	if _, err := a.run.Git.Mutate(ctx, c); err != nil {
		return "", err
	}
	return a.run.Git.Mutate(ctx, a.run.Git.InWorktree(wt, "write-tree"))
}
