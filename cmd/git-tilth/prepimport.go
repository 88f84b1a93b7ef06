package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/seed"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
)

// importTasks reads existing tasks and skips those that the base has. It checks them by a bundle's rules, except the
// rules that need the worktree.
func (w *repoContext) importTasks(r *prepRequest) (err error) {
	from := r.from
	switch {
	case r.foreign:
		if r.imported, err = w.importForeign(r); err != nil {
			return err
		}
	case r.sentence:
		r.imported = seed.Sentence(from)
	default:
		if from != "-" {
			from = w.p.inDir(from)
		}
		if r.imported, err = await(w.p.ctx, func() (*seed.Imported, error) {
			return seed.Import(from, w.p.stdin, w.Config.Bool("tilth.optional"))
		}); err != nil {
			return err
		}
	}
	if !r.all {
		done, err := held.DoneIn(w.p.ctx, w.Git, w.Loc.CommonDir, r.baseSHA, r.imported.Tasks, w.tasksOfSession)
		if err != nil {
			return fail("", err)
		}
		r.imported.LeaveOut(done)
		r.committed = len(r.imported.Tasks) == 0 && len(done) > 0
		if err := w.paidFor(r.from, r.imported.Tasks); err != nil && !r.force { // --force discards that session
			return err
		}
	}
	if len(r.imported.Tasks) == 0 {
		return nil
	}
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

// tasksOfSession returns the tasks of a session by its id, or none for an unknown session.
func (w *repoContext) tasksOfSession(id string) []session.Task {
	s, err := w.Store.Find(id)
	if err != nil {
		return nil
	}
	tasks, _ := s.Tasks()
	return tasks
}

// paidFor refuses tasks that are done in a session of this repository and not yet taken, merged or pushed.
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
				return d.Status == session.TaskDone && held.SameTask(d, t)
			}) {
				ids = append(ids, t.ID)
			}
		}
		if len(ids) == 0 {
			continue
		}
		// A new clone at the path of a deleted one finds its sessions, but has none of their branches.
		if _, there, err := w.Git.BranchTip(w.p.ctx, w.Loc.CommonDir, o.Branch); there || err != nil {
			return refuse("git tilth take "+o.ID,
				"%s of %s: done by session %s, and not taken yet; --again redoes them", strings.Join(ids, ", "),
				text.Clip(text.OneLine(from), 200), o.ID)
		}
	}
	return nil
}

// nothingLeft reports whether all tasks of the list are done, and prints a message if they are.
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
	} else {
		fmt.Fprintf(out, "to redo a task, mark it as open in the list\n")
	}
	return true
}

// describeImport prints the number of imported tasks and everything that was left out. With each, it also prints every
// task as its worker would see it.
func describeImport(out io.Writer, im *seed.Imported, each bool) {
	fmt.Fprintln(out, im.Counts())
	for _, t := range im.Tasks {
		if t.Source != "" { // written by others
			fmt.Fprintln(out, shownForeign(t))
		}
	}
	for _, line := range im.Dropped {
		fmt.Fprintf(out, "left out: %s\n", text.VisibleLine(line))
	}
	if !each {
		return
	}
	for _, t := range im.Tasks {
		fmt.Fprintf(out, "\n  %s  %s\n", t.ID, text.VisibleLine(strings.TrimSpace(t.Title+"  "+t.SourceID())))
		for l := range strings.Lines(t.Description) {
			fmt.Fprintf(out, "         %s\n", text.VisibleLine(strings.TrimRight(l, "\n")))
		}
		for _, c := range t.AcceptanceCriteria {
			fmt.Fprintf(out, "         [ ] %s\n", text.VisibleLine(c))
		}
		if len(t.Needs) > 0 {
			fmt.Fprintf(out, "         needs %s\n", strings.Join(t.Needs, ", "))
		}
	}
	for _, n := range im.Meta.ScopeNotes {
		head, rest, _ := strings.Cut(n, "\n")
		if rest != "" {
			head += fmt.Sprintf(" (and %s)", text.Plural(1+strings.Count(rest, "\n"), "line"))
		}
		fmt.Fprintf(out, "\n  context  %s\n", text.VisibleLine(head))
	}
}
