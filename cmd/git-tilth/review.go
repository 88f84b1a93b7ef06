package main

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/sandbox"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/take"
	"github.com/git-tilth/git-tilth/internal/text"
	"github.com/git-tilth/git-tilth/internal/view"
)

func (p *process) reviewCommand() *cli.Command {
	return p.declare(traits{wish: "review", looks: true}, &cli.Command{
		Name:      "review",
		Usage:     "show the result in one screen, with the next step",
		ArgsUsage: "[<task>] [<session>]",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "json", Usage: "print a JSON object"},
			&cli.BoolFlag{Name: "md", Usage: "print Markdown for a pull request"},
		},
		Action: p.onSession(func(ctx *cli.Context, w *repoContext, s *session.Session) error {
			if ctx.Bool("json") && ctx.Bool("md") {
				return refuse("git tilth review -h", "--json and --md cannot be combined")
			}
			r, task := w.report(s), strings.Join(w.tasks, "")
			if err := p.ctx.Err(); err != nil {
				return err // a signal interrupted the reading
			}
			if task != "" {
				r.Commands = view.TaskCommands(r, r.Task(task))
				r.Next = r.Commands[0].Line
			}
			return r.Write(p.stdout, p.terminal(ctx.Bool("json")), task, ctx.Bool("md"))
		}),
	})
}

// diffName is the command that passes unknown flags to git diff.
const diffName = "diff"

func (p *process) diffCommand() *cli.Command {
	return p.declare(traits{wish: "review", looks: true}, &cli.Command{
		Name:        diffName,
		Usage:       "show a task's or the session's change in your pager",
		ArgsUsage:   "[<task>] [<session>]",
		Description: "Other options, and arguments after --, go to git diff.",
		Action: p.onSession(func(ctx *cli.Context, w *repoContext, s *session.Session) error {
			return w.diff(s, strings.Join(w.tasks, ""))
		}),
	})
}

// report collects the report on a session. It leaves out parts that git cannot read.
func (w *repoContext) report(s *session.Session) *view.Report { return w.reportOf(w.overview(s), s) }

func (w *repoContext) reportOf(o session.Overview, s *session.Session) *view.Report {
	r := view.NewReport(o, s)
	if check, err := s.Checkpoint(); err == nil {
		r.Worktree.Path = held.WorkspaceOf(s, check)
	}
	common, err := commonOf(s)
	if err != nil {
		r.Next = "git tilth show " + s.ID
		r.Commands = append(r.Commands, view.Command{Line: r.Next, Why: "shows the problem: " + err.Error()})
		return r
	}
	tip, there, err := w.Git.BranchTip(w.p.ctx, common, s.Branch())
	if there {
		w.onBranch(r, common, tip)
	}
	r.Gone = err == nil && !there
	for _, task := range append(held.Lanes(s), "") {
		path := r.Worktree.Path
		if task != "" {
			path = held.LanePath(s, task)
		}
		edited, _ := w.Git.EditedModules(w.p.ctx, path)
		r.Edited = append(r.Edited, edited...)
	}
	slices.Sort(r.Edited)
	r.Edited = slices.Compact(r.Edited)
	taken := take.Commits(w.p.ctx, w.Git, common, s)
	w.fillChanges(r.Tasks, s, common, taken)
	st := r.Summary.State
	r.Cleansed, r.NothingToTake = r.Gone, nothingToTake(st, taken)
	if st != nil && len(st.Edited) > 0 {
		r.Notes = append(r.Notes, "edited by you between runs: "+text.VisibleLine(strings.Join(st.Edited, ", ")))
	}
	if there && !r.NothingToTake {
		r.Notes = append(r.Notes, w.baseNote(common, s)...)
	}
	r.Suggest(w.resumeOf(r.Overview))
	if r.Gone && st != nil && st.Seed != nil {
		last := st.Seed.SHA
		for _, t := range r.Tasks {
			last = cmp.Or(t.Commit, last)
		}
		if on := held.Renamed(w.p.ctx, w.Git, common, s, r.Worktree.Path, last); on != "" {
			r.Next = held.RenameBack(common, on, s)
			r.Commands = []view.Command{{Line: r.Next, Why: "its branch was renamed to " + on}}
		}
	}
	return r
}

// fillChanges adds the facts that git knows about each task's change; taken has the branch of each taken commit.
func (w *repoContext) fillChanges(tasks []view.ReportTask, s *session.Session, common string, taken map[string]string) {
	for i := range tasks {
		t := &tasks[i]
		if t.Commit != "" {
			files, _, _, _ := w.Git.Changes(w.p.ctx, common, t.Commit+"^", t.Commit, 0)
			t.Changed, t.Taken = view.ChangeLines(files), taken[t.Commit]
			t.TestsChanged = view.TestsChanged(t.TestsChanged, files)
			t.Strayed = view.Strayed(t.Touches, files)
			for _, f := range files {
				t.Files, t.Insertions, t.Deletions = t.Files+1, t.Insertions+f.Added, t.Deletions+f.Deleted
			}
		}
		if t.Status != session.TaskDone {
			t.Aside = w.aside(s, t.ID)
		}
	}
}

// baseNote returns a note if the checkout's branch no longer has the session's base.
func (w *repoContext) baseNote(common string, s *session.Session) []string {
	here, _ := w.Git.Line(w.p.ctx, w.Git.In(w.Loc.Source, "rev-parse", "--verify", "--quiet", "HEAD"))
	base := take.BaseGone(w.p.ctx, w.Git, common, s, here)
	if base == "" {
		return nil
	}
	return []string{"base " + text.Head(base, 10) + " is no longer in your branch: take picks the commits"}
}

// nothingToTake reports whether the commits of all finished tasks were taken.
func nothingToTake(st *record.State, taken map[string]string) bool {
	if st == nil || len(taken) == 0 {
		return false
	}
	for _, t := range st.Tasks {
		if t.Status == session.TaskDone && t.Commit != "" && taken[t.Commit] == "" {
			return false
		}
	}
	return true
}

// onBranch adds to the report each task's commit on the branch at tip, if the branch has the session's seed.
func (w *repoContext) onBranch(r *view.Report, common, tip string) {
	if r.Summary.State == nil || r.Summary.State.Seed == nil {
		return
	}
	since, seed, err := held.CommitsSince(w.p.ctx, w.Git, common, tip, r.Summary.State.Seed.SHA)
	if err == nil && seed.SHA != "" {
		r.OnBranch(commitsOfTasks(since, r.Summary))
	}
}

// aside returns the stash of a task, or nil.
func (w *repoContext) aside(s *session.Session, task string) *view.Aside {
	work := held.StashOf(s, task)
	if work == nil {
		return nil
	}
	a := &view.Aside{Ref: work.Ref, Files: []string{}}
	files, _, _, err := w.Git.Changes(w.p.ctx, work.Dir, work.SHA+"^", work.SHA, 0)
	if err != nil {
		a.Files = append(a.Files, "cannot be read: "+err.Error())
	} else {
		a.Files = append(a.Files, view.ChangeLines(files)...)
	}
	return a
}

// sayChanged prints the diffstat of the session's branch at the end of a run.
func (w *repoContext) sayChanged(h *held.Handle) {
	ctx := context.WithoutCancel(w.p.ctx) // also after an interrupt
	begin, err := h.S.State()
	if err != nil || begin.Base == "" {
		return
	}
	tip, _, err := w.Git.BranchTip(ctx, h.Common, h.S.Branch())
	if err != nil || tip == "" {
		return
	}
	files, _, _, err := w.Git.Changes(ctx, h.Common, begin.Base, tip, 0)
	if err != nil || len(files) == 0 {
		return
	}
	added, deleted := 0, 0
	for _, f := range files {
		added, deleted = added+f.Added, deleted+f.Deleted
	}
	w.p.printf("changed %s, +%d -%d: git tilth review %s\n", text.Plural(len(files), "file"), added, deleted, h.S.ID)
}

// diff shows a change with the user's git: `git diff <parent> <commit>` for a task, `git diff <base> <branch>` for a
// session. For a task that is not done it shows the stashed work, or the uncommitted change of its worktree with new
// files.
func (w *repoContext) diff(s *session.Session, task string) error {
	r := w.report(s)
	common, err := commonOf(s)
	if err != nil {
		return refuse("git tilth show "+s.ID, "%s", err)
	}
	var revs []string
	objects, t := "", r.Task(task)
	switch {
	case t == nil && r.Base == "":
		return refuse("git log -p "+workOf(s), "the record of session %s has no base commit", s.ID)
	case t == nil && r.Gone:
		return refuse("git tilth review "+s.ID, "branch %s is gone", s.Branch())
	case t == nil:
		revs = []string{r.Base, "refs/heads/" + r.Branch}
	case t.Commit != "":
		revs = []string{t.Commit + "^", t.Commit}
	case t.Aside != nil:
		work := held.StashOf(s, task)
		if work == nil {
			return fail("git tilth review "+task+" "+s.ID, errors.New("its stashed work was restored in the meantime"))
		}
		revs, objects = []string{work.SHA + "^", work.SHA}, filepath.Join(work.Dir, "objects")
	case t.Iterations > 0:
		path, branch := r.Worktree.Path, s.Branch()
		if held.HasLane(s, task) {
			path, branch = held.LanePath(s, task), ""
		}
		wt, err := w.Git.Worktree(w.p.ctx, common, path, branch)
		if err != nil {
			return refuse("git tilth show "+s.ID, "%s", err)
		}
		dir, remove, err := proc.TempDir()
		if err != nil {
			return fail("", err)
		}
		defer remove()
		head, err := w.Git.RevParse(w.p.ctx, wt.AdminDir, "HEAD")
		tree := ""
		if err = cmp.Or(err, gitx.Borrow(common, dir)); err == nil {
			tree, err = w.Git.PreviewTree(w.p.ctx, wt, head, dir)
		}
		if err != nil {
			return fail("git tilth show "+s.ID, err)
		}
		revs, objects = []string{head, tree}, filepath.Join(dir, "objects")
	default:
		return refuse("git tilth review "+task+" "+s.ID, "%s has no change: %s", task, t.Reason)
	}
	env, box, remove, err := w.Git.ForDiff(w.p.ctx, common, objects)
	if err != nil {
		return fail("", err)
	}
	defer remove()
	err = w.userGit("", env, box, slices.Concat([]string{"diff"}, w.p.gitFlags, []string{"--end-of-options"},
		revs, []string{"--"}, w.pathsHere(w.p.gitPaths))...)
	switch code, by, _ := proc.HasFailed(err); {
	case by == syscall.SIGPIPE:
		return syscall.EPIPE // the reader closed the pipe
	case code == 1:
		return &exitError{code: exitNo, err: err} // --exit-code: there is a change
	case code == 129:
		return &exitError{code: exitRefused, err: err} // git does not know a flag
	}
	return err
}

// pathsHere makes paths relative to the top of the checkout, because git compares the commits outside of the checkout.
func (w *repoContext) pathsHere(paths []string) (list []string) {
	real, err := filepath.EvalSymlinks(w.p.dir)
	rel, relErr := filepath.Rel(w.Loc.TopLevel, real)
	for _, path := range paths {
		if err == nil && relErr == nil && filepath.IsLocal(rel) && !strings.HasPrefix(path, ":") {
			path = filepath.Join(rel, path)
		}
		list = append(list, path)
	}
	return list
}

// userGit runs a git command for the user on their terminal. git prints its own errors.
func (w *repoContext) userGit(dir string, env []string, box *sandbox.Box, args ...string) error {
	w.p.editing.Store(true)
	defer w.p.editing.Store(false)
	err := gitx.Attach(dir, env, box, args, w.p.stdin, w.p.stdout.file, w.p.stderr)
	if _, _, ran := proc.HasFailed(err); ran {
		return &exitError{code: exitFailed, err: err}
	}
	return err
}
