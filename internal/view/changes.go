package view

import (
	"fmt"
	"slices"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/pattern"
	"github.com/git-tilth/git-tilth/internal/project"
	"github.com/git-tilth/git-tilth/internal/session"
)

// Strayed returns the changed files outside of a task's touches patterns; none without patterns.
func Strayed(touches []string, files []gitx.FileChange) (outside []string) {
	paths, err := pattern.NewPaths(touches...)
	if len(touches) == 0 || err != nil {
		return nil
	}
	for _, f := range files {
		if !paths.Match(f.Path) {
			outside = append(outside, f.Path)
		}
	}
	return outside
}

// TestsChanged returns the changed tests by the record and by the patch: test files that existed before, with their
// added and deleted lines.
func TestsChanged(named []string, files []gitx.FileChange) (tests []string) {
	tests = []string{}
	for _, f := range files {
		if !slices.Contains(named, f.Path) && (f.Status == "A" || !project.IsTest(f.Path)) {
			continue
		}
		switch {
		case f.Status == "D":
			tests = append(tests, f.Path+" (deleted)")
		case f.Deleted > f.Added:
			tests = append(tests, fmt.Sprintf("%s (+%d -%d: fewer lines)", f.Path, f.Added, f.Deleted))
		default:
			tests = append(tests, fmt.Sprintf("%s (+%d -%d)", f.Path, f.Added, f.Deleted))
		}
	}
	for _, path := range named {
		if !slices.ContainsFunc(files, func(f gitx.FileChange) bool { return f.Path == path }) {
			tests = append(tests, path)
		}
	}
	return tests
}

// ChangeLines returns a line for the change of each file.
func ChangeLines(files []gitx.FileChange) (lines []string) {
	for _, f := range files {
		lines = append(lines, fmt.Sprintf("%s %s +%d -%d", f.Status, f.Path, f.Added, f.Deleted))
	}
	return lines
}

// TaskCommands returns the suggested commands for one task.
func TaskCommands(r *Report, t *ReportTask) (list []Command) {
	id := r.ID
	add := func(verb, why string) {
		list = append(list, Command{Line: "git tilth " + verb + " " + t.ID + " " + id, Why: why})
	}
	switch {
	case r.refused(t):
		return r.Commands
	case t.Status == session.TaskFailed && !r.Gone:
		list = t.afterFailure(id)
		if t.changed() {
			add("done", "commit your own change as the task")
		}
		return list
	case t.changed() || t.Iterations > 0:
		add("diff", "show its change")
	}
	if t.Status == session.TaskDone && !r.Gone && t.Taken == "" && r.Word != "taken" {
		add("take", "take it")
	} else {
		list = append(list, Command{Line: "git tilth review " + id, Why: "show the whole session"})
	}
	return list
}
