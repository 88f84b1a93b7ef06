package view

import (
	"strings"
	"testing"

	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
)

// Each task lists its checks. A suite that fails on the base has never passed.
func TestChecksOfATask(t *testing.T) {
	pytest := func(passed, failed int) record.ValidatorResult {
		return record.ValidatorResult{Name: "pytest", Passed: failed == 0, Known: failed > 0,
			Tests: &record.Tests{Ran: passed + failed, Passed: passed, Failed: failed}}
	}
	ruff := record.ValidatorResult{Name: "ruff", Passed: true}
	skipped := func(name, why string) record.ValidatorResult {
		return record.ValidatorResult{Name: name, Passed: true, Skipped: true, Output: &why}
	}
	mypy, old := skipped("mypy", "it is not installed"), skipped("mypy", "mypy is not installed") // of a record before
	red := ruff
	red.Passed, red.Known = false, true
	for _, c := range []struct {
		run       record.ValidatorRun
		want      string
		unchecked bool
	}{
		{record.ValidatorRun{Results: []record.ValidatorResult{pytest(214, 0), ruff}},
			"checked by pytest 214 passed, ruff", false},
		{record.ValidatorRun{Results: []record.ValidatorResult{pytest(5, 2), ruff}},
			"checked by pytest 5 passed, 2 known failures, ruff", false},
		{record.ValidatorRun{Results: []record.ValidatorResult{red}}, "checked by ruff 1 known failure", false},
		{record.ValidatorRun{Results: []record.ValidatorResult{ruff, mypy}},
			"checked by ruff; NOT run: mypy (not installed)", false},
		{record.ValidatorRun{Results: []record.ValidatorResult{old, pytest(0, 0)}},
			"NOT checked: no validator ran; NOT run: mypy (not installed), pytest (no tests)", true},
		{record.ValidatorRun{}, "NOT checked: no validators", true},
		{record.ValidatorRun{Note: "NOT checked: no validators (git config)"},
			"NOT checked: no validators (git config)", true},
		{record.ValidatorRun{Results: []record.ValidatorResult{ruff}, Flaky: []string{"test_a"},
			PassesOnBase: []string{"t001"}},
			"checked by ruff; its test passes before any work: t001; flaky: test_a", false},
	} {
		task := ReportTask{Status: session.TaskDone}
		task.seeChecks(&c.run)
		if got := task.checked(true); got != c.want || task.Unchecked != c.unchecked {
			t.Errorf("%q, %v; want %q", got, task.Unchecked, c.want)
		}
	}
}

// The reviewer is named in words, and distinguished from the worker by program and model.
func TestReviewerOfATask(t *testing.T) {
	for _, c := range []struct{ worker, evaluator, model, want string }{
		{"claude", "claude", "", "reviewer: claude, also the worker: All of it holds."},
		{"claude", "claude", "opus", "reviewer: claude opus: All of it holds."},
		{"claude", "claude", "claude-opus-4", "reviewer: claude claude-opus-4: All of it holds."},
		{"codex", "claude", "", "reviewer: claude: All of it holds."},
	} {
		task := ReportTask{Status: session.TaskDone, Verdict: "accept", Acceptance: "All of it holds."}
		task.agents = &record.Agents{WorkerAgent: c.worker, EvaluatorAgent: c.evaluator,
			WorkerModel: &c.worker, EvaluatorModel: &c.model}
		task.reviewedBy()
		if got := task.checked(true); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// Many tasks with the same checks share a line, and the head counts the unchecked ones.
func TestReportCountsUncheckedTasks(t *testing.T) {
	r := night()
	r.Tasks[0].Unchecked, r.Tasks[0].Checks = true, []string{notChecked + "no validators"}
	r.Tasks[1].Checks = []string{"checked by pytest 3 passed"}
	r.Overview.Tasks = session.TaskCounts{Total: 2, Done: 2}
	for len(r.Tasks) < 12 {
		r.Tasks = append(r.Tasks, r.Tasks[1])
		r.Tasks[len(r.Tasks)-1].ID = "T-0" + string(rune('a'+len(r.Tasks)))
	}
	screen := strings.Join(screenOf(t, r), "\n")
	for _, says := range []string{"\n1 task NOT checked: T-001; no validators\n", "T-001  NOT checked: no validators\n",
		"T-002 to T-0m  checked by pytest 3 passed\n"} {
		if !strings.Contains(screen, says) {
			t.Errorf("not there: %s\n%s", says, screen)
		}
	}
}
