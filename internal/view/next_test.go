package view

import (
	"slices"
	"testing"

	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
)

func TestNext(t *testing.T) {
	const resume, take = "git tilth resume S", "git tilth take S"
	overview := session.Overview{ID: "S", Status: session.Running,
		Tasks: session.TaskCounts{Total: 2, Done: 1, Pending: 1}}
	prepared := session.Overview{ID: "S", Status: session.Prepared, Tasks: session.TaskCounts{Total: 1, Pending: 1}}
	open := session.Overview{ID: "S", Status: session.Running, Tasks: prepared.Tasks}
	failed := []ReportTask{{ID: "T-001", Status: session.TaskFailed}}
	stashed := []ReportTask{{ID: "T-001", Status: session.TaskFailed, Aside: &Aside{}}}
	helped := []ReportTask{{ID: "T-001", Status: session.TaskFailed, help: "git config a b"}}
	const edit = "${EDITOR:-vi} commit-msg"
	hooked := []ReportTask{{ID: "T-001", Status: session.TaskFailed, help: edit}}
	refused := &record.State{Moment: record.Moment{Stopped: &record.Stop{Reason: record.CommitRefused, Hint: edit,
		Scope: record.Scope{TaskID: "T-001"}}}}
	reviewer := &record.State{Moment: record.Moment{
		Stopped: &record.Stop{Reason: record.TasksFailed},
		Tasks: map[string]record.Task{
			"T-001": {Failure: &record.Failure{TaskFailed: record.TaskFailed{Reason: record.ReviewerFailed}}}},
	}}
	stopped := &record.State{Moment: record.Moment{Stopped: &record.Stop{Reason: record.ReviewerFailed}}}
	reviewers := []string{"git tilth resume --evaluator-model MODEL S",
		"git config tilth.evaluator.agent PROGRAM && git tilth resume S", resume}
	fork, taken := prepared, overview
	fork.ForkedFrom, taken.NothingToTake = "other", true
	for _, c := range []struct {
		name  string
		of    session.Overview
		tasks []ReportTask
		state *record.State
		want  []string
	}{
		{"pending", overview, nil, nil, []string{resume, take, "git tilth diff S"}},
		{"all of it taken", taken, nil, nil, []string{resume, "git tilth diff S"}},
		{"prepared", prepared, nil, nil, []string{"git tilth run"}},
		{"fork", fork, nil, nil, []string{resume}},
		{"reviewer failed", open, nil, stopped, reviewers},
		{"failed, nothing changed", open, failed, nil, []string{
			"git tilth retry T-001 S", "git tilth skip T-001 S", resume}},
		{"failed, with a change", open, stashed, nil, []string{"git tilth retry T-001 S", "git tilth diff T-001 S",
			"git tilth skip T-001 S", resume, "git tilth done T-001 S"}},
		{"failed, with a fix", open, helped, nil, []string{"git config a b", "git tilth retry T-001 S",
			"git tilth skip T-001 S", resume}},
		{"failed by a hook", open, hooked, nil, []string{
			"git tilth retry -m 'what to do about it' T-001 S", "git tilth skip T-001 S", edit, resume}},
		{"commit refused", open, nil, refused, []string{
			"git tilth retry -m 'what to do about it' T-001 S && " + resume, edit + " && " + resume}},
		{"reviewer failed, kept going", open, failed, reviewer, reviewers},
	} {
		var lines []string
		c.of.Summary = &session.Summary{State: c.state}
		r := Report{row: row{Overview: c.of}, Tasks: c.tasks}
		r.Suggest(resume)
		for _, command := range r.Commands {
			lines = append(lines, command.Line)
		}
		if !slices.Equal(lines, c.want) {
			t.Errorf("%s: %q, want %q", c.name, lines, c.want)
		}
	}
}
