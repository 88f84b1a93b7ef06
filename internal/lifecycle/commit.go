package lifecycle

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"

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

// figures are words of a hook that differ each time: times, counts, ids, names of temporary files.
var figures = regexp.MustCompile(`\S*[0-9]\S*|/tmp/\S+`)

// SameRefusal reports whether two texts of a commit hook say the same, but for figures, and as far as both were kept.
func SameRefusal(a, b string) bool {
	words := func(s string) string {
		s, _, _ = strings.Cut(s, "\n[... ")
		return strings.TrimSpace(figures.ReplaceAllString(s, "0"))
	}
	a, b = words(a), words(b)
	short := min(len(a), len(b))
	return a == b || short > 1000 && a[:short] == b[:short]
}

// ErrTreeChanged says that a commit hook made another tree than the one that was judged. The commit was taken back; the
// index holds what the hook made.
var ErrTreeChanged = errors.New("a commit hook changed the tree")

// CommitTask commits exactly the judged tree, which the index holds, with the repo's hooks. The summary becomes
// public with the branch, so secrets are taken out of it as they are on the record. A signal ends git and the hooks,
// which may take minutes; the next resume finds the commit made, or makes it of the accepted tree. What follows a
// commit that was made is not cut short.
//
// whole takes the commit back as well where a commit hook changed files without staging them, as formatters do: what
// it made of the task belongs to the task, and is judged with it. A process that dies before that leaves the changes to
// the next task, as git does.
func (h *Handle) CommitTask(live context.Context, wt gitx.Worktree, t session.Task, v *record.EvaluatorVerdict,
	whole bool) (sha string, err error) {
	ctx := quiet(live)
	mark, err := h.mark()
	if err != nil {
		return "", err
	}
	person, base := v.By == record.ByPerson, v.Base
	msg := taskMessage(h.S.ID, t.ID, subjectOf(h.CommitSubject, t), h.Redact.String(v.Summary), mark, person)
	sha, said, err := h.Git.Commit(live, wt, msg, h.Sign, CommittingVar+"="+wt.Branch)
	if live.Err() == nil && gitx.ExitCode(err) == 1 {
		err = &HookRefusedError{said}
	}
	if err != nil || h.Git.IsDryRun() {
		return "", err
	}
	made, err := h.Git.Log(ctx, h.Common, sha, "", 1)
	if err != nil {
		return "", err
	}
	if len(made) == 0 {
		return "", errors.New("the commit of " + t.ID + " cannot be read back")
	}
	tree := made[0].Tree
	if whole && tree == v.Tree {
		if _, has, err := h.Git.Hooks(ctx, wt); err != nil {
			return "", err
		} else if has("pre-commit", "prepare-commit-msg", "commit-msg") {
			if tree, _, err = h.Git.StageAll(ctx, wt, base); err != nil {
				return "", err
			}
		}
	}
	if tree != v.Tree {
		if err := h.Git.Reset(ctx, wt, base, false); err != nil {
			return "", err // the commit stands, so that this is not ErrTreeChanged
		}
		return "", ErrTreeChanged
	}
	return h.asJudged(ctx, wt, t, made[0], base, mark, person)
}

// asJudged gives the commit of a task back what it is known by: the trailers, if a commit-msg hook took them away, and
// base as its one parent, if what ran while it was judged committed something beneath it that nobody judged. Until then
// it is known as the accepted tree.
func (h *Handle) asJudged(ctx context.Context, wt gitx.Worktree, t session.Task, c gitx.Commit,
	base, mark string, person bool) (sha string, err error) {
	who := author{sessionID: h.S.ID, tasks: map[string]string{t.ID: t.Status}}
	task, ok := who.done(c)
	ok = ok && trailer(trailerRecord, one(c.Trailers[trailerRecord])) == mark
	if ok && task == t.ID && slices.Equal(c.Parents, []string{base}) {
		return c.SHA, nil
	}
	msg := c.Subject + "\n\n" + c.Body + "\n"
	if !ok || task != t.ID {
		msg = taskMessage(h.S.ID, t.ID, c.Subject, c.Body, mark, person)
	}
	return h.Git.CommitTree(ctx, wt, gitx.TreeCommit{
		Tree: c.Tree, Parent: base, Over: c.SHA, Message: msg, Reflog: "tilth: as judged", Sign: h.Sign,
	})
}
