package loop

import (
	"context"
	"maps"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/record"
)

// foldedWorktree returns the attempt's worktree. It first undoes the worker's own commits and keeps their changes,
// because git-tilth makes one commit per task.
func (a *attempt) foldedWorktree(ctx context.Context) (gitx.Worktree, error) {
	wt, err := a.settledWorktree(ctx)
	if err != nil {
		return wt, err
	}
	return wt, a.run.Fold(ctx, wt, a.base)
}

// foldAtStop moves the worker's own commits back into the index when the attempt stops. It does nothing if the task's
// commit may exist already, because later commits are the user's.
func (a *attempt) foldAtStop(ctx context.Context) {
	if !a.accepted {
		_, _ = a.foldedWorktree(proc.IgnoreFirstSignal(ctx))
	}
}

// stage stages all files and writes the tree. The record names skipped build products once. A judged change is staged
// with a strict git.
func (a *attempt) stage(ctx context.Context, git *gitx.Git, wt gitx.Worktree) (tree string, leftOut []string,
	err error) {
	for {
		tree, leftOut, err = git.StageAll(ctx, wt, a.base)
		if err != nil {
			return "", nil, err
		}
		nested := gitx.Repositories(wt, leftOut)
		if len(nested) == 0 {
			break
		}
		if err := a.run.PutAwayNested(wt.Path, nested); err != nil {
			return "", nil, err
		}
		a.at.nested = append(a.at.nested, nested...)
	}
	var news []string
	for _, p := range leftOut {
		if !a.at.notified[p] {
			a.at.notified[p] = true
			news = append(news, p)
		}
	}
	if len(news) > 0 {
		err = a.emit(&record.BuildProducts{LeftOut: news, Reason: "build products and leftovers of tools that no " +
			".gitignore covers, nested repositories, unreadable files, and large numbers of large files"})
	}
	return tree, leftOut, err
}

// contents returns facts about a change to tree, including all files that cannot be committed.
func (a *attempt) contents(ctx context.Context, wt gitx.Worktree, tree string, files []gitx.FileChange,
	leftOut []string) (staged, error) {
	found, err := checkFit(ctx, a.run.Git, wt, a.run.seed.commit, files, leftOut, a.run.o.MaxFile)
	if err != nil {
		return staged{}, err
	}
	of, err := contents(ctx, a.run.Git, a.run.Common, tree, files, a.run.o.MaxFile, a.run.o.AllowBinary,
		func(path, oid string) bool { return a.run.seed.tree[path] == linkMode+" "+oid })
	maps.Copy(of.unfit, found)
	return of, err
}

// withoutUnfit returns a staged tree without files that cannot be committed. These files stay in the worktree.
func (a *attempt) withoutUnfit(ctx context.Context, wt gitx.Worktree, tree string) (string, error) {
	files, _, _, err := a.run.Git.Changes(ctx, a.run.Common, a.judged, tree, 0)
	if err != nil {
		return "", err
	}
	of, err := a.contents(ctx, wt, tree, files, nil)
	if err != nil || len(of.unfit) == 0 {
		return tree, err
	}
	c := a.run.Git.InWorktree(wt, "--literal-pathspecs", "reset", "--quiet", a.judged, "--pathspec-from-file=-",
		"--pathspec-file-nul")
	for path := range of.unfit {
		c.Stdin = append(c.Stdin, path+"\x00"...)
	}
	if _, err := a.run.Git.Mutate(ctx, c); err != nil {
		return "", err
	}
	return a.run.Git.Mutate(ctx, a.run.Git.InWorktree(wt, "write-tree"))
}
