package view

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
)

// The next command is complete on a terminal of any width.
func TestReviewInANarrowTerminal(t *testing.T) {
	const line = "git tilth resume 20260101-000000-abcdef"
	r := &Report{Commands: []Command{{Line: line, Why: "goes on"}}}
	lines := shown(t, r, Terminal{Width: 40})
	if lines[len(lines)-1] != "next  "+line {
		t.Errorf("%q", lines)
	}
}

// One screen of 80 columns shows the cause and the end of each of many failures.
func TestReviewOfManyFailures(t *testing.T) {
	for _, failed := range []int{1, 4, 6, 11} {
		r := night()
		for i := range failed {
			cause := fmt.Sprintf("acceptance_gap: Export %d writes the header twice when the file is there already, "+
				"so that the second criterion is not met by what was handed in. Next: Look whether it is empty", i)
			r.Tasks = append(r.Tasks, ReportTask{ID: fmt.Sprintf("T-%03d", i+3), Title: "Export reports as CSV",
				Status: session.TaskFailed, Reason: inWords(record.Stuck) + ": " + cause, Cause: cause,
				failure: &failure{Reason: record.Stuck}, Aside: &Aside{}})
		}
		r.Overview.Tasks.Failed = failed
		lines := screenOf(t, r)
		screen := strings.Join(lines, "\n")
		for i := range failed {
			if says := fmt.Sprintf("Export %d writes the header", i); !strings.Contains(screen, says) {
				t.Errorf("%d failed: not there: %s\n%s", failed, says, screen)
			}
		}
		if n := strings.Count(screen, "(stuck)"); n != failed {
			t.Errorf("%d failed, (stuck) %d times:\n%s", failed, n, screen)
		}
	}
}

// Points to check have two lines if there is room.
func TestReviewOfRisks(t *testing.T) {
	r := night()
	const end = "which nobody said and no test looks at"
	r.Tasks[1].Uncertainties = []string{"whether the changelog wants the same line as the README, " + end}
	lines := screenOf(t, r)
	if screen := strings.Join(lines, "\n"); !strings.Contains(strings.Join(strings.Fields(screen), " "), end) {
		t.Errorf("%s", screen)
	}
}

// A usage limit is shown with its end, and an unknown cost is not shown as zero.
func TestReviewOfAUsageLimit(t *testing.T) {
	r := night()
	r.LastStop, r.Reset, r.Cost, r.TokensUsed = record.UsageLimit, "2026-01-02T03:04:05Z", 0, 1000
	screen := strings.Join(screenOf(t, r), "\n")
	for _, says := range []string{"limit was reached (usage_limit), until Jan 2 ", "\ncost not known, 1k tokens"} {
		if !strings.Contains(screen, says) {
			t.Errorf("not there: %s\n%s", says, screen)
		}
	}
}

// night is a session with two tasks that are done.
func night() *Report {
	r := &Report{row: row{State: "failed", Overview: session.Overview{ID: "20260101-000000-abcdef", Label: "A night",
		LastStop: record.TasksFailed, Cost: 1, TokensUsed: 1000}}}
	for _, verb := range []string{"retry T-003", "skip T-003", "resume", "diff", "take"} {
		r.Commands = append(r.Commands, Command{Line: "git tilth " + verb + " " + r.ID, Why: "goes on"})
	}
	for _, id := range []string{"T-001", "T-002"} {
		r.Tasks = append(r.Tasks, ReportTask{ID: id, Title: "Write", Status: session.TaskDone, Files: 1})
	}
	return r
}

// screenOf returns the review at a terminal of 80 columns, which must fit one screen.
func screenOf(t *testing.T, r *Report) []string {
	t.Helper()
	lines := shown(t, r, Terminal{TTY: true, Width: 80})
	if len(lines) >= screenLines { // the prompt has one
		t.Errorf("%d lines:\n%s", len(lines), strings.Join(lines, "\n"))
	}
	for _, l := range lines {
		if Width(l) > 80 {
			t.Errorf("too wide: %s", l)
		}
	}
	return lines
}

func shown(t *testing.T, r *Report, term Terminal) []string {
	t.Helper()
	var out strings.Builder
	if err := r.Write(&out, term, "", false); err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimRight(out.String(), "\n"), "\n")
}

// In a pipe no failure is omitted or shortened, and a changed test comes before a worker's uncertainties.
func TestReviewInAPipe(t *testing.T) {
	r := night()
	for i := range 7 {
		cause := fmt.Sprintf("half_finished: Part %d %s", i, strings.Repeat("is missing ", 12))
		r.Tasks = append(r.Tasks, ReportTask{ID: fmt.Sprintf("T-%03d", i+3), Title: "Export",
			Status: session.TaskFailed, Cause: cause, Reason: inWords(record.Stuck) + ": " + cause,
			failure: &failure{Reason: record.Stuck}})
	}
	for i := range 4 {
		r.Tasks = append(r.Tasks, ReportTask{ID: fmt.Sprintf("T-%03d", i+10), Title: "Write", Status: session.TaskDone,
			Uncertainties: []string{"whether it is right", "whether it is enough"}})
	}
	r.Tasks[11].TestsChanged = []string{"tests/test_add.py (+1 -3: fewer lines)"}
	lines := shown(t, r, Terminal{})
	if len(lines) > screenLines {
		t.Errorf("%d lines", len(lines))
	}
	screen := strings.Join(lines, "\n")
	for _, says := range append([]string{"6 tasks, T-001, T-002, T-010 to T-013  ", ": git tilth review T-012\n" +
		"  T-012  changed the test tests/test_add.py"}, causes(r)...) {
		if !strings.Contains(screen, says) {
			t.Errorf("not there: %s\n%s", says, screen)
		}
	}
}

// causes returns the causes of a review's failures.
func causes(r *Report) (list []string) {
	for _, task := range r.Tasks {
		if task.Cause != "" {
			list = append(list, strings.TrimSpace(task.Cause))
		}
	}
	return list
}

// A worker's last sentence is shown if it is a question.
func TestQuestion(t *testing.T) {
	for said, want := range map[string]string{
		"I looked at it. Should slugs keep accents?":  "Should slugs keep accents?",
		"Two ways:\n- **Which of them do you want?**": "Which of them do you want?",
		"Is it done? It is.":                          "",
		"":                                            "",
	} {
		if got := question(said); got != want {
			t.Errorf("%q: %q, want %q", said, got, want)
		}
	}
}

// The time of waits is that of the run: a kill ends a wait, and lanes wait at the same time.
func TestWaited(t *testing.T) {
	s := &session.Session{ID: "20260611-220410-abcdef", Dir: t.TempDir()}
	var b strings.Builder
	line := func(at, kind, payload string) {
		fmt.Fprintf(&b, `{"ts":"2026-06-11T%s:00.000Z","type":"%s","session_id":"%s","payload":{%s}}`+"\n", at, kind, s.ID, payload)
	}
	wait := func(at, task, reason, until string) {
		line(at, "agent_waits", fmt.Sprintf(`"task_id":"%s","reason":"%s","until":"2026-06-11T%s:00.000Z"`, task, reason,
			until))
	}
	line("08:00", "session_start", `"phase":"run"`)
	wait("08:00", "T-001", record.Outage, "08:10")
	wait("08:01", "T-002", record.Outage, "08:08")
	wait("08:20", "T-001", record.UsageLimit, "13:00")
	wait("08:21", "T-001", record.UsageLimit, "13:00")
	line("12:00", "session_resume", "") // after a kill
	wait("12:00", "T-001", record.UsageLimit, "13:00")
	line("13:30", "stop", `"reason":"all_done"`)
	if err := os.WriteFile(s.Path(session.RecordFile), []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	const want = "waited 10m for an endpoint or agent program, 1h 1m for a usage limit"
	if got := NewReport(s.Overview(), s).waited(); got != want {
		t.Error(got)
	}
}
