package take

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/text"
	"github.com/git-tilth/git-tilth/internal/validator"
)

// whole merges or squashes the session's branch up to its last finished task.
func (t *taker) whole(ctx context.Context, there there) error {
	t.Above = slices.IndexFunc(t.commits, func(c gitx.Commit) bool { return t.taskOf(c) != "" })
	top, from := t.commits[t.Above].SHA, t.Note.From
	for _, c := range t.commits[t.Above:] {
		if len(c.Trailers["Tilth-Failed"]) > 0 {
			return &held.RefusedError{Why: "the branch has partial work of a failed task before the last finished task",
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
		rev := text.Head(top, 10)
		if t.Above == 0 {
			rev = t.S.Branch()
		}
		return t.conflict("session "+t.S.ID, m.Conflicts, "git merge "+rev)
	}
	t.Tasks, t.Already = t.missing(there)
	if t.Note.How == Merge {
		subject := "Merge " + cmp.Or(t.label(), "branch '"+t.S.Branch()+"'")
		return t.commit(ctx, m.Tree, subject, []string{top}, "pre-merge-commit", "commit-msg")
	}
	return t.squash(ctx, m.Tree)
}

// mergeBase returns the merge base of the branch and the session's commit.
func (t *taker) mergeBase(ctx context.Context, sha string) (string, error) {
	base, err := t.Git.Line(ctx, gitx.InRepo(t.common, "merge-base", "--end-of-options", t.Note.From, sha))
	if err == nil && base == "" {
		err = &held.RefusedError{Why: t.Note.Onto + " has no history in common with session " + t.S.ID,
			Hint: "git tilth take --pick " + t.S.ID}
	}
	return base, err
}

// taskOf returns the task that a take of the commit takes, or "".
func (t *taker) taskOf(c gitx.Commit) string {
	for id, sha := range t.Note.Tasks {
		if sha == c.SHA {
			return id
		}
	}
	return ""
}

// order returns the tasks to take, oldest first.
func (t *taker) order() (ids []string) {
	for _, c := range slices.Backward(t.commits) {
		if id := t.taskOf(c); id != "" {
			ids = append(ids, id)
		}
	}
	return ids
}

// missing returns the tasks that the branch lacks and those that it has.
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

// chosen applies each task's change, with its acceptance tests from the seed, to the branch. The change is the
// difference between the tree before the task, without the task's tests, and the task's tree.
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
		next, err := t.Apply(ctx, c.Parents[0], validator.AcceptanceTests(t.seed, id), c.Tree, tree)
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

// pick repeats a task's commit on top of the last one, with its author and message.
func (t *taker) pick(ctx context.Context, c gitx.Commit, tree string) error {
	made := gitx.TreeCommit{Tree: tree, Parent: t.Note.To, AuthorOf: c.SHA,
		Message: c.Subject + "\n\n" + c.Body + "\n", Sign: t.Sign}
	to, err := t.CommitBuilder.Commit(ctx, made)
	t.Note.To = to
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

// label returns the session's label as a subject, or "".
func (t *taker) label() string {
	check, err := t.S.Checkpoint()
	if err != nil {
		return ""
	}
	return text.Clip(text.VisibleLine(text.OneLine(check.Label)), 60)
}

// commit makes the single commit of a take, after the hooks of such a commit.
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
	lines = append(lines, held.SessionLine(t.S.ID))
	for _, id := range t.Tasks {
		lines = append(lines, "Tilth-Task: "+id)
	}
	if signed := t.SignedOff(ctx, t.common); signed != "" {
		lines = append(lines, signed)
	}
	c := gitx.TreeCommit{Tree: tree, Parent: t.Note.From, Message: strings.Join(lines, "\n") + "\n", Sign: t.Sign}
	var refused *gitx.HookRefusedError
	wt, err := t.Git.CheckoutAt(t.common, cmp.Or(t.place, t.common))
	if err == nil {
		var seen gitx.TreeCommit
		seen, err = t.Git.TryHooks(ctx, wt, c, hooks)
		c.Message = seen.Message
	}
	if errors.As(err, &refused) {
		return &held.RefusedError{Why: err.Error() + "; nothing was changed", Hint: "git tilth take --pick " + t.S.ID}
	}
	if err == nil {
		c.Others = parents
		t.Note.To, err = t.CommitBuilder.Commit(ctx, c)
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

// A take makes all of its trees and commits first, without a checkout, so that a conflict or a hook changes nothing.
// The state on disk after each step, and the next take's reaction:
//  1. unreferenced objects              makes them again
//  2. taking.json, if the branch is checked out
//  3. files of the checkout, one by one refuses, because only the user knows the author of these changes
//  4. the branch moved, by one command  notes that nothing is left to take
//  5. a line of taken.jsonl             the same
//  6. taking.json removed

const (
	takenFile  = "taken.jsonl" // takes, with their branches
	takingFile = "taking.json" // exists while a take changes a branch's checkout
)

// ErrTaking means that another process takes work into a branch of the repository.
var ErrTaking = errors.New("another take into this repository is running")

// execute moves the branch and records the taken tasks.
func (p Plan) execute(ctx context.Context, d held.Deps) error {
	n := p.Note
	if n.From != n.To {
		if err := p.advance(ctx, d); err != nil {
			return err
		}
	}
	if d.Git.IsDryRun() {
		return nil
	}
	n.TS = record.FormatTime(d.Now())
	line, err := jsonl.Encode(n)
	if err != nil {
		return err
	}
	err = jsonl.AppendOnce(p.S.Path(takenFile), append(line, '\n'))
	return errors.Join(err, os.RemoveAll(p.S.Path(takingFile)))
}

// advance moves the branch and updates the files of its checkout.
func (p Plan) advance(ctx context.Context, d held.Deps) error {
	n, mark := p.Note, p.S.Path(takingFile)
	if p.place != "" && !d.Git.IsDryRun() {
		// A hook or the user may have checked out another branch, which the merge would move.
		on, err := d.Git.Line(ctx, d.Git.In(p.place, "symbolic-ref", "--quiet", "HEAD"))
		if err != nil || on != "refs/heads/"+n.Onto {
			return errors.Join(err,
				&held.RefusedError{Why: n.Onto + " is not checked out any more; nothing was changed",
					Hint: held.GitLine(p.place, "switch", n.Onto) + " && " + p.again})
		}
		if err := jsonl.WriteFile(mark, record.JSON(taking{n, p.dirty})); err != nil {
			return err
		}
	}
	why := fmt.Sprintf("tilth take: %s of session %s", n.How, p.S.ID)
	c := gitx.InRepo(p.common, "update-ref", "-m", why, "refs/heads/"+n.Onto, n.To, n.From)
	if p.place != "" {
		c = d.Git.In(p.place, "merge", "--ff-only", "--no-squash", "--commit", "--no-stat", "--quiet", n.To)
		c.Vars = []string{"GIT_REFLOG_ACTION=" + why}
	}
	c.Hooks = true // the user's hooks
	_, err := d.Git.Mutate(ctx, c)
	if gitx.ExitCode(err) <= 0 {
		return err
	}
	_, said, _ := strings.Cut(err.Error(), ": ")
	refused := "git refuses: " + strings.ReplaceAll(said, ":; ", ": ")
	if err := p.unchanged(ctx, d); err != nil {
		return err // on a full disk git fails in the middle
	}
	if p.cutOff {
		return &held.RefusedError{Why: refused + "; an earlier take into " + n.Onto + " was cut off",
			Hint: p.putAway()}
	}
	hint := p.again
	if strings.Contains(said, "untracked") {
		hint = p.putAway()
	} else if strings.Contains(said, "would be overwritten") {
		hint = held.GitLine(p.place, "stash") + " && " + p.again
	}
	return errors.Join(&held.RefusedError{Why: refused + "; nothing was changed", Hint: hint}, os.RemoveAll(mark))
}

// clearLocks removes the locks of a killed advance. gitDir is the checkout's, or "".
func (p Plan) clearLocks(ctx context.Context, g *gitx.Git, gitDir string) error {
	err := g.ClearLocks(ctx, p.common, "", p.common, "refs/heads/"+p.Note.Onto+".lock")
	if err == nil && gitDir != "" {
		err = g.ClearLocks(ctx, p.common, "", gitDir, "index.lock", "HEAD.lock", "ORIG_HEAD.lock")
	}
	return err
}

// putAway returns the command that stashes the files of an interrupted take.
func (p Plan) putAway() string {
	return held.GitLine(p.place, "stash", "-u") + " && " + p.again
}

// taking is the journal of a take while it changes the checkout of a branch.
type taking struct {
	Taken
	Dirty []string `json:"dirty,omitempty"` // git status before the take
}

// status returns git status for the tracked files of the checkout.
func (p Plan) status(ctx context.Context, d held.Deps) ([]string, error) {
	if p.place == "" {
		return nil, nil
	}
	return d.Git.List(ctx, d.Git.In(p.place, "status", "--porcelain=v1", "-z", "--untracked-files=no",
		"--ignore-submodules=dirty"))
}

// unchanged refuses a checkout with changes of an interrupted take. Earlier changes of the user block a take only if
// they block git.
func (p Plan) unchanged(ctx context.Context, d held.Deps) error {
	now, err := p.status(ctx, d)
	if err != nil || slices.Equal(now, p.dirty) {
		return err
	}
	return held.Refuse(p.putAway(), "an earlier take into %s was cut off while it changed %s", p.Note.Onto, p.place)
}
