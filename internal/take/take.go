// Package take merges or picks a session's finished work into a branch of the user.
package take

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
)

// The ways to take commits into a branch.
const (
	Pick   = "pick"   // repeat each task's commit on the branch
	Squash = "squash" // one commit
	Merge  = "merge"  // merge the session's branch, by fast-forward if possible
)

// Request has the arguments of a take.
type Request struct {
	Tasks []string // empty for the whole session
	Onto  string   // a branch; "" is the branch checked out at Here
	How   string   // "" is Pick for chosen tasks, Merge for the whole session
	Here  gitx.Location
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

// Plan is a planned or executed take.
type Plan struct {
	S       *session.Session
	Note    Taken
	Tasks   []string // tasks that the branch lacks, oldest first
	Already []string // tasks that change nothing on the branch
	Left    []string // unfinished tasks, with the reason
	Above   int      // commits on the session's branch above its last task
	Gone    string   // base that the branch no longer has, which makes Pick the default
	common  string
	again   string   // the command, without the branch that it names
	place   string   // checkout of the branch
	dirty   []string // its git status before any change
	cutOff  bool     // an earlier take was interrupted while it changed the checkout
}

// taker plans a take.
type taker struct {
	held.Deps
	*gitx.CommitBuilder
	Plan
	want    Request
	commits []gitx.Commit // since the seed, newest first
	seed    []string      // files added by the seed
	empty   string        // the seed's commit, if it added no files
}

// Take brings commits into a branch. A problem that the user must solve first is a *held.RefusedError, and nothing has
// changed.
func Take(ctx context.Context, d held.Deps, s *session.Session, r Request) (Plan, error) {
	how := Merge
	if len(r.Tasks) > 0 {
		how = Pick
	}
	note := Taken{How: cmp.Or(r.How, how), Tasks: map[string]string{}}
	again := append([]string{"git", "tilth", "take"}, r.Tasks...)
	if r.How != "" {
		again = append(again, "--"+r.How)
	}
	t := &taker{Deps: d, want: r, Plan: Plan{S: s, Note: note, again: text.ShellQuote(append(again, s.ID)...)}}
	if t.Note.How == Merge && len(t.want.Tasks) > 0 {
		return t.Plan, &held.RefusedError{Why: "--merge takes the whole session, not chosen tasks",
			Hint: "git tilth take -h"}
	}
	if err := t.read(ctx); err != nil {
		return t.Plan, err
	}
	release, err := held.LockDir(t.common, 0, ErrTaking) // protects the checkout from a second take
	if err != nil {
		return t.Plan, err
	}
	defer release()
	if err := t.work(ctx); err != nil {
		return t.Plan, err
	}
	return t.Plan, t.execute(ctx, d)
}

// work makes the commits that a take brings into a branch. It moves no ref.
func (t *taker) work(ctx context.Context) error {
	if err := t.target(ctx); err != nil {
		return err
	}
	if _, can := t.Git.Version(ctx, 2, 38); !can {
		return &held.RefusedError{Why: "take needs git 2.38 or newer", Hint: "git merge " + t.S.Branch()}
	}
	bench, remove, err := gitx.NewCommitBuilder(t.Git, t.common)
	if err != nil {
		return err
	}
	defer remove()
	t.CommitBuilder = bench
	if len(t.want.Tasks) == 0 && t.want.How == "" {
		if t.Gone = BaseGone(ctx, t.Git, t.common, t.S, t.Note.From); t.Gone != "" {
			t.Note.How = Pick
		}
	}
	there, err := t.there(ctx)
	if err != nil {
		return err
	}
	if len(t.want.Tasks) == 0 && t.Note.How != Pick && !there.parts {
		if t.empty == "" || there.seed || t.Note.How == Squash {
			return t.whole(ctx, there)
		}
		if _, err := t.mergeBase(ctx, t.empty); err != nil {
			return err
		}
		if t.want.How == Merge {
			return &held.RefusedError{Why: "a merge would include the empty seed commit",
				Hint: "git tilth take --pick " + t.S.ID}
		}
	}
	if t.Note.How == Merge {
		t.Note.How = Pick
	}
	return t.chosen(ctx, there)
}

// BaseGone returns the base of a session if a branch no longer contains it because it was amended or rebased. It
// returns "" if tip, the branch's commit, contains the base, and if tip has another history while other branches
// contain the base.
func BaseGone(ctx context.Context, g *gitx.Git, common string, s *session.Session, tip string) string {
	begin, err := held.SeedBeginning(s)
	if err != nil || tip == "" {
		return ""
	}
	_, err = g.Read(ctx, gitx.InRepo(common, "merge-base", "--is-ancestor", begin.Base, tip))
	if gitx.ExitCode(err) != 1 {
		return ""
	}
	if _, err = g.Read(ctx, gitx.InRepo(common, "merge-base", begin.Base, tip)); gitx.ExitCode(err) == 1 {
		alone, _ := g.Line(ctx, gitx.InRepo(common, "rev-list", "--max-count=1", begin.Base, "--not",
			"--exclude="+usualBranches, "--exclude="+s.Branch(), "--branches"))
		if alone == "" {
			return ""
		}
	}
	return begin.Base
}

// there has the part of the session that is on a branch.
type there struct {
	tasks map[string]bool // unchanged or as taken
	parts bool            // some of them only by the record of a take
	seed  bool
}

// there finds the session's work on the branch, by take or otherwise. A take that was reset away, or into another
// branch, does not count.
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
	top := slices.IndexFunc(t.commits, func(c gitx.Commit) bool { return has(c.SHA) }) // newest first
	if top >= 0 {
		for _, c := range t.commits[top:] {
			of.tasks[t.taskOf(c)] = true
		}
	}
	byHand, logErr := t.Git.Log(ctx, t.common, t.Note.From, t.commits[0].SHA, 0, "Tilth-Session: "+t.S.ID)
	for _, c := range byHand { // picked or rebased: the record length in the message is from the original
		for _, ours := range t.commits {
			mark, id := ours.Trailers["Tilth-Record"], t.taskOf(ours)
			if id != "" && len(mark) > 0 && slices.Equal(mark, c.Trailers["Tilth-Record"]) {
				of.parts = of.parts || !of.tasks[id]
				of.tasks[id] = true
			}
		}
	}
	err = cmp.Or(err, logErr)
	for _, n := range takenNotes(t.S) {
		for id, sha := range n.Tasks {
			if !of.tasks[id] && t.Note.Tasks[id] == sha && has(n.To) {
				of.tasks[id], of.parts = true, true
			}
		}
	}
	return of, err
}

// read finds the commits of the tasks to take. The record decides which commit belongs to a task, because subjects and
// trailers prove nothing.
func (t *taker) read(ctx context.Context) error {
	s := t.S
	check, err := s.Checkpoint()
	if err != nil {
		return &held.RefusedError{Why: err.Error(), Hint: "git tilth show " + s.ID}
	}
	if t.common, err = held.CommonOf(s, check); err != nil {
		return &held.RefusedError{Why: err.Error(), Hint: "git tilth show " + s.ID}
	}
	tip, ok, err := t.Git.BranchTip(ctx, t.common, s.Branch())
	if err != nil || !ok {
		return errors.Join(err, &held.RefusedError{Why: "branch " + s.Branch() + " is gone",
			Hint: "git tilth show " + s.ID})
	}
	h := &held.Handle{Deps: t.Deps, S: s, Checkpoint: check, Common: t.common}
	seed, files, err := h.SeedFiles(ctx)
	if err != nil {
		return &held.RefusedError{Why: "the seed cannot be read: " + err.Error(), Hint: "git merge " + s.Branch()}
	}
	for _, f := range files {
		if f.Status == "A" {
			t.seed = append(t.seed, f.Path)
		}
	}
	if begin, err := held.SeedBeginning(s); err == nil && len(files) == 0 && seed != begin.Base {
		t.empty = seed
	}
	if t.commits, _, err = held.CommitsSince(ctx, t.Git, t.common, tip, seed); err != nil {
		return err
	}
	sum, err := s.Summarize()
	if err != nil {
		return err
	}
	tasks, err := s.Tasks()
	if err != nil {
		return &held.RefusedError{Why: err.Error(), Hint: "git tilth show " + s.ID}
	}
	for _, task := range tasks {
		if len(t.want.Tasks) > 0 && !slices.Contains(t.want.Tasks, task.ID) {
			continue
		}
		if task.Status != session.TaskDone {
			if len(t.want.Tasks) > 0 {
				return &held.RefusedError{Why: task.ID + " is " + task.Status + "; take needs finished tasks",
					Hint: "git tilth review " + task.ID + " " + s.ID}
			}
			t.Left = append(t.Left, task.ID+" "+task.Status)
			continue
		}
		i := -1
		if of := sum.Tasks[task.ID]; of != nil && of.Commit != "" {
			i = slices.IndexFunc(t.commits, func(c gitx.Commit) bool { return strings.HasPrefix(c.SHA, of.Commit) })
		}
		if i < 0 {
			return held.Refuse("git log "+s.Branch(), "the commit of %s on record is not on %s: the branch was "+
				"rebased or rewritten", task.ID, s.Branch())
		}
		t.Note.Tasks[task.ID] = t.commits[i].SHA
	}
	if len(t.Note.Tasks) == 0 {
		return &held.RefusedError{Why: "no task of session " + s.ID + " is done yet", Hint: "git tilth review " + s.ID}
	}
	return nil
}

// target chooses the branch. It refuses a branch that cannot move without changing the user's work in progress.
func (t *taker) target(ctx context.Context) error {
	entries, err := t.Git.Worktrees(ctx, t.common)
	if err != nil {
		return err
	}
	// Git lists a checkout with a separate git directory (a submodule's) under that directory. It calls the checkout
	// bare if only the command line names a work tree.
	if main := t.common; gitx.SamePath(t.want.Here.GitDir, main) && t.want.Here.TopLevel != "" {
		for i := range entries {
			if e := &entries[i]; gitx.SamePath(e.Path, main) {
				// It is "" for a detached HEAD.
				head, _ := t.Git.Line(ctx, gitx.InRepo(main, "symbolic-ref", "--quiet", "HEAD"))
				e.Path, e.Branch = t.want.Here.TopLevel, cmp.Or(e.Branch, strings.TrimPrefix(head, "refs/heads/"))
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
		hint := t.again + " --onto " + text.ShellQuote(t.defaultBranch(ctx))
		if check, err := t.S.Checkpoint(); err == nil && !gitx.SamePath(t.want.Here.CommonDir, t.common) {
			hint = held.GitLine(held.SourceNow(check.Source, t.common), "tilth", "take", t.S.ID)
		}
		return held.Refuse(hint, "no branch of the repository is checked out here; name one with --onto")
	}
	if strings.HasPrefix(branch, "session/") || branch == t.S.Branch() {
		return &held.RefusedError{Why: branch + " is a session's branch; name another with --onto", Hint: "git branch"}
	}
	for _, e := range entries {
		if e.Branch != branch {
			continue
		}
		if !here(e.Path) {
			where := "branch " + branch + " is checked out in " + e.Path
			if e.Gone {
				return held.Refuse("git worktree remove "+text.ShellQuote(e.Path),
					"%s, which does not exist: it was deleted, or its disk is not mounted", where)
			}
			return &held.RefusedError{Why: where,
				Hint: "cd " + text.ShellQuote(e.Path) + " && " + t.again}
		}
		t.place = e.Path
	}
	to, _ := t.Git.Line(ctx, gitx.InRepo(t.common, "symbolic-ref", "--quiet", "refs/heads/"+branch))
	if to != "" && t.place == "" {
		return &held.RefusedError{Why: "branch " + branch + " is a symbolic ref to " + to,
			Hint: t.again + " --onto " + text.ShellQuote(strings.TrimPrefix(to, "refs/heads/"))}
	}
	from, ok, err := t.Git.BranchTip(ctx, t.common, branch)
	if err != nil || !ok {
		return errors.Join(err, held.Refuse("git branch --list", "there is no branch %s",
			text.VisibleLine(branch)))
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

// defaultBranch guesses the intended branch on a detached HEAD.
func (t *taker) defaultBranch(ctx context.Context) string {
	head, _ := t.Git.Line(ctx, gitx.InRepo(t.common, "symbolic-ref", "--quiet", "refs/remotes/origin/HEAD"))
	for _, name := range []string{strings.TrimPrefix(head, "refs/remotes/origin/"), "main", "master"} {
		if name == "" {
			continue
		}
		if _, ok, _ := t.Git.BranchTip(ctx, t.common, name); ok {
			return name
		}
	}
	return "main"
}
