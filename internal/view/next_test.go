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
	failed := []session.Task{{ID: "T-001", Status: session.TaskFailed}}
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
		tasks []session.Task
		state *record.State
		want  []string
	}{
		{"pending", overview, nil, nil, []string{resume, take, "git tilth diff S"}},
		{"all of it taken", taken, nil, nil, []string{resume, "git tilth diff S"}},
		{"prepared", prepared, nil, nil, []string{"git tilth run"}},
		{"fork", fork, nil, nil, []string{resume}},
		{"reviewer failed", open, nil, stopped, reviewers},
		{"reviewer failed, kept going", open, failed, reviewer, reviewers},
	} {
		var lines []string
		list, _ := Next(c.of, c.tasks, c.state, resume)
		for _, command := range list {
			lines = append(lines, command.Line)
		}
		if !slices.Equal(lines, c.want) {
			t.Errorf("%s: %q, want %q", c.name, lines, c.want)
		}
	}
}
