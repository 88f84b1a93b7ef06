package main

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/message"
	"github.com/git-tilth/git-tilth/internal/seed"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
)

// importTasks reads existing tasks without those that the base has. It checks them by the rules of a bundle as far as
// possible without the worktree, which will be equal to the base commit.
func (w *repoContext) importTasks(r *prepRequest) (err error) {
	from := r.from
	switch {
	case r.sentence:
		r.imported = seed.Sentence(from)
	default:
		if from != "-" {
			from = w.p.inDir(from)
		}
		if r.imported, err = await(w.p.ctx, func() (*seed.Imported, error) {
			return seed.Import(from, w.p.stdin)
		}); err != nil {
			return err
		}
	}
	if !r.all {
		done, err := message.DoneIn(w.p.ctx, w.Git, w.Loc.CommonDir, r.baseSHA, r.imported.Tasks, w.tasksOfSession)
		if err != nil {
			return fail("", err)
		}
		r.imported.LeaveOut(done)
		r.committed = len(r.imported.Tasks) == 0 && len(done) > 0
		if err := w.paidFor(r.from, r.imported.Tasks); err != nil && !r.force { // which gives up what there is
			return err
		}
	}
	if len(r.imported.Tasks) == 0 {
		return nil
	}
	w.tickIn(from, r.imported)
	b := &r.imported.Bundle
	var files []string
	if len(b.TestFiles) > 0 {
		if files, err = w.Git.List(w.p.ctx, gitx.InRepo(w.Loc.CommonDir, "ls-tree", "-r", "-z", "--name-only",
			"--full-tree", r.baseSHA)); err != nil {
			return fail("", err)
		}
	}
	if vs := seed.Check(b, seed.Rules{Tracked: files}); len(vs) > 0 {
		return refuse("", "the tasks in %s cannot be used:\n%s", r.from, seed.Explain(vs, 20))
	}
	return nil
}

// tasksOfSession are the tasks of a session by its id, none where it is not here.
func (w *repoContext) tasksOfSession(id string) []session.Task {
	s, err := w.Store.Find(id)
	if err != nil {
		return nil
	}
	tasks, _ := s.Tasks()
	return tasks
}

// paidFor refuses tasks that a session of this repository has done and that are nowhere else yet.
func (w *repoContext) paidFor(from string, tasks []session.Task) error {
	if w.Config.Bool("tilth.again") {
		return nil
	}
	all, err := w.overviews(false)
	if err != nil {
		return err
	}
	for _, o := range all {
		if o.Tasks.Done == 0 || o.Taken || o.Cleansed {
			continue
		}
		there := w.tasksOfSession(o.ID)
		var ids []string
		for _, t := range tasks {
			if slices.ContainsFunc(there, func(d session.Task) bool {
				return d.Status == session.TaskDone && message.SameTask(d, t)
			}) {
				ids = append(ids, t.ID)
			}
		}
		if len(ids) == 0 {
			continue
		}
		// A new clone at the path of a deleted one has its sessions, but not their branches.
		if _, there, err := w.Git.BranchTip(w.p.ctx, w.Loc.CommonDir, o.Branch); there || err != nil {
			return refuse("git tilth take "+o.ID,
				"%s of %s: done by session %s, and not taken yet; --again redoes them", strings.Join(ids, ", "),
				text.Clip(text.OneLine(from), 200), o.ID)
		}
	}
	return nil
}

// tickIn stores the list's path if its items are to be ticked and it is in the repository.
func (w *repoContext) tickIn(from string, im *seed.Imported) {
	if !w.Config.Bool("tilth.tick") || !im.Boxes {
		return
	}
	real, err := filepath.EvalSymlinks(from)
	if err != nil {
		return
	}
	if path, err := filepath.Rel(w.Loc.TopLevel, real); err == nil && filepath.IsLocal(path) {
		im.Meta.Checklist = filepath.ToSlash(path)
	}
}

// nothingLeft says that there is nothing to do of the tasks that were given.
func (w *repoContext) nothingLeft(r *prepRequest) bool {
	if r.imported == nil || len(r.imported.Tasks) > 0 {
		return false
	}
	describeImport(w.p.humanOut(r.json), r.imported, true)
	out := w.p.humanOut(r.json)
	fmt.Fprintf(out, "every task of %s is done\n", r.imported.Meta.Source)
	if verb := "prep-feature"; r.committed {
		if r.runs {
			verb = "run"
		}
		fmt.Fprintf(out, "next: git tilth %s --all --from %s redoes them\n", verb, text.ShellQuote(r.from))
	}
	return true
}

// describeImport prints the imported tasks, one by one with each, and everything that was left out.
func describeImport(out io.Writer, im *seed.Imported, each bool) {
	for _, line := range im.Recognised {
		fmt.Fprintf(out, "%s\n", line)
	}
	for _, t := range im.Tasks {
		if !each {
			break
		}
		fmt.Fprintf(out, "  %s  %s\n", t.ID, text.VisibleLine(t.Title))
	}
	for _, line := range im.Dropped {
		fmt.Fprintf(out, "dropped: %s\n", line)
	}
}
