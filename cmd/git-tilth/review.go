package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/lifecycle"
	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
	"github.com/git-tilth/git-tilth/internal/view"
)

func (p *process) reviewCommand() *cli.Command {
	return &cli.Command{
		Name:      "review",
		Usage:     "one screen: what is done, what failed and why, the cost, what is risky, what to run next",
		ArgsUsage: "[<task>] [<session>]",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "json", Usage: "print a JSON object, of a task with that task alone in its list"},
			&cli.BoolFlag{Name: "md", Usage: "print Markdown, for a pull request"},
		},
		Action: p.onSession(func(ctx *cli.Context, w *repoContext, s *session.Session) error {
			r, task := w.review(s), strings.Join(tasksOf(ctx), "")
			if err := p.ctx.Err(); err != nil {
				return err // a signal kept some of it from being read
			}
			if task != "" {
				r.Commands = taskCommands(r, r.Task(task))
				r.Next = r.Commands[0].Line
			}
			return r.Write(p.stdout, p.terminal(ctx.Bool("json")), task, ctx.Bool("md"))
		}),
	}
}

func (p *process) diffCommand() *cli.Command {
	return &cli.Command{
		Name:      "diff",
		Usage:     "a task's change, or the session's, with your own pager and diff settings",
		ArgsUsage: "[<task>] [<session>]",
		Action: p.onSession(func(ctx *cli.Context, w *repoContext, s *session.Session) error {
			return w.diff(s, strings.Join(tasksOf(ctx), ""))
		}),
	}
}

// review gathers a session's review. What git cannot tell is left out of it.
func (w *repoContext) review(s *session.Session) *view.Review {
	d := w.detail(s)
	r := view.NewReview(s, d)
	common, err := commonOf(s)
	if err != nil {
		r.Next = "git tilth show " + s.ID
		r.Commands = append(r.Commands, view.Command{Line: r.Next, Why: "says what is wrong: " + err.Error()})
		return r
	}
	_, there, err := w.git.BranchTip(w.p.ctx, common, s.Branch())
	r.Gone = err == nil && !there
	for i := range r.Tasks {
		t := &r.Tasks[i]
		if t.Commit != "" {
			files, _, _, _ := w.git.Changes(w.p.ctx, common, t.Commit+"^", t.Commit, 0)
			t.Changed = changeLines(files)
			for _, f := range files {
				t.Files, t.Insertions, t.Deletions = t.Files+1, t.Insertions+f.Added, t.Deletions+f.Deleted
			}
		}
		if t.Status != session.TaskDone {
			t.Aside = w.aside(s, common, t.ID)
		}
	}
	r.Commands = w.nextCommands(r, d)
	r.Next = append(r.Commands, view.Command{})[0].Line
	return r
}

func changeLines(files []gitx.FileChange) (lines []string) {
	for _, f := range files {
		lines = append(lines, fmt.Sprintf("%s %s +%d -%d", f.Status, f.Path, f.Added, f.Deleted))
	}
	return lines
}

// aside is what was set aside of a task's work, nil for nothing.
func (w *repoContext) aside(s *session.Session, common, task string) *view.Aside {
	path := lifecycle.AsideOf(s, task)
	if path == "" {
		return nil
	}
	a := &view.Aside{Bundle: strings.TrimPrefix(path, s.Path()+"/"), Files: []string{}}
	dir, sha, remove, err := lifecycle.OpenBundle(w.p.ctx, w.git, common, path, task)
	if err != nil {
		a.Files = append(a.Files, "cannot be read: "+err.Error())
		return a
	}
	defer remove()
	files, _, _, err := w.git.Changes(w.p.ctx, dir, sha+"^", sha, 0)
	if err == nil {
		a.Files = append(a.Files, changeLines(files)...)
	}
	return a
}

// nextCommands is what to run next, the first thing first.
func (w *repoContext) nextCommands(r *view.Review, d view.Detail) (list []view.Command) {
	add := func(line, why string) { list = append(list, view.Command{Line: line, Why: why}) }
	tasks := d.Tasks
	switch {
	case d.Busy != nil:
		add("git tilth log -f "+r.SessionID, "follows it")
	case r.Gone:
		add("git tilth log "+r.SessionID, "the record; the branch is gone")
		add("git tilth reset "+r.SessionID, "removes it too")
		return list
	case d.Status == session.Prepared && tasks.Pending > 0:
		add("git tilth run", "begins it")
	case tasks.Failed == 0 && tasks.Pending > 0 && tasks.Pending == tasks.Waiting:
		add("git tilth plan "+r.SessionID, "or git tilth retry what is skipped")
	case tasks.Failed+tasks.Pending > 0:
		add(w.resumeOf(d.Overview), "goes on with what is not done")
	}
	if tasks.Done > 0 {
		add("git tilth diff "+r.SessionID, "shows the change")
		add("git tilth take "+r.SessionID, "takes what is done")
	}
	if len(list) == 0 {
		add("git tilth show "+r.SessionID, "says what there is of it")
	}
	return list
}

// sayChanged ends a run's lines with what is on the session's branch by now.
func (w *repoContext) sayChanged(h *lifecycle.Handle) {
	ctx := context.WithoutCancel(w.p.ctx) // after an interrupt too
	begin, err := record.ReadBeginning(h.S.Path(session.RecordFile))
	if err != nil || begin.Base == "" {
		return
	}
	tip, _, err := w.git.BranchTip(ctx, h.Common, h.S.Branch())
	if err != nil || tip == "" {
		return
	}
	files, _, _, err := w.git.Changes(ctx, h.Common, begin.Base, tip, 0)
	if err != nil || len(files) == 0 {
		return
	}
	added, deleted := 0, 0
	for _, f := range files {
		added, deleted = added+f.Added, deleted+f.Deleted
	}
	w.p.printf("changed %s, +%d -%d: git tilth review %s\n", text.Plural(len(files), "file"), added, deleted, h.S.ID)
}

// taskCommands is what to run next about one task.
func taskCommands(r *view.Review, t *view.ReviewTask) (list []view.Command) {
	id := r.SessionID
	add := func(verb, why string) {
		list = append(list, view.Command{Line: "git tilth " + verb + " " + t.ID + " " + id, Why: why})
	}
	if t.Commit != "" || t.Aside != nil || t.Iterations > 0 {
		add("diff", "shows its change")
	}
	switch {
	case t.Status == session.TaskDone && !r.Gone:
		add("take", "takes it")
	case t.Status == session.TaskFailed && !r.Gone:
		add("retry", "tries it again in the next resume; -m NOTE tells it something")
	default:
		list = append(list, view.Command{Line: "git tilth review " + id, Why: "the whole session"})
	}
	return list
}

// diff shows a change with the user's own git: `git diff <parent> <commit>` for a task, `git diff <base> <branch>` for
// a session. Of a task that is not done it is the work that was set aside, or what the worktree has beyond the branch.
func (w *repoContext) diff(s *session.Session, task string) error {
	r := w.review(s)
	common, err := commonOf(s)
	if err != nil {
		return refuse("git tilth show "+s.ID, "%s", err)
	}
	var wt gitx.Worktree
	var revs []string
	objects, t := "", r.Task(task)
	switch {
	case t == nil && r.Base == "":
		return refuse("git log -p "+workOf(s), "the record of session %s does not say where it begins", s.ID)
	case t == nil && r.Gone:
		return refuse("git tilth review "+s.ID, "branch %s is gone", s.Branch())
	case t == nil:
		revs = []string{r.Base, "refs/heads/" + r.Branch}
	case t.Commit != "":
		revs = []string{t.Commit + "^", t.Commit}
	case t.Aside != nil:
		dir, sha, remove, err := lifecycle.OpenBundle(w.p.ctx, w.git, common, lifecycle.AsideOf(s, task), task)
		if err != nil {
			return fail("", err)
		}
		defer remove()
		revs, objects = []string{sha + "^", sha}, filepath.Join(dir, "objects")
	case t.Iterations > 0:
		if wt, err = w.git.Worktree(w.p.ctx, common, r.Worktree, s.Branch()); err != nil {
			return refuse("git tilth show "+s.ID, "%s", err)
		}
		revs = []string{"HEAD"}
	default:
		return refuse("git tilth review "+task+" "+s.ID, "%s has no change: %s", task, t.Reason)
	}
	err = w.userGit("", common, wt, objects, append(append([]string{"diff", "--end-of-options"}, revs...), "--")...)
	exit, ended := errors.AsType[*exec.ExitError](err)
	if ended && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGPIPE {
		return syscall.EPIPE // whoever read the change has seen enough
	}
	return err
}

// userGit runs a git command of the user's own on their terminal. What it says of a failure stands there already.
func (w *repoContext) userGit(dir, common string, wt gitx.Worktree, objects string, args ...string) error {
	w.p.editing.Store(true)
	defer w.p.editing.Store(false)
	err := proc.Attach(dir, append([]string{"git"}, args...), w.git.ForUser(common, wt, objects), w.p.stdin,
		w.p.stdout.file, w.p.stderr)
	if errors.As(err, new(*exec.ExitError)) {
		return &exitError{code: exitFailed, err: err}
	}
	return err
}
