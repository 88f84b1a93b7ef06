package view

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
	"github.com/git-tilth/git-tilth/internal/view/viewtest"
)

func overviews() []session.Overview {
	return []session.Overview{
		{ID: "20260612-080000-aaaaaa", Status: session.Running,
			Busy: &session.BusyError{PID: 12, Host: "h", Since: "2026-06-12T08:00:00Z"}, Label: "Running now",
			Tasks: session.TaskCounts{Total: 3, Done: 1, Pending: 2}, TokensUsed: 12_345, Cost: 0.42,
			Source: "/home/ada/src/orchard"},
		{ID: "20260611-220410-bbbbbb", Status: session.Running, LastStop: "wall_clock",
			Tasks: session.TaskCounts{Total: 2, Done: 1, Pending: 1}, TokensUsed: 2_000_000, Label: "Stopped"},
		{ID: "20260610-000000-cccccc", Status: session.Failed, LastStop: "iter_cap",
			Tasks: session.TaskCounts{Total: 2, Done: 1, Failed: 1}, Label: "Failed \x1b[31m"},
		{ID: "20260609-000000-dddddd", Status: session.Running, Label: "Crashed"},
		{ID: "20260608-000000-eeeeee", Status: session.AllDone, LastStop: "all_done",
			Tasks: session.TaskCounts{Total: 1, Done: 1}, Label: "Done"},
		{ID: "20260607-000000-ffffff", Problems: []string{"checkpoint.json: is missing"}},
	}
}

var noon = time.Date(2026, 6, 12, 12, 0, 0, 0, time.UTC)

func TestList(t *testing.T) {
	var b bytes.Buffer
	if err := List(&b, overviews(), Terminal{TTY: true, Width: 120, Now: noon}, false); err != nil {
		t.Fatal(err)
	}
	want := `SESSION                 STATUS    TASKS         TOKENS   COST          AGE  LAST STOP   LABEL
20260612-080000-aaaaaa  running   1/3            12.3k  $0.42       4h ago              Running now
20260611-220410-bbbbbb  stopped   1/2               2M      -  13h 55m ago  wall_clock  Stopped
20260610-000000-cccccc  failed    1/2 1 failed       0      -   2d 12h ago  iter_cap    Failed ␛[31m
20260609-000000-dddddd  crashed   no seed            0      -   3d 12h ago              Crashed
20260608-000000-eeeeee  all_done  1/1                0      -   4d 12h ago  all_done    Done
20260607-000000-ffffff  damaged   -                  0      -   5d 12h ago              ! checkpoint.json: is missing
`
	if b.String() != want {
		t.Errorf("the list is\n%s\nwant\n%s", b.String(), want)
	}
	b.Reset()
	if err := List(&b, overviews(), Terminal{Now: noon}, false); err != nil {
		t.Fatal(err)
	}
	const first = "20260612-080000-aaaaaa\trunning\t1/3\t12.3k\t$0.42\t4h ago\t\tRunning now\t/home/ada/src/orchard"
	if line, _, _ := strings.Cut(b.String(), "\n"); line != first {
		t.Errorf("in a pipe: %q", line)
	}
}

// The members that scripts rely on always exist.
func TestListJSON(t *testing.T) {
	var b bytes.Buffer
	if err := List(&b, overviews(), Terminal{JSON: true, Now: noon}, false); err != nil {
		t.Fatal(err)
	}
	var rows []map[string]any
	if err := json.Unmarshal(b.Bytes(), &rows); err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		for _, key := range []string{"session_id", "status", "source", "branch", "label", "tasks", "tokens_used",
			"cost", "last_stop", "started_at"} {
			if _, ok := r[key]; !ok {
				t.Errorf("%v lacks %s", r["session_id"], key)
			}
		}
		tasks, _ := r["tasks"].(map[string]any)
		for _, key := range []string{"total", "done", "failed", "pending"} {
			if _, ok := tasks[key].(float64); !ok {
				t.Errorf("%v: tasks lack %s", r["session_id"], key)
			}
		}
	}
	if rows[1]["status"] != "running" || rows[1]["state"] != "running" ||
		rows[0]["holder"].(map[string]any)["pid"] != 12.0 {
		t.Errorf("%v", rows[:2])
	}
	b.Reset()
	if err := List(&b, nil, Terminal{JSON: true}, false); err != nil || b.String() != "[]\n" {
		t.Errorf("no sessions: %q, %v", b.String(), err)
	}
}

func detail(t *testing.T) *Report {
	t.Helper()
	s := story(t)
	o := s.Overview()
	o.ID, o.Source, o.Branch = "20260611-220410-abcdef", "/home/ada/src/orchard", "session/20260611-220410-abcdef"
	o.Busy = nil
	cp, err := s.Checkpoint()
	if err != nil {
		t.Fatal(err)
	}
	r := NewReport(o, s)
	r.Detail = Detail{Usage: cp.Usage,
		Worktree: Worktree{Path: "/w", State: "ok", Head: viewtest.SecondSHA, Commits: 2, Dirty: true},
		Conversations: []Conversation{{Task: "T-003", Agent: "claude", ID: "c-1", Resumable: true, Attempts: 1},
			{Task: "T-004", Agent: "codex", ID: "c-2", Why: "its store has no such conversation"}},
		Resume: "unwinds 1 placeholder and retries T-003",
	}
	return r
}

func TestShow(t *testing.T) {
	// Times are shown as the reader's own.
	t.Setenv("TZ", "UTC")
	time.Local = time.UTC
	var b bytes.Buffer
	if err := detail(t).Show(&b, Terminal{TTY: true, Width: 100, Now: noon}); err != nil {
		t.Fatal(err)
	}
	want := `session    20260611-220410-abcdef
label      Graft schedule: parse, store, list, remind
status     failed (last stop: iter_cap)
why        T-003: weak_test: No test covers a week without anything due. Next: Add one.
source     /home/ada/src/orchard
branch     session/20260611-220410-abcdef at c0ffee0000, 2 after the seed
worktree   /w (uncommitted changes)
started    2026-06-11 22:04:10 (13h 55m ago)
last event 2026-06-12 06:10:27 (5h 49m ago)
evaluator  acme/judge-2
worker     acme/large-4

tasks
TASK   STATUS            ITER  REJECTED  TOKENS   COST  COMMIT      TITLE
T-001  done                 5         1   51.3k  $0.17  c0ffee0000  Parse durations like 3w2d
T-002  done                 6         -   59.3k  $0.28  c0ffee0000  Keep the schedule sorted on disk
T-003  failed: iter_cap    12         3    170k  $0.88  fa11ed0000  List what is due this week
T-004  pending              -         -       0      -              Remind by mail
  T-001, T-002  checked by go vet, go test

usage
ROLE          CALLS  PROMPT  CACHED  ANSWER   COST
worker           21    529k     70%    8.8k  $1.06
evaluator         6   96.6k      0%    3.7k  $0.25
interview         9   61.2k     48%      4k  $0.31
self_improve      2   12.2k      0%     120  $0.03
tokens     581k of 10M (5%)
cached     400k more
cost       $1.64 of $5.00 (32%)

conversations
TASK   AGENT   RESUMABLE  ID
T-003  claude  yes        c-1
T-004  codex   no         c-2
    its store has no such conversation
resume     unwinds 1 placeholder and retries T-003
`
	if b.String() != want {
		t.Errorf("show prints\n%s\nwant\n%s", b.String(), want)
	}
}

func TestShowJSON(t *testing.T) {
	var b bytes.Buffer
	if err := detail(t).Show(&b, Terminal{JSON: true, Now: noon}); err != nil {
		t.Fatal(err)
	}
	var v map[string]any
	if err := json.Unmarshal(b.Bytes(), &v); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"session_id", "status", "tasks", "usage", "plan", "worktree", "conversations",
		"resume", "limits", "models", "last_stop"} {
		if _, ok := v[key]; !ok {
			t.Errorf("lacks %s", key)
		}
	}
	if plan := v["plan"].([]any); len(plan) != 4 || plan[2].(map[string]any)["failure_reason"] != "iter_cap" ||
		plan[0].(map[string]any)["failure_reason"] != nil {
		t.Errorf("the plan is %v", plan)
	}
	b.Reset()
	none := viewtest.New(t, session.Store{Root: t.TempDir()}).S
	err := NewReport(none.Overview(), none).Show(&b, Terminal{JSON: true})
	for _, list := range []string{"conversations", "plan", "points"} {
		if err != nil || !strings.Contains(b.String(), `"`+list+`": []`) {
			t.Errorf("of nothing, without %s: %s, %v", list, b.String(), err)
		}
	}
}

// TestShowConversationsWhole: the reason why a conversation cannot be resumed is complete at any width.
func TestShowConversationsWhole(t *testing.T) {
	d := detail(t)
	lost := &d.Conversations[1]
	lost.ID, lost.LastUsed = "55fcb565-be5c-4938-b9cd-3df7a2abe5b6", "2026-06-12T06:10:27Z"
	lost.Why = "the stored conversation " + lost.ID + " cannot be resumed: codex has no transcript of it"
	for _, width := range []int{20, 80, 120} {
		var b bytes.Buffer
		if err := d.Show(&b, Terminal{TTY: true, Width: width, Now: noon}); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(b.String(), "\n    "+lost.Why+"\n") {
			t.Errorf("in %d columns:\n%s", width, b.String())
		}
	}
}

func TestShowInPipe(t *testing.T) {
	var b bytes.Buffer
	if err := detail(t).Show(&b, Terminal{Now: noon}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"status\tfailed (last stop: iter_cap)\n",
		"T-001\tdone\t5\t1\t51.3k\t$0.17\tc0ffee0000\tParse durations like 3w2d\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("lacks %q:\n%s", want, b.String())
		}
	}
	if strings.Contains(b.String(), "\x1b") {
		t.Error("colours in a pipe")
	}
}

// A failed session is shown with its reason: the last objection.
func TestFailure(t *testing.T) {
	failing := viewtest.P{"passed": false, "results": []viewtest.P{
		{"name": "go vet", "passed": true}, {"name": "npm test", "passed": true, "skipped": true},
		{"name": "go test", "passed": false, "output": "ok a\n--- FAIL: TestX (0.00s)\n    x_test.go:1: \x1b[2Jno\n"},
	}}
	reject := viewtest.P{"verdict": "reject", "rejection_category": "weak_test", "concern": "Proves\nnothing."}
	for name, c := range map[string]struct {
		events func(w *viewtest.Writer)
		want   string
	}{
		"the endpoint": {func(w *viewtest.Writer) {
			w.Event(0, "stop", viewtest.P{"reason": "error", "task_id": "T-001", "detail": "401 no such key"})
		}, "T-001: 401 no such key"},
		"the evaluator": {func(w *viewtest.Writer) {
			w.Event(0, "validator_run", viewtest.Task("T-001", 1, failing))
			w.Event(0, "evaluator_verdict", viewtest.Task("T-001", 2, reject))
			w.Event(0, "stop", viewtest.P{"reason": "iter_cap", "detail": "2"})
		}, "T-001: weak_test: Proves nothing."},
		"a validator": {func(w *viewtest.Writer) {
			w.Event(0, "evaluator_verdict", viewtest.Task("T-001", 1, reject))
			w.Event(0, "validator_run", viewtest.Task("T-001", 2, failing))
			w.Event(0, "stop", viewtest.P{"reason": "iter_cap", "task_id": "T-001", "detail": "2"})
		}, "T-001: go test: TestX: x_test.go:1: \x1b[2Jno"},
		"of another attempt": {func(w *viewtest.Writer) {
			w.Event(0, "evaluator_verdict", viewtest.Task("T-001", 1, reject))
			w.Event(0, "context_reset", viewtest.Task("T-001", 0, nil))
			w.Event(0, "stop", viewtest.P{"reason": "iter_cap", "task_id": "T-001", "detail": "2"})
		}, "T-001: the iteration cap was reached (iter_cap)"},
		"several tasks": {func(w *viewtest.Writer) {
			w.Event(0, "evaluator_verdict", viewtest.Task("T-002", 1, reject))
			w.Event(0, "stop", viewtest.P{"reason": "tasks_failed", "detail": "T-001 failed: x; T-002 failed: y"})
		}, "T-001 failed: x; T-002 failed: y"},
		"several, and one is skipped since": {func(w *viewtest.Writer) {
			w.Event(0, "stop", viewtest.P{"reason": "tasks_failed",
				"detail": "T-001 failed: x; it failed; T-002 failed: y",
				"failed": viewtest.P{"T-001": "failed: x; it failed", "T-002": "failed: y"}})
			w.Event(0, "task_marked", viewtest.P{"task_id": "T-001", "mark": "skipped"})
		}, "T-002 failed: y"},
		"skipped since": {func(w *viewtest.Writer) {
			w.Event(0, "stop", viewtest.P{"reason": "iter_cap", "task_id": "T-001", "detail": "2"})
			w.Event(0, "task_marked", viewtest.P{"task_id": "T-001", "mark": "skipped"})
		}, ""},
		"interrupted": {func(w *viewtest.Writer) { w.Event(0, "stop", viewtest.P{"reason": "interrupted"}) }, ""},
		"going on": {func(w *viewtest.Writer) {
			w.Event(0, "stop", viewtest.P{"reason": "error", "detail": "x"})
			w.Event(0, "session_resume", viewtest.P{})
		}, ""},
	} {
		w := viewtest.New(t, session.Store{Root: t.TempDir()})
		c.events(w)
		w.Flush()
		st, err := w.S.State()
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if f := failureIn(st); f != nil {
			got = f.String()
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		var b bytes.Buffer
		rows := []session.Overview{{ID: "x", Dir: w.S.Dir, Status: session.Failed, Label: "L",
			Summary: &session.Summary{State: st}}}
		List(&b, rows, Terminal{TTY: true, Width: 60, Now: noon}, false)
		want := "    " + text.VisibleLine(c.want)
		if lines := strings.Split(b.String(), "\n"); c.want != "" && (len(lines) != 4 || lines[2] != want) {
			t.Errorf("%s: the list is\n%s", name, b.String())
		}
	}
}

// However narrow the terminal, no line of a table is wider.
func TestNarrowTables(t *testing.T) {
	for _, columns := range []int{40, 60, 76, 80} {
		term := Terminal{TTY: true, Width: columns, Now: noon}
		var list, show bytes.Buffer
		List(&list, overviews(), term, true)
		detail(t).Show(&show, term)
		_, tasks, _ := strings.Cut(show.String(), "\ntasks\n")
		tasks, _, _ = strings.Cut(tasks, "\nresume ")
		for line := range strings.Lines(list.String() + tasks) {
			if w := Width(strings.TrimSuffix(line, "\n")); w > columns {
				t.Errorf("%d columns in %d: %s", w, columns, line)
			}
		}
	}
}

// After a rebase a task has the commit that is on the branch, or none.
func TestShowCommitsOfTheBranch(t *testing.T) {
	d := detail(t)
	d.OnBranch(map[string]string{"T-002": "abcdef0123456789"})
	var b bytes.Buffer
	if err := d.Show(&b, Terminal{Now: noon}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"T-001\tdone, not on the branch\t5\t1\t51.3k\t$0.17\t\t",
		"T-002\tdone\t6\t-\t59.3k\t$0.28\tabcdef0123\t"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("lacks %q:\n%s", want, b.String())
		}
	}
}
