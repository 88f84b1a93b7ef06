package record

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// inMemory returns a record of the given events. Events without a task belong to one task.
func inMemory(t testing.TB, events ...Event) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "events.jsonl")
	at := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	r, err := Open(path, Options{Clock: func() time.Time { at = at.Add(time.Second); return at }})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for _, ev := range events {
		if err := r.Append(ev); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func in(task string) Scope { return Scope{TaskID: task} }

// told has the fields of a State that a test compares.
type told struct {
	Stop, Task, Accepted, Verdict string
	Noted, Unledgered             bool
}

func tell(s State) told {
	a := s.Tasks[s.Head].Attempt
	r := told{Task: s.LastTask, Unledgered: a.Unledgered}
	if s.Stop != nil {
		r.Stop = s.Stop.Reason
	}
	if a.Waits {
		r.Accepted, r.Noted = a.Verdict.TaskID+" "+a.Verdict.Tree, a.Noted
	}
	if a.Verdict != nil && !a.Worked {
		r.Verdict = a.Verdict.TaskID + " " + a.Verdict.Verdict
	}
	return r
}

func TestAttempt(t *testing.T) {
	const one, two = "T-001", "T-002"
	call := func(task string, total int64) Event { return &ModelCall{Scope: in(task), TokensUsedTotal: total} }
	learning := func(total int64) Event {
		return &ModelCall{Scope: Scope{TaskID: one, Phase: "self_improve"}, TokensUsedTotal: total}
	}
	accept := &EvaluatorVerdict{Scope: in(one), Verdict: "accept", Tree: "tree"}
	reject := &EvaluatorVerdict{Scope: in(one), Verdict: "reject", Tree: "tree"}
	begun := []Event{&SeedCommitted{SHA: "seed"}, &SessionStart{Phase: "run"}, &ContextReset{Scope: in(one)},
		call(one, 10)}
	ledger, done, commit := &LedgerAppended{Scope: in(one)}, &TaskDone{Scope: in(one)},
		&Commit{Scope: in(one), SHA: "c1"}
	interrupted, resumed := &Stop{Scope: in(one), Reason: "interrupted"},
		&SessionResume{LastStop: Optional("interrupted")}
	committed := []Event{accept, ledger, done, commit}
	learned := []Event{&PromptAssembled{Scope: in(one), Role: "self_improve"}, learning(15),
		&ProposedLearnings{Scope: in(one)}}
	for name, c := range map[string]struct {
		then []Event
		want told
	}{
		"killed in an iteration": {nil, told{Task: one}},
		"killed behind a verdict": {[]Event{accept},
			told{Task: one, Accepted: "T-001 tree", Verdict: "T-001 accept",
				Unledgered: true}},
		"killed behind the ledger": {[]Event{accept, ledger},
			told{Task: one, Accepted: "T-001 tree", Verdict: "T-001 accept"}},
		"killed behind task_done": {[]Event{accept, ledger, done},
			told{Task: one, Accepted: "T-001 tree", Verdict: "T-001 accept", Noted: true}},
		"killed behind the preflight of a resume": {append(slices.Clone(committed), &Stop{Reason: "token_cap"},
			&SessionResume{LastStop: Optional("token_cap")}, &Preflight{Passed: true}),
			told{Verdict: "T-001 accept"}},
		"killed behind the preflight of a resume of an interrupted iteration": {
			[]Event{interrupted, resumed, &Preflight{Passed: true}},
			told{Task: one}},
		"killed behind the commit": {committed,
			told{Task: one, Verdict: "T-001 accept"}},
		"interrupted before the commit, twice resumed in vain": {
			[]Event{accept, ledger, interrupted, resumed, interrupted, resumed},
			told{Task: one, Accepted: "T-001 tree", Verdict: "T-001 accept"}},
		"interrupted behind a verdict": {[]Event{accept, interrupted, &HookRun{Hook: "post-run"}},
			told{Stop: "interrupted", Task: one, Accepted: "T-001 tree",
				Verdict: "T-001 accept", Unledgered: true}},
		"the claim was lost before the commit": {[]Event{accept, ledger, &Stop{Scope: in(one), Reason: "claim_lost"}},
			told{Stop: "claim_lost", Task: one, Accepted: "T-001 tree",
				Verdict: "T-001 accept"}},
		"the disk was full before the commit": {[]Event{accept, ledger, &Stop{Scope: in(one), Reason: "disk_full"}},
			told{Stop: "disk_full", Task: one, Accepted: "T-001 tree",
				Verdict: "T-001 accept"}},
		"rejected": {[]Event{reject, ledger}, told{Task: one, Verdict: "T-001 reject"}},
		"rejected, and worked on": {[]Event{reject, ledger, call(one, 20), &ToolCall{Scope: in(one)}},
			told{Task: one}},
		"all done": {append(append(committed, learned...), &Stop{Reason: "all_done"}),
			told{Stop: "all_done", Verdict: "T-001 accept"}},
		"all done, asked again": {
			append(committed, &Stop{Reason: "all_done"}, &SessionResume{LastStop: Optional("all_done")}),
			told{Stop: "all_done", Verdict: "T-001 accept"}},
		"failed": {[]Event{&TaskFailed{Scope: in(one)}, &Commit{Scope: in(one), SHA: "p", Placeholder: true},
			&Stop{Scope: in(one), Reason: "iter_cap"}},
			told{Stop: "iter_cap", Task: one}},
		"failed, and a resume was killed": {
			[]Event{&Stop{Scope: in(one), Reason: "iter_cap"}, &SessionResume{LastStop: Optional("iter_cap")}},
			told{Task: one}},
		"killed in an iteration, and a resume came to no task": {
			[]Event{resumed, &Preflight{Passed: true}, &Stop{Reason: "token_cap"}, resumed, &Stop{Reason: "disk_full"}},
			told{Stop: "disk_full", Task: one}},
		"another attempt was begun": {
			append(append(committed, learned...), &ContextReset{Scope: in(two)}, &MemoryLoad{Scope: in(two)}),
			told{Task: two}},
		"an agent program's first turn": {
			append(committed, &ContextReset{Scope: in(two)}, &AgentSession{Scope: in(two)}, &ToolCall{Scope: in(two)}),
			told{Task: two}},
		"an event of another version": {[]Event{&Unknown{Type: "new", Payload: []byte(`{"task_id":"T-001"}`)}},
			told{Task: one}},
	} {
		t.Run(name, func(t *testing.T) {
			data := inMemory(t, append(append([]Event{}, begun...), c.then...)...)
			s, err := stateOf(t, append(data, `{"torn`...))
			if got := tell(s); err != nil || got != c.want {
				t.Errorf("%v\n got %+v\nwant %+v", err, got, c.want)
			}
		})
	}
}

func TestAttemptOfASessionThatWasOnlyPrepared(t *testing.T) {
	data := inMemory(t, &ModelCall{Scope: Scope{Phase: "interview"}, TokensUsedTotal: 600},
		&SessionPrepared{}, &SeedCommitted{SHA: "seed"})
	s, err := stateOf(t, data)
	if got := tell(s); err != nil || got != (told{}) {
		t.Errorf("%v %+v", err, got)
	}
}

// onDisk is a record with this text.
func onDisk(t *testing.T, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "events.jsonl")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func stateOf(t *testing.T, data []byte) (State, error) {
	var s State
	_, _, err := Scan(onDisk(t, data), 0, func(l Line) error { s.Apply(l, l.Brief()); return nil })
	return s, err
}

// Several tasks can wait for their line in the ledger and for their commit, whichever began last.
func TestAttemptsSideBySide(t *testing.T) {
	const one, two = "T-001", "T-002"
	accept := func(task string) Event { return &EvaluatorVerdict{Scope: in(task), Verdict: "accept", Tree: "tree"} }
	s, err := stateOf(t, inMemory(t, &ContextReset{Scope: in(one)}, &ContextReset{Scope: in(two)}, accept(one),
		accept(two), &LedgerAppended{Scope: in(two)}, &TaskDone{Scope: in(two)}, &ContextReset{Scope: in("T-003")}))
	if err != nil {
		t.Fatal(err)
	}
	if a, b := s.Tasks[one].Attempt, s.Tasks[two].Attempt; !a.Unledgered || !a.Waits || b.Unledgered || !b.Waits {
		t.Errorf("%+v\n%+v", a, b)
	}
}

// The repair that stashes the work of a removed task does not add the task again.
func TestRepairOfARemovedTask(t *testing.T) {
	s, err := stateOf(t, inMemory(t, &SessionStart{Phase: "run"}, &ContextReset{Scope: in("T-001")},
		&Stop{Scope: in("T-001"), Reason: Interrupted}, &TaskMarked{Scope: in("T-001"), Mark: "removed"},
		&LogRepaired{Scope: in("T-001"), Why: "had work"}, &SessionResume{}, &Stop{Reason: AllDone}))
	if err != nil || len(s.Tasks) > 0 || s.SessionStatus() != ReasonOf(AllDone).Status {
		t.Errorf("%v %s %+v", err, s.SessionStatus(), s.Tasks)
	}
}

func TestBeginning(t *testing.T) {
	used := int64(5)
	path := filepath.Join(t.TempDir(), "events.jsonl")
	events := []Event{&SessionStart{Phase: "prep-feature", Source: "/src"}, &SessionPrepared{TokensUsed: &used},
		&SeedCommitted{SHA: "old"}, &SeedCommitted{SHA: "new", Branch: "b"}}
	prep := inMemory(t, events[:3]...)
	run := inMemory(t, append(events, &SessionStart{Phase: "run", Source: "/other"},
		&SeedCommitted{SHA: "not this"})...)
	if err := os.WriteFile(path, run, 0o600); err != nil {
		t.Fatal(err)
	}
	b, err := ReadBeginning(path)
	if err != nil || b.Source != "/src" || *b.Prepared.TokensUsed != 5 || b.Seed.SHA != "new" ||
		b.SeedAt != int64(len(prep)) {
		t.Errorf("%v %+v", err, b)
	}
}

func TestVerdictWithoutItsLedgerLine(t *testing.T) {
	for events, want := range map[string]bool{
		"evaluator_verdict":                              true,
		"evaluator_verdict ledger_appended":              false,
		"evaluator_verdict log_repaired":                 true,
		"evaluator_verdict stop":                         true,
		"evaluator_verdict stop hook_run":                true, // tilth-post-run comes after the stop
		"evaluator_verdict ledger_appended task_done":    false,
		"evaluator_verdict ledger_appended model_call":   false,
		"evaluator_verdict stop session_resume":          false, // a resume has settled it
		"evaluator_verdict ledger_appended log_repaired": false,
		"context_reset":                                  false,
		"":                                               false,
	} {
		var text strings.Builder
		for typ := range strings.FieldsSeq(events) {
			text.WriteString(`{"ts":"2026-06-01T12:00:00.000Z","type":"` + typ + `","payload":{"task_id":"T-001"}}` + "\n")
		}
		s, err := stateOf(t, []byte(text.String()))
		if err != nil || s.Tasks[s.Head].Attempt.Unledgered != want {
			t.Errorf("%q: %+v %v", events, s, err)
		}
	}
}
