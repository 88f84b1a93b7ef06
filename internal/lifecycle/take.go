package lifecycle

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
)

// How a take brings commits into a branch.
const (
	TakePick   = "pick"   // each task's commit again, on the branch
	TakeSquash = "squash" // one commit
	TakeMerge  = "merge"  // the session's branch, fast-forward where possible
)

// TakeRequest is what a person wants to have of a session.
type TakeRequest struct {
	Tasks []string // none: the whole of it
	Onto  string   // a branch; "" for the one that is checked out at Here
	How   string   // "" for TakePick of chosen tasks, and TakeMerge of the whole
	Here  gitx.Location
	// TestsOf picks a task's acceptance tests from the seed's files.
	TestsOf func(files []string, task string) []string
}

// Taken is a line of taken.jsonl.
type Taken struct {
	TS    string            `json:"ts"`
	Onto  string            `json:"onto"`
	How   string            `json:"how"`
	From  string            `json:"from"`
	To    string            `json:"to"`
	Tasks map[string]string `json:"tasks"` // commits of the session, by task
}

// TakePlan is a take, worked out or carried out.
type TakePlan struct {
	S       *session.Session
	Note    Taken
	Tasks   []string // that are new to the branch, oldest first
	Already []string // that made no difference there
	Left    []string // that are not done, with why
	Above   int      // commits on the session's branch above its last task
	common  string
	place   string // where the branch is checked out
	cutOff  bool   // an earlier take into the branch was, while it changed the checkout
}

// taker works out a take.
type taker struct {
	Deps
	*bench
	TakePlan
	want    TakeRequest
	commits []gitx.Commit // since the seed, newest first
	seed    []string      // files that the seed brought
}

// Take brings commits into a branch. What a person has to settle first is a *RefusedError, and nothing was changed.
func Take(ctx context.Context, d Deps, s *session.Session, r TakeRequest) (TakePlan, error) {
	how := TakeMerge
	if len(r.Tasks) > 0 {
		how = TakePick
	}
	note := Taken{How: cmp.Or(r.How, how), Tasks: map[string]string{}}
	t := &taker{Deps: d, want: r, TakePlan: TakePlan{S: s, Note: note}}
	if t.Note.How == TakeMerge && len(t.want.Tasks) > 0 {
		return t.TakePlan, &RefusedError{"--merge takes the whole session, not chosen tasks", "git tilth take -h"}
	}
	if err := t.read(ctx); err != nil {
		return t.TakePlan, err
	}
	release, err := lockDir(t.common, 0, ErrTaking) // or the checkout of a branch that two move is in between
	if err != nil {
		return t.TakePlan, err
	}
	defer release()
	if err := t.work(ctx); err != nil {
		return t.TakePlan, err
	}
	return t.TakePlan, t.execute(ctx, d)
}

// work makes the commits that a take brings into a branch. It moves no ref.
func (t *taker) work(ctx context.Context) error {
	if err := t.target(ctx); err != nil {
		return err
	}
	if _, can := t.Git.Version(ctx, 2, 38); !can {
		return &RefusedError{"take needs git 2.38 or newer", "git merge " + t.S.Branch()}
	}
	bench, remove, err := newBench(t.Git, t.common)
	if err != nil {
		return err
	}
	defer remove()
	t.bench = bench
	if t.Note.How == TakeMerge || t.Note.How == TakeSquash && len(t.want.Tasks) == 0 {
		return t.whole(ctx)
	}
	return t.chosen(ctx)
}

// read finds the commits of the tasks that are to be taken. A commit is a task's where the record says so: subjects and
// trailers prove nothing.
func (t *taker) read(ctx context.Context) error {
	s := t.S
	check, err := s.Checkpoint()
	if err != nil {
		return &RefusedError{err.Error(), "git tilth show " + s.ID}
	}
	if t.common, err = CommonOf(s, check); err != nil {
		return &RefusedError{err.Error(), "git tilth show " + s.ID}
	}
	tip, ok, err := t.Git.BranchTip(ctx, t.common, s.Branch())
	if err != nil || !ok {
		return errors.Join(err, &RefusedError{"branch " + s.Branch() + " is gone", "git tilth show " + s.ID})
	}
	h := &Handle{Deps: t.Deps, S: s, Checkpoint: check, Common: t.common}
	seed, files, err := h.SeedFiles(ctx)
	if err != nil {
		return &RefusedError{"the seed cannot be read: " + err.Error(), "git merge " + s.Branch()}
	}
	for _, f := range files {
		if f.Status == "A" {
			t.seed = append(t.seed, f.Path)
		}
	}
	if t.commits, _, err = commitsSince(ctx, t.Git, t.common, tip, seed); err != nil {
		return err
	}
	sum, err := s.Summarize()
	if err != nil {
		return err
	}
	tasks, err := s.Tasks()
	if err != nil {
		return &RefusedError{err.Error(), "git tilth show " + s.ID}
	}
	for _, task := range tasks {
		if len(t.want.Tasks) > 0 && !slices.Contains(t.want.Tasks, task.ID) {
			continue
		}
		if task.Status != session.TaskDone {
			if len(t.want.Tasks) > 0 {
				return &RefusedError{task.ID + " is " + task.Status + "; only what is done is taken",
					"git tilth review " + task.ID + " " + s.ID}
			}
			t.Left = append(t.Left, task.ID+" "+task.Status)
			continue
		}
		i := -1
		if of := sum.Tasks[task.ID]; of != nil && of.Commit != "" {
			i = slices.IndexFunc(t.commits, func(c gitx.Commit) bool { return strings.HasPrefix(c.SHA, of.Commit) })
		}
		if i < 0 {
			return &RefusedError{"the commit of " + task.ID + " that the record names is not on " + s.Branch() +
				": it was rebased, or made by hand", "git log " + s.Branch() + ", then git merge or git cherry-pick"}
		}
		t.Note.Tasks[task.ID] = t.commits[i].SHA
	}
	if len(t.Note.Tasks) == 0 {
		return &RefusedError{"nothing of session " + s.ID + " is done yet", "git tilth review " + s.ID}
	}
	return nil
}

// target settles the branch, and refuses one that cannot be moved without touching what a person is at.
func (t *taker) target(ctx context.Context) error {
	entries, err := t.Git.Worktrees(ctx, t.common, "")
	if err != nil {
		return err
	}
	// Git lists a checkout whose git directory lies elsewhere, as a submodule's does, under that directory.
	if main := t.common; gitx.SamePath(t.want.Here.GitDir, main) && t.want.Here.TopLevel != "" {
		for i := range entries {
			if gitx.SamePath(entries[i].Path, main) {
				entries[i].Path = t.want.Here.TopLevel
			}
		}
	}
	here := func(path string) bool { return t.want.Here.TopLevel != "" && gitx.SamePath(path, t.want.Here.TopLevel) }
	branch := t.want.Onto
	for _, e := range entries {
		if branch == "" && here(e.Path) {
			branch = e.Branch
		}
	}
	if branch == "" {
		return refuse("git tilth take --onto BRANCH "+t.S.ID, "no branch of the repository is checked out here")
	}
	if strings.HasPrefix(branch, "session/") {
		return &RefusedError{branch + " is a session's branch", "git tilth take --onto BRANCH " + t.S.ID}
	}
	for _, e := range entries {
		if e.Branch != branch {
			continue
		}
		if !here(e.Path) {
			there := "cd " + text.ShellQuote(e.Path) + " && git tilth take " + t.S.ID
			if e.Gone {
				there = "git worktree remove " + text.ShellQuote(e.Path) +
					", if it is gone for good; then the same again"
			}
			return &RefusedError{"branch " + branch + " is checked out in " + e.Path, there}
		}
		t.place = e.Path
	}
	if rebasing(t.common, branch) {
		return &RefusedError{branch + " is being rebased", "git rebase --continue, or --abort; then the same again"}
	}
	to, _ := t.Git.Line(ctx, gitx.InRepo(t.common, "symbolic-ref", "--quiet", "refs/heads/"+branch))
	if to != "" && t.place == "" {
		return &RefusedError{"branch " + branch + " is another name of " + to,
			"git tilth take --onto " + text.ShellQuote(strings.TrimPrefix(to, "refs/heads/")) + " " + t.S.ID}
	}
	from, ok, err := t.Git.BranchTip(ctx, t.common, branch)
	if err != nil || !ok {
		return errors.Join(err, &RefusedError{"there is no branch " + text.VisibleLine(branch), "git branch --list"})
	}
	t.Note.Onto, t.Note.From, t.Note.To = branch, from, from
	if t.place == "" {
		return t.clearLocks(ctx, t.Git, "")
	}
	var begun Taken
	data, _ := jsonl.ReadFile(t.S.Path(takingFile))
	if json.Unmarshal(data, &begun) == nil && begun.Onto == branch {
		t.cutOff = begun.From == from
		if err := t.clearLocks(ctx, t.Git, t.want.Here.GitDir); err != nil {
			return err
		}
	}
	return t.unchanged(ctx, t.Deps)
}

// rebasing reports whether a rebase of a branch goes on in a worktree. At its end it wants the branch where it was.
func rebasing(common, branch string) bool {
	for _, of := range []string{"", "worktrees/*"} {
		notes, _ := filepath.Glob(filepath.Join(text.GlobQuote(common), of, "rebase-*", "head-name"))
		for _, note := range notes {
			if name, _ := os.ReadFile(note); strings.TrimSpace(string(name)) == "refs/heads/"+branch {
				return true
			}
		}
	}
	return false
}

// whole merges or squashes the session's branch up to its last done task.
func (t *taker) whole(ctx context.Context) error {
	t.Above = slices.IndexFunc(t.commits, func(c gitx.Commit) bool { return t.taskOf(c) != "" })
	top, from := t.commits[t.Above].SHA, t.Note.From
	for _, c := range t.commits[t.Above:] {
		if len(c.Trailers["Tilth-Failed"]) > 0 {
			return &RefusedError{"below the last done task lies the partial work of a failed one",
				"git tilth take --pick " + t.S.ID}
		}
	}
	base, err := t.Git.Line(ctx, gitx.InRepo(t.common, "merge-base", "--end-of-options", from, top))
	switch {
	case err != nil:
		return err
	case base == "":
		return &RefusedError{t.Note.Onto + " has no history in common with session " + t.S.ID,
			"git tilth take --pick " + t.S.ID}
	case base == top:
		t.Already = t.order()
		return nil
	case base == from && t.Note.How == TakeMerge:
		t.Tasks, t.Note.To = t.order(), top
		return nil
	}
	tree, conflicts, err := t.merge(ctx, from, top)
	if err != nil {
		return err
	}
	if len(conflicts) > 0 {
		return t.conflict("session "+t.S.ID, conflicts, "git merge "+text.Head(top, 10))
	}
	t.Tasks = t.order()
	if t.Note.How == TakeMerge {
		return t.commit(ctx, tree, "Merge branch '"+t.S.Branch()+"'", []string{top}, "pre-merge-commit", "commit-msg")
	}
	return t.squash(ctx, tree)
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

// chosen brings each task's change, and its acceptance tests from the seed, onto the branch. The change is that from
// the tree before the task, without its tests, to the task's own.
func (t *taker) chosen(ctx context.Context) error {
	tree, err := t.Git.RevParse(ctx, t.common, t.Note.From+"^{tree}")
	if err != nil {
		return err
	}
	for _, id := range t.order() {
		sha := t.Note.Tasks[id]
		c := t.commits[slices.IndexFunc(t.commits, func(c gitx.Commit) bool { return c.SHA == sha })]
		next, conflicts, err := t.apply(ctx, c.Parents[0], t.want.TestsOf(t.seed, id), c.Tree, tree)
		if err != nil {
			return err
		}
		if len(conflicts) > 0 {
			return t.conflict(id, conflicts, "git cherry-pick "+text.Head(sha, 10))
		}
		if next == tree {
			t.Already = append(t.Already, id)
			continue
		}
		tree, t.Tasks = next, append(t.Tasks, id)
		if t.Note.How == TakePick {
			if err := t.pick(ctx, c, tree); err != nil {
				return err
			}
		}
	}
	if t.Note.How == TakePick || len(t.Tasks) == 0 {
		return nil
	}
	return t.squash(ctx, tree)
}

// pick makes a task's commit again, with its author and message, on what was made before.
func (t *taker) pick(ctx context.Context, c gitx.Commit, tree string) error {
	author, err := t.author(ctx, c.SHA)
	if err != nil {
		return err
	}
	made := gitx.TreeCommit{Tree: tree, Parent: t.Note.To, Message: c.Subject + "\n\n" + c.Body + "\n", Sign: t.Sign}
	t.Note.To, err = t.bench.commit(ctx, made, author)
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
	} else if check, err := t.S.Checkpoint(); err == nil && check.Label != "" {
		subject = text.Clip(text.OneLine(check.Label), 72)
	}
	return t.commit(ctx, tree, subject, nil, "pre-commit", "commit-msg")
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
	lines = append(lines, "Tilth-Session: "+t.S.ID)
	for _, id := range t.Tasks {
		lines = append(lines, "Tilth-Task: "+id)
	}
	c := gitx.TreeCommit{Tree: tree, Parent: t.Note.From, Message: strings.Join(lines, "\n") + "\n", Sign: t.Sign}
	var refused *HookRefusedError
	err := t.hooks(ctx, cmp.Or(t.place, t.common), &c, hooks...)
	if errors.As(err, &refused) {
		return &RefusedError{err.Error() + "; nothing was changed", "git tilth take --pick " + t.S.ID}
	}
	if err == nil {
		t.Note.To, err = t.bench.commit(ctx, c, nil, parents...)
	}
	return err
}

func (t *taker) conflict(what string, files []string, byHand string) error {
	if t.place == "" {
		byHand = "git switch " + t.Note.Onto + " && " + byHand
	}
	slices.Sort(files)
	return &RefusedError{fmt.Sprintf("%s and %s conflict in %s; nothing was changed", what, t.Note.Onto,
		strings.Join(slices.Compact(files), ", ")), byHand}
}
