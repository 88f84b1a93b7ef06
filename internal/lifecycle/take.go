package lifecycle

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
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
	place   string   // where the branch is checked out
	dirty   []string // what git status says of that before anything is changed
	cutOff  bool     // an earlier take into the branch was, while it changed the checkout
}

// taker works out a take.
type taker struct {
	Deps
	*commitBuilder
	TakePlan
	want    TakeRequest
	commits []gitx.Commit // since the seed, newest first
	seed    []string      // files that the seed brought
	empty   string        // the seed's commit, where it brought none
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
	bench, remove, err := newCommitBuilder(t.Git, t.common)
	if err != nil {
		return err
	}
	defer remove()
	t.commitBuilder = bench
	there, err := t.there(ctx)
	if err != nil {
		return err
	}
	if len(t.want.Tasks) == 0 && t.Note.How != TakePick && !there.parts {
		if t.empty == "" || there.seed || t.Note.How == TakeSquash {
			return t.whole(ctx)
		}
		if _, err := t.mergeBase(ctx, t.empty); err != nil {
			return err
		}
		if t.want.How == TakeMerge {
			return &RefusedError{"a merge would bring the seed's commit along, in which nothing is",
				"git tilth take --pick " + t.S.ID}
		}
	}
	if t.Note.How == TakeMerge {
		t.Note.How = TakePick
	}
	return t.chosen(ctx, there)
}

// there is what a branch has of the session.
type there struct {
	tasks map[string]bool // as they are, or as they were taken
	parts bool            // some of them only as they were taken
	seed  bool
}

// there finds out what the branch has. A take that was thrown away, or that went into another branch, is not there.
func (t *taker) there(ctx context.Context) (of there, err error) {
	of.tasks = map[string]bool{}
	has := func(sha string) bool {
		if sha == "" || err != nil {
			return false
		}
		_, no := t.Git.Read(ctx, gitx.InRepo(t.common, "merge-base", "--is-ancestor", sha, t.Note.From))
		if gitx.ExitCode(no) < 0 {
			err = no
		}
		return no == nil
	}
	of.seed = has(t.empty)
	top := ""
	for _, c := range t.commits { // newest first: what the branch has of one, it has of those below
		if top != "" || has(c.SHA) {
			top = c.SHA
			of.tasks[t.taskOf(c)] = true
		}
	}
	for _, n := range takenNotes(t.S) {
		ours := map[string]bool{}
		for id, sha := range n.Tasks {
			ours[id] = !of.tasks[id] && t.Note.Tasks[id] == sha
		}
		for id, open := range ours {
			if open && has(n.To) {
				of.tasks[id], of.parts = true, true
			}
		}
	}
	return of, err
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
	if begin, err := seedBeginning(s); err == nil && len(files) == 0 && seed != begin.Base {
		t.empty = seed
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
				": it was rebased, or made by hand", "git log " + s.Branch()}
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
		hint := "git branch"
		if check, err := t.S.Checkpoint(); err == nil && !gitx.SamePath(t.want.Here.CommonDir, t.common) {
			hint = gitLine(SourceNow(check.Source, t.common), "tilth", "take", t.S.ID)
		}
		return refuse(hint, "no branch of the repository is checked out here: --onto names one")
	}
	if strings.HasPrefix(branch, "session/") {
		return &RefusedError{branch + " is a session's branch: --onto names another", "git branch"}
	}
	for _, e := range entries {
		if e.Branch != branch {
			continue
		}
		if !here(e.Path) {
			where := "branch " + branch + " is checked out in " + e.Path
			if e.Gone {
				return &RefusedError{where + ", which is not there: it may be on a disk that is not, or gone for good",
					"git worktree remove " + text.ShellQuote(e.Path)}
			}
			return &RefusedError{where, "cd " + text.ShellQuote(e.Path) + " && git tilth take " + t.S.ID}
		}
		t.place = e.Path
	}
	if rebasing(t.common, branch) {
		return &RefusedError{branch + " is being rebased", "git rebase --continue\ngit rebase --abort"}
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
	var begun taking
	data, _ := jsonl.ReadFile(t.S.Path(takingFile))
	if json.Unmarshal(data, &begun) == nil && begun.Onto == branch {
		t.cutOff, t.dirty = begun.From == from, begun.Dirty
		if err := t.clearLocks(ctx, t.Git, t.want.Here.GitDir); err != nil {
			return err
		}
		if t.cutOff {
			return t.unchanged(ctx, t.Deps)
		}
	}
	t.dirty, err = t.status(ctx, t.Deps)
	return err
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
