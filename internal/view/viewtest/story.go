package viewtest

import (
	"strings"
	"time"

	"github.com/git-tilth/git-tilth/internal/session"
)

// Commits of the story.
const (
	SeedSHA   = "5eed000000000000000000000000000000000001"
	FirstSHA  = "c0ffee00000000000000000000000000000000a1"
	SecondSHA = "c0ffee00000000000000000000000000000000b2"
)

// Story writes an unattended run: a seed, a task accepted after one rejection, a slow task, a stop at the wall clock,
// a resume, a failure at the iteration cap.
func Story(w *Writer) {
	start(w)
	first(w)
	second(w)
	w.Event(2*time.Second, "stop", P{"reason": "wall_clock"})
	w.Event(7*time.Hour, "session_resume", P{"session_id": w.S.ID, "last_stop": "wall_clock", "retried": []string{},
		"pending": []string{"T-003", "T-004"}, "plan": "2 of 4 tasks done; going on with T-003"})
	third(w)
	w.Event(time.Second, "stop", P{"reason": "iter_cap"})
	w.Flush()
	settle(w)
}

// Lanes writes the same tasks in parallel, in one run.
func Lanes(w *Writer) {
	start(w)
	w.sideBySide(first, second, third)
	w.Event(time.Second, "stop", P{"reason": "iter_cap", "task_id": "T-003"})
	w.Flush()
	settle(w)
}

func start(w *Writer) {
	saveFiles(w)
	seed(w)
	w.Event(40*time.Minute, "session_start", P{"phase": "run", "source": "/home/ada/src/orchard",
		"branch": w.S.Branch(), "worker_model": "acme/large-4", "evaluator_model": "acme/judge-2",
		"base_url": "https://models.example/v1", "limits": P{"max_iterations_per_task": 12, "max_tokens": 10000000, "max_wall_clock_minutes": 480, "max_cost": 5}, "task_count": 4})
}

// settle writes the spent tokens into the checkpoint.
func settle(w *Writer) {
	w.t.Helper()
	sum, err := w.S.Summarize()
	if err != nil {
		w.t.Fatal(err)
	}
	cp, err := w.S.Checkpoint()
	if err != nil {
		w.t.Fatal(err)
	}
	cp.Usage, cp.TokensUsed = sum.Usage, sum.Usage.Sum().Total()
	if err := w.S.SaveCheckpoint(cp); err != nil {
		w.t.Fatal(err)
	}
}

func saveFiles(w *Writer) {
	cp := &session.Checkpoint{SessionID: w.S.ID, Source: "/home/ada/src/orchard", Workspace: w.S.Workspace(),
		Branch: w.S.Branch(), Status: session.Failed,
		StartedAt: Start.Add(8 * time.Hour).Format(time.RFC3339), Label: "Graft schedule: parse, store, list, remind"}
	if err := w.S.SaveCheckpoint(cp); err != nil {
		w.t.Fatal(err)
	}
	task := func(id, title, status string, criteria ...string) session.Task {
		return session.Task{ID: id, Title: title, Status: status, AcceptanceCriteria: criteria,
			Description: title +
				".\n\nGrafts are cut in late winter and set in spring; the schedule must survive a restart."}
	}
	if err := w.S.SaveTasks([]session.Task{
		task("T-001", "Parse durations like 3w2d", session.TaskDone, "Parse(\"3w2d\") is 23 days",
			"An empty string is an error that says so"),
		task("T-002", "Keep the schedule sorted on disk", session.TaskDone, "Save keeps the order by date",
			"A crash between two saves loses neither"),
		task("T-003", "List what is due this week", session.TaskFailed, "`due --week` prints one line for each graft",
			"Nothing due prints nothing and exits 0"),
		task("T-004", "Remind by mail", session.TaskPending, "One mail a day at most"),
	}); err != nil {
		w.t.Fatal(err)
	}
	if err := w.S.SaveSeedMeta(&session.SeedMeta{InterviewerModel: "acme/large-4",
		TLDR: "A schedule for grafting fruit trees: durations that people write, a file that survives " +
			"crashes, a list of what is due, and a reminder.",
		OpenQuestions: []string{"Should a graft that was missed be listed as due?"},
		ScopeNotes:    []string{"No calendar export in this round."}}); err != nil {
		w.t.Fatal(err)
	}
}

func seed(w *Writer) {
	w.Event(0, "session_start", P{"phase": "prep-feature", "source": "/home/ada/src/orchard",
		"worktree": w.S.Workspace(), "branch": w.S.Branch(), "interviewer_model": "acme/large-4"})
	for i := range 9 {
		w.Event(50*time.Second, "model_call", P{"phase": "interview", "prompt_tokens": 5200 + i*400, "eval_tokens": 450,
			"cached_tokens": 3300, "cost": 0.034,
			"content": "Should missed grafts stay in the list until someone marks them?"})
	}
	w.Event(30*time.Second, "session_prepared",
		P{"prd_entries": 4, "test_files": []string{"graft/t001_parse_test.go", "graft/t002_store_test.go"},
			"interviewer_model": "acme/large-4", "tokens_used": 65300})
	w.Event(time.Second, "seed_committed", P{"sha": SeedSHA, "branch": w.S.Branch()})
}

// begin is how each attempt at a task begins.
func begin(w *Writer, id string) {
	w.Event(time.Second, "context_reset", Task(id, 0, P{"base": SeedSHA}))
	w.Event(10*time.Millisecond, "memory_load", Task(id, 0, P{"user_prompt_chars": 8123, "channels": P{
		"project_context": P{"present": true, "chars": 3120, "truncated": false, "sha256_8": "9f3a11c2"},
		"progress":        P{"present": true, "chars": 88, "truncated": false, "sha256_8": "00aa11bb"},
		"ledger":          P{"present": false, "chars": 0, "truncated": false, "sha256_8": ""},
	}}))
	w.Event(10*time.Millisecond, "prompt_assembled",
		Task(id, 0, P{"role": "worker", "chars": 8123, "truncated": false, "content": strings.Repeat(
			"You work on one task of a plan, in a git worktree.\n\n## The task\nDo what its criteria ask, nothing "+
				"more.\n\n```go\nfunc Parse(s string) (Duration, error)\n```\n\nRead the code before you change it.\n",
			4)}))
}

func work(w *Writer, id string, iter, prompt int, say, think, cmd, out string) {
	w.Event(35*time.Second, "model_call",
		Task(id, iter, P{"prompt_tokens": prompt, "eval_tokens": 420, "cached_tokens": prompt * 7 / 10,
			"reasoning_tokens": 180, "cost": float64(prompt) * 2e-6,
			"tokens_used_total": prompt * iter, "attempt": 1, "finish_reason": "tool_calls", "content": say,
			"reasoning": think, "health": "ok"}))
	w.Event(200*time.Millisecond, "tool_call", Task(id, iter, P{"tool": "bash", "args": P{"command": cmd}}))
	w.Event(3*time.Second, "tool_result",
		Task(id, iter, P{"tool": "bash", "result_preview": out, "result_chars": len(out)}))
}

func submit(w *Writer, id string, iter int, summary string) {
	w.Event(20*time.Second, "tool_call",
		Task(id, iter, P{"tool": "submit_case", "args": P{"summary": summary, "ac_coverage": []P{
			{"criterion": "Parse(\"3w2d\") is 23 days", "addressed_by": "graft/parse.go",
				"evidence": "t001_parse_test.go passes"}},
			"work_arounds":  []string{},
			"uncertainties": []string{"Negative durations are refused; the plan does not say."}}}))
}

func judge(w *Writer, id string, iter int, ok bool, category, concern, next string) {
	w.Event(5*time.Second, "validator_run",
		Task(id, iter, P{"passed": true, "results": []P{{"name": "go vet", "passed": true, "seconds": 1.4},
			{"name": "go test", "passed": true, "seconds": 3.1}}}))
	w.Event(time.Second, "prompt_assembled",
		Task(id, iter, P{"role": "evaluator", "chars": 9120,
			"content": "Judge the case below against its criteria.\n\nBe strict about tests that prove nothing."}))
	w.Event(18*time.Second, "model_call",
		Task(id, iter, P{"phase": "evaluator", "prompt_tokens": 14200 + 300*iter, "eval_tokens": 610, "cost": 0.041,
			"finish_reason": "tool_calls", "content": "",
			"reasoning": "The diff touches one file. The test asks for the right thing."}))
	p := P{"verdict": "accept", "tree": "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
		"evidence": []string{"go test ./graft passes", "the diff does what the criteria ask"}}
	if !ok {
		p = P{"verdict": "reject", "rejection_category": category, "concern": concern, "next_step": next,
			"tree":     "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
			"evidence": []string{"graft/parse_test.go:14 compares with the function's own result"}}
	}
	w.Event(50*time.Millisecond, "evaluator_verdict", Task(id, iter, p))
	w.Event(5*time.Millisecond, "ledger_appended", Task(id, iter, P{"verdict_summary": "iteration recorded"}))
}

func done(w *Writer, id string, iter int, sha, summary string) {
	w.Event(5*time.Millisecond, "task_done", Task(id, iter, P{"summary": summary}))
	w.Event(80*time.Millisecond, "commit", Task(id, iter, P{"sha": sha}))
	w.Event(9*time.Second, "model_call",
		Task(id, iter, P{"phase": "self_improve", "prompt_tokens": 6100, "eval_tokens": 60, "cost": 0.013,
			"finish_reason": "stop", "content": "{\"propose\": \"no\"}"}))
	w.Event(5*time.Millisecond, "proposed_learnings", Task(id, iter, P{"emitted": false, "reason": "nothing durable"}))
}

func first(w *Writer) {
	const id = "T-001"
	begin(w, id)
	work(w, id, 1, 9100, "I read the package first.",
		"The plan names graft/parse.go. There is no such file yet, so the test cannot compile.",
		"ls graft && sed -n 1,40p graft/doc.go", "doc.go\npackage graft\n")
	work(w, id, 2, 12800,
		"A parser that walks the string once is enough:\n\n```go\nfor len(s) > 0 {\n\tn, unit, rest := "+
			"next(s)\n}\n```\n\nNow the file.",
		"Weeks and days, in this order. A unit that comes twice should be an error.",
		"go test ./graft -run T001",
		"--- FAIL: TestT001Parse (0.00s)\n    t001_parse_test.go:9: got 3, want 23\nFAIL\n")
	w.Event(time.Second, "tool_call", Task(id, 2, P{"tool": "bash", "args": P{"command": "git push --force"}}))
	w.Event(time.Millisecond, "pre_tool_block",
		Task(id, 2, P{"tool": "bash", "reason": "git push --force is not for the worker"}))
	submit(w, id, 3, "Parse reads weeks and days.")
	judge(w, id, 3, false, "weak_test",
		"The new test compares Parse with itself, so it passes for any implementation. It proves nothing about weeks.",
		"Write the expected number of days into the test.")
	work(w, id, 4, 17600, "The reviewer is right: the expected value must be a literal.", "", "go test ./graft",
		"ok  \texample.com/orchard/graft\t0.004s\n")
	submit(w, id, 5, "Parse reads weeks and days; the test has literal values.")
	judge(w, id, 5, true, "", "", "")
	done(w, id, 5, FirstSHA, "Parse reads durations like 3w2d and refuses what is not one.")
}

func second(w *Writer) {
	const id = "T-002"
	begin(w, id)
	for i := 1; i <= 6; i++ {
		work(w, id, i, 9800+i*2600, "Keeping the slice sorted on insert is cheaper than sorting on each save.",
			strings.Repeat("A crash between write and rename must leave the old file. ", 3),
			"go test ./graft -run T002 -count=1", strings.Repeat("ok  \texample.com/orchard/graft\t0.012s\n", 2))
		if i == 3 {
			w.Event(2*time.Second, "validator_run",
				Task(id, i, P{"passed": false, "results": []P{{"name": "go vet", "passed": true, "seconds": 1.2},
					{"name": "go test", "passed": false, "seconds": 2.2,
						"output": "--- FAIL: TestT002Crash\n    store_test.go:40: file is empty after a crash"}}}))
		}
	}
	submit(w, id, 6, "The store keeps its order and is replaced by rename.")
	judge(w, id, 6, true, "", "", "")
	done(w, id, 6, SecondSHA, "The schedule is sorted on disk and survives a crash between saves.")
}

func third(w *Writer) {
	const id = "T-003"
	begin(w, id)
	for i := 1; i <= 12; i++ {
		work(w, id, i, 11200+i*3100, "The week begins on Monday, I take it.", "Time zones again: the test runs in UTC.",
			"go run ./cmd/due --week", "2026-06-15  quince on pear\n")
		switch i {
		case 4:
			submit(w, id, i, "due --week lists what is due.")
			judge(w, id, i, false, "acceptance_gap",
				"With nothing due the command prints a heading and exits 1; the criterion asks for no output and "+
					"exit 0.", "Return before the heading when the list is empty.")
		case 8:
			submit(w, id, i, "due --week lists what is due; empty weeks print nothing.")
			judge(w, id, i, false, "half_finished", "The flag is parsed, but the default still lists a month.",
				"Use the flag where the range is computed.")
		case 10:
			w.Event(time.Second, "empty_model_response", Task(id, i, P{"streak": 1, "finish_reason": "stop"}))
			w.Event(time.Second, "nudge",
				Task(id, i, P{"kind": "no_tool_call", "streak": 1, "content": "Call a tool, or submit your case."}))
		case 12:
			submit(w, id, i, "due --week uses its range.")
			judge(w, id, i, false, "weak_test", "No test covers a week without anything due.", "Add one.")
		}
	}
	w.Event(time.Second, "task_failed", Task(id, 12, P{"reason": "iter_cap"}))
	w.Event(50*time.Millisecond, "commit", Task(id, 12, P{"sha": "fa11ed0000000000000000000000000000000003"}))
}
