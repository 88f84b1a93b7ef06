package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/pattern"
	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
)

// CommittingVar is set in commit hooks, so that they can tell that the commit is not the user's. Its value is the
// branch.
const CommittingVar = "TILTH_COMMITTING"

// RefusedBy returns the validator_run that records a commit hook's refusal.
func RefusedBy(output string) *record.ValidatorRun {
	return &record.ValidatorRun{Results: []record.ValidatorResult{{Name: record.CommitHook, Output: &output}}}
}

// ErrTreeChanged means that a commit hook changed the judged tree. Nothing was committed; the index has the hook's
// tree.
var ErrTreeChanged = errors.New("a commit hook changed the tree")

// ErrBranchMoved means that the branch has new commits since the tree was judged. Nothing was committed.
var ErrBranchMoved = errors.New("the branch has moved")

// CommitTask commits exactly the judged tree, which is in the index, after running the repository's hooks. The summary
// becomes public with the branch, so secrets in it are redacted as in the record. A signal ends git and the hooks,
// which may take minutes; the next resume finds the commit, or makes it from the accepted tree.
//
// With whole, changes that a commit hook leaves unstaged (a formatter does this) count as a changed tree as well: they
// belong to the task and are judged with it. If the process dies before that, they go into the next task, as in git.
//
// note writes task_done. It is called after the hooks accepted the tree, so that each commit has one.
func CommitTask(live context.Context, h *held.Handle, wt gitx.Worktree, t session.Task, v *record.EvaluatorVerdict,
	whole bool, note func() error) (sha string, err error) {
	ctx := proc.IgnoreFirstSignal(live)
	mark, err := h.RecordMark()
	if err != nil {
		return "", err
	}
	body, person := held.Quoted, v.By == record.ByPerson
	if person {
		body = held.Wrapped
	}
	msg := held.TaskMessage(h.S.ID, t.ID, held.SubjectOf(h.CommitSubject, t), body(h.Redact.String(v.Summary)), mark,
		person, h.SignedOff(ctx, h.Common))
	committing := CommittingVar + "=" + wt.Branch
	seen, err := h.Git.BeforeCommit(live, wt, msg, committing)
	if err = cmp.Or(live.Err(), err); err != nil {
		return "", err
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
		if hooksOfSeed(ctx, h, wt, v.Tree) {
			if msg, err = asJudged(ctx, h, t, seen.Message, mark, v.By == record.ByPerson); err != nil {
				return "", err
			}
		}
	}
	tip, _, err := h.Git.BranchTip(ctx, wt.Common, wt.Branch)
	if err != nil {
		return "", err
	}
	if tip != v.Base && held.HasLane(h.S, t.ID) { // the session's worktree has none of its work
		return "", ErrBranchMoved
	}
	if err := h.Change(note); err != nil {
		return "", err
	}
	sha, err = h.Git.CommitTree(ctx, wt, gitx.TreeCommit{
		Tree: v.Tree, Parent: v.Base, Over: tip, Message: msg, Reflog: "tilth: " + t.ID, Sign: h.Sign,
	})
	if err != nil {
		return "", err
	}
	_, _ = h.Git.RunHook(live, wt, "post-commit", nil, []string{committing}) // post-commit cannot refuse
	return sha, nil
}

// hooksOfSeed reports whether hooks in the tree are the seed's. Other hooks are a worker's and could close issues or
// sign off by their message.
func hooksOfSeed(ctx context.Context, h *held.Handle, wt gitx.Worktree, tree string) bool {
	dir, _, err := h.Git.Hooks(ctx, wt)
	if err != nil || dir == "" {
		return err == nil
	}
	seed, _, err := h.SeedCommit(ctx)
	if err != nil {
		return false
	}
	was, wasErr := h.Git.RevParse(ctx, h.Common, seed+":"+dir)
	is, err := h.Git.RevParse(ctx, h.Common, tree+":"+dir)
	return err == nil && wasErr == nil && is == was
}

// asJudged returns a task's commit message after the hooks, with our trailers restored if a hook removed them.
func asJudged(ctx context.Context, h *held.Handle, t session.Task, msg, mark string, person bool) (string, error) {
	c, err := h.Git.ReadMessage(ctx, msg)
	if err != nil {
		return "", err
	}
	if held.SignatureOf(c) == (held.Signature{Session: h.S.ID, Task: t.ID, Record: mark}) {
		return msg, nil
	}
	return held.TaskMessage(h.S.ID, t.ID, c.Subject, c.Body, mark, person, h.SignedOff(ctx, h.Common)), nil
}

// usualSubjects are the forms of subjects that commit-msg hooks are written for.
var usualSubjects = []string{held.DefaultSubject, "{type}: {title:lower}", "{type}({scope}): {title:lower}",
	"{type}: {title}", "{id}: {title}", "{id} {title}", "[{id}] {title}"}

// keyedSubjects returns the usual forms with a ticket's key.
func keyedSubjects(key string) (forms []string) {
	if key == "" {
		return nil
	}
	for _, form := range []string{"KEY {title}", "KEY: {title}", "[KEY] {title}", "{type}: KEY {title:lower}",
		"{type}(KEY): {title:lower}", "{title} (KEY)", "{type}: {title:lower} (KEY)"} {
		forms = append(forms, strings.Replace(form, "KEY", key, 1))
	}
	return forms
}

var keyed = pattern.New(`(?:^|[^A-Za-z0-9])([A-Z][A-Z0-9_]*-[0-9]+|#[0-9]+)\b`)

// ticketKey returns the key of a ticket in the name of the source's branch, else in the newest of the last subjects
// that has one; "" for none.
func ticketKey(ctx context.Context, h *held.Handle) string {
	branch, _ := h.Git.Line(ctx, h.Git.In(h.Checkpoint.Source, "branch", "--show-current"))
	texts := []string{branch}
	commits, _ := h.Git.Log(ctx, h.Common, cmp.Or(h.Base, "HEAD"), "", 20) // none in a repository without commits
	for _, c := range commits {
		texts = append(texts, c.Subject)
	}
	for _, t := range texts {
		if m := keyed().FindStringSubmatch(t); m != nil {
			return m[1]
		}
	}
	return ""
}

// UsualBranches returns the forms of branch names that hooks ask for, with the ticket's key if there is one.
func UsualBranches(ctx context.Context, h *held.Handle) (forms []string) {
	parts := []string{"{label}"}
	if key := ticketKey(ctx, h); key != "" {
		parts = []string{strings.TrimPrefix(key, "#") + "-{label}", "{label}"}
	}
	for _, part := range parts {
		for _, kind := range []string{"feature/", "feat/", "fix/", "bugfix/", ""} {
			forms = append(forms, kind+part)
		}
	}
	return forms
}

// SubjectSetting returns the command that sets a form of subjects.
func SubjectSetting(form string) string {
	return "git config tilth.commitSubject " + text.ShellQuote(form)
}

// TrySubjects runs the repository's commit-msg hook on the message of a task's commit. With a base, a sample change to
// that commit is staged. refused is the hook's refusal of the set form of subjects, or nil; passes is then a usual form
// that the hook accepts, or "".
func TrySubjects(ctx context.Context, h *held.Handle, wt gitx.Worktree, base string, t session.Task, summary string) (
	refused *gitx.HookRefusedError, passes string, err error,
) {
	_, has, err := h.Git.Hooks(ctx, wt)
	if err != nil || !has("commit-msg") {
		return nil, "", err
	}
	set := cmp.Or(h.CommitSubject, held.DefaultSubject)
	for i, form := range subjectForms(ctx, h, set, t) {
		msg := held.TaskMessage(h.S.ID, t.ID, held.SubjectOf(form, t), held.Quoted(h.Redact.String(summary)),
			"1000000 "+strings.Repeat("0", 64), false, h.SignedOff(ctx, h.Common))
		says, err := showMessage(ctx, h, wt, base, msg)
		switch {
		case err != nil || says == nil && i == 0:
			return nil, "", err
		case says == nil:
			return refused, form, nil
		case i == 0:
			refused = says
		}
	}
	return refused, "", nil
}

// subjectForms yields the configured form of subjects and then the usual ones. Among those with an id, forms with a
// ticket's key come first, because a key that people wrote is more likely to pass than an id of git-tilth.
func subjectForms(ctx context.Context, h *held.Handle, set string, t session.Task) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		if !yield(0, set) {
			return
		}
		byID := slices.IndexFunc(usualSubjects, func(f string) bool { return strings.Contains(f, "{id}") })
		forms := slices.Concat(usualSubjects[:byID], keyedSubjects(ticketKey(ctx, h)), usualSubjects[byID:])
		for i, f := range forms {
			if f == set || t.Scope == "" && strings.Contains(f, "{scope}") {
				continue
			}
			if !yield(i+1, f) {
				return
			}
		}
	}
}

// showMessage runs the commit-msg hook on a message and ignores its changes.
func showMessage(ctx context.Context, h *held.Handle, wt gitx.Worktree,
	base, message string) (*gitx.HookRefusedError, error) {
	_, err := h.Git.TryHooks(ctx, wt, gitx.TreeCommit{Message: message, Parent: base}, []string{"commit-msg"},
		CommittingVar+"="+h.S.Branch())
	if refused, is := errors.AsType[*gitx.HookRefusedError](err); is && ctx.Err() == nil {
		return refused, nil
	}
	return nil, err
}
