package take

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/message"
	"github.com/git-tilth/git-tilth/internal/text"
)

// whole merges or squashes the session's branch up to its last done task.
func (t *taker) whole(ctx context.Context, there there) error {
	t.Above = slices.IndexFunc(t.commits, func(c gitx.Commit) bool { return t.taskOf(c) != "" })
	top, from := t.commits[t.Above].SHA, t.Note.From
	for _, c := range t.commits[t.Above:] {
		if len(c.Trailers["Tilth-Failed"]) > 0 {
			return &held.RefusedError{Why: "the partial work of a failed task is below the last finished task",
				Hint: "git tilth take --pick " + t.S.ID}
		}
	}
	base, err := t.mergeBase(ctx, top)
	switch {
	case err != nil:
		return err
	case base == top:
		t.Already = t.order()
		return nil
	case base == from && t.Note.How == Merge:
		t.Tasks, t.Already = t.missing(there)
		t.Note.To = top
		return nil
	}
	m, err := t.Merge(ctx, from, top)
	if err != nil {
		return err
	}
	if len(m.Conflicts) > 0 {
		return t.conflict("session "+t.S.ID, m.Conflicts, "git merge "+text.Head(top, 10))
	}
	t.Tasks, t.Already = t.missing(there)
	if t.Note.How == Merge {
		subject := "Merge " + cmp.Or(t.label(), "branch '"+t.S.Branch()+"'")
		return t.commit(ctx, m.Tree, subject, []string{top}, "pre-merge-commit", "commit-msg")
	}
	return t.squash(ctx, m.Tree)
}

// mergeBase is where the branch and the session's commit parted.
func (t *taker) mergeBase(ctx context.Context, sha string) (string, error) {
	base, err := t.Git.Line(ctx, gitx.InRepo(t.common, "merge-base", "--end-of-options", t.Note.From, sha))
	if err == nil && base == "" {
		err = &held.RefusedError{Why: t.Note.Onto + " has no history in common with session " + t.S.ID,
			Hint: "git tilth take --pick " + t.S.ID}
	}
	return base, err
}

// taskOf is the task that is taken with a commit, "" for none.
func (t *taker) taskOf(c gitx.Commit) string {
	for id, sha := range t.Note.Tasks {
		if sha == c.SHA {
			return id
		}
	}
	return ""
}

// order is the tasks that are taken, oldest first.
func (t *taker) order() (ids []string) {
	for _, c := range slices.Backward(t.commits) {
		if id := t.taskOf(c); id != "" {
			ids = append(ids, id)
		}
	}
	return ids
}

// missing is which tasks the branch lacks and which it has.
func (t *taker) missing(there there) (lacks, has []string) {
	for _, id := range t.order() {
		if there.tasks[id] {
			has = append(has, id)
		} else {
			lacks = append(lacks, id)
		}
	}
	return lacks, has
}

// chosen brings each task's change, and its acceptance tests from the seed, onto the branch. The change is that from
// the tree before the task, without its tests, to the task's own.
func (t *taker) chosen(ctx context.Context, there there) error {
	tree, err := t.Git.RevParse(ctx, t.common, t.Note.From+"^{tree}")
	if err != nil {
		return err
	}
	for _, id := range t.order() {
		if there.tasks[id] {
			t.Already = append(t.Already, id)
			continue
		}
		sha := t.Note.Tasks[id]
		c := t.commits[slices.IndexFunc(t.commits, func(c gitx.Commit) bool { return c.SHA == sha })]
		next, err := t.Apply(ctx, c.Parents[0], t.want.TestsOf(t.seed, id), c.Tree, tree)
		if err != nil {
			return err
		}
		if len(next.Conflicts) > 0 {
			return t.conflict(id, next.Conflicts, "git cherry-pick "+text.Head(sha, 10))
		}
		if next.Tree == tree {
			t.Already = append(t.Already, id)
			continue
		}
		tree, t.Tasks = next.Tree, append(t.Tasks, id)
		if t.Note.How == Pick {
			if err := t.pick(ctx, c, tree); err != nil {
				return err
			}
		}
	}
	if t.Note.How == Pick || len(t.Tasks) == 0 {
		return nil
	}
	return t.squash(ctx, tree)
}

// pick makes a task's commit again, with its author and message, on top of the last one.
func (t *taker) pick(ctx context.Context, c gitx.Commit, tree string) error {
	author, err := t.Author(ctx, c.SHA)
	if err != nil {
		return err
	}
	made := gitx.TreeCommit{Tree: tree, Parent: t.Note.To, Message: c.Subject + "\n\n" + c.Body + "\n", Sign: t.Sign}
	t.Note.To, err = t.CommitBuilder.Commit(ctx, made, author)
	return err
}

// squash makes one commit of all tasks.
func (t *taker) squash(ctx context.Context, tree string) error {
	if was, err := t.Git.RevParse(ctx, t.common, t.Note.From+"^{tree}"); err != nil || was == tree {
		t.Already, t.Tasks = append(t.Already, t.Tasks...), nil
		return err
	}
	subject := strings.Join(t.Tasks, ", ")
	if len(t.want.Tasks) > 0 && len(t.Tasks) == 1 {
		of := func(c gitx.Commit) bool { return t.taskOf(c) == subject }
		subject = t.commits[slices.IndexFunc(t.commits, of)].Subject
	} else {
		subject = cmp.Or(t.label(), subject)
	}
	return t.commit(ctx, tree, subject, nil, "pre-commit", "commit-msg")
}

// label returns the session's label as a subject, "" if it has none.
func (t *taker) label() string {
	check, err := t.S.Checkpoint()
	if err != nil {
		return ""
	}
	return text.Clip(text.VisibleLine(text.OneLine(check.Label)), 60)
}

// commit makes the one commit of a take, past the hooks that look at such a one.
func (t *taker) commit(ctx context.Context, tree, subject string, parents []string, hooks ...string) error {
	lines := []string{subject, ""}
	for _, c := range slices.Backward(t.commits) {
		if slices.Contains(t.Tasks, t.taskOf(c)) && c.Subject != subject {
			lines = append(lines, "- "+c.Subject)
		}
	}
	if len(lines) > 2 {
		lines = append(lines, "")
	}
	lines = append(lines, message.SessionLine(t.S.ID))
	for _, id := range t.Tasks {
		lines = append(lines, "Tilth-Task: "+id)
	}
	c := gitx.TreeCommit{Tree: tree, Parent: t.Note.From, Message: strings.Join(lines, "\n") + "\n", Sign: t.Sign}
	var refused *gitx.HookRefusedError
	err := t.Hooks(ctx, cmp.Or(t.place, t.common), &c, hooks...)
	if errors.As(err, &refused) {
		return &held.RefusedError{Why: err.Error() + "; nothing was changed", Hint: "git tilth take --pick " + t.S.ID}
	}
	if err == nil {
		t.Note.To, err = t.CommitBuilder.Commit(ctx, c, nil, parents...)
	}
	return err
}

func (t *taker) conflict(what string, files []string, byHand string) error {
	if t.place == "" {
		byHand = "git switch " + text.ShellQuote(t.Note.Onto) + " && " + byHand
	}
	slices.Sort(files)
	return &held.RefusedError{Why: fmt.Sprintf("%s and %s conflict in %s; nothing was changed", what, t.Note.Onto,
		strings.Join(slices.Compact(files), ", ")), Hint: byHand}
}
