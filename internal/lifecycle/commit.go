package lifecycle

import (
	"context"
	"errors"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
)

// CommittingVar is the variable by which what a commit hook starts can tell that the commit is not the user's. Its
// value is the branch.
const CommittingVar = "TILTH_COMMITTING"

// HookRefusedError says that one of the repository's hooks refused a commit. Nothing was committed.
type HookRefusedError struct {
	Output string // what the hook printed, capped
}

func (e *HookRefusedError) Error() string {
	if said := text.FirstLines(e.Output, 3); said != "" {
		return "a commit hook refused: " + said
	}
	return "a commit hook refused without a word"
}

// RefusedBy is the validator_run by which a commit hook's refusal is on record.
func RefusedBy(output string) *record.ValidatorRun {
	return &record.ValidatorRun{Results: []record.ValidatorResult{{Name: record.CommitHook, Output: &output}}}
}

// ErrTreeChanged says that a commit hook made another tree than the one that was judged. Nothing was committed; the
// index holds what the hook made.
var ErrTreeChanged = errors.New("a commit hook changed the tree")

// ErrBranchMoved says that somebody has committed on the branch since the tree was judged. Nothing was committed.
var ErrBranchMoved = errors.New("the branch has moved")

// CommitTask commits exactly the judged tree, which the index holds, after the repo's hooks had a look. The summary
// becomes public with the branch, so secrets are taken out of it as they are on the record. A signal ends git and the
// hooks, which may take minutes; the next resume finds the commit made, or makes it of the accepted tree.
//
// whole calls the tree changed as well where a commit hook changed files without staging them, as formatters do: what
// it made of the task belongs to the task, and is judged with it. A process that dies before that leaves the changes to
// the next task, as git does.
func (h *Handle) CommitTask(live context.Context, wt gitx.Worktree, t session.Task, v *record.EvaluatorVerdict,
	whole bool) (sha string, err error) {
	ctx := ignoreFirstSignal(live)
	mark, err := h.mark()
	if err != nil {
		return "", err
	}
	summary, person := h.Redact.String(v.Summary), v.By == record.ByPerson
	if !person {
		summary = inertBody(summary)
	}
	msg := taskMessage(h.S.ID, t.ID, subjectOf(h.CommitSubject, t), summary, mark, person)
	committing := CommittingVar + "=" + wt.Branch
	seen, err := h.Git.BeforeCommit(live, wt, msg, committing)
	switch {
	case live.Err() == nil && gitx.ExitCode(err) > 0:
		return "", &HookRefusedError{seen.Said}
	case err != nil:
		return "", err
	case live.Err() != nil:
		return "", live.Err()
	}
	if hooked := seen.Tree != ""; hooked {
		tree := seen.Tree
		if whole && tree == v.Tree {
			if tree, _, err = h.Git.StageAll(ctx, wt, v.Base); err != nil {
				return "", err
			}
		}
		if tree != v.Tree {
			return "", ErrTreeChanged
		}
		if msg, err = h.asJudged(ctx, t, seen.Message, mark, v.By == record.ByPerson); err != nil {
			return "", err
		}
	}
	tip, _, err := h.Git.BranchTip(ctx, wt.Common, wt.Branch)
	if err != nil {
		return "", err
	}
	if tip != v.Base && HasLane(h.S, t.ID) { // nothing of its worker's is there
		return "", ErrBranchMoved
	}
	sha, err = h.Git.CommitTree(ctx, wt, gitx.TreeCommit{
		Tree: v.Tree, Parent: v.Base, Over: tip, Message: msg, Reflog: "tilth: " + t.ID, Sign: h.Sign,
	})
	if err != nil || h.Git.IsDryRun() {
		return "", err
	}
	h.Git.AfterCommit(live, wt, committing)
	return sha, nil
}

// asJudged is the message that hooks left of a task's commit, with the trailers that it is known by, if one took them
// away. Until it is made the task is known as the accepted tree.
func (h *Handle) asJudged(ctx context.Context, t session.Task, msg, mark string, person bool) (string, error) {
	c, err := h.Git.ReadMessage(ctx, msg)
	if err != nil {
		return "", err
	}
	who := author{sessionID: h.S.ID, tasks: map[string]string{t.ID: t.Status}}
	task, ok := who.done(c)
	if ok && task == t.ID && trailer(trailerRecord, one(c.Trailers[trailerRecord])) == mark {
		return msg, nil
	}
	return taskMessage(h.S.ID, t.ID, c.Subject, c.Body, mark, person), nil
}
