package record

import (
	"slices"
	"testing"
)

// A note of a rewind stays in the ledger of its task until that task is rewound.
func TestNotesOfRewinds(t *testing.T) {
	pending := func(ids ...string) map[string]TaskState {
		states := map[string]TaskState{}
		for _, id := range ids {
			states[id] = TaskState{Status: Pending}
		}
		return states
	}
	seed := &SessionRewound{To: "seed", Undo: 1, Note: "think", Noted: "T-001", Tasks: pending("T-001", "T-002")}
	for name, c := range map[string]struct {
		then []Event
		want []int64
	}{
		"to the seed":       {nil, []int64{10}},
		"a later task":      {[]Event{&SessionRewound{To: "T-002", Undo: 2, Tasks: pending("T-002")}}, []int64{10}},
		"the task":          {[]Event{&SessionRewound{To: "T-001", Undo: 2, Tasks: pending("T-001", "T-002")}}, nil},
		"to the seed again": {[]Event{&SessionRewound{To: "seed", Undo: 2, Tasks: pending("T-001", "T-002")}}, nil},
		"with another note": {[]Event{&SessionRewound{To: "T-002", Undo: 2, Note: "x", Noted: "T-002",
			Tasks: pending("T-002")}}, []int64{10}},
		"and a verdict": {[]Event{&EvaluatorVerdict{Scope: in("T-001"), Verdict: "reject"}}, []int64{10, 20}},
		"taken back":    {[]Event{&SessionUndone{Undo: 1, Redo: 2}}, nil},
		"taken back, and on": {[]Event{&SessionUndone{Undo: 1, Redo: 2},
			&SessionUndone{Undo: 2, Redo: 3}}, []int64{10}},
	} {
		var s State
		for i, e := range append([]Event{seed}, c.then...) {
			s.Apply(Line{Off: int64(10 * (i + 1)), Type: TypeOf(e)}, e)
		}
		if got := s.Tasks["T-001"].Ledger; !slices.Equal(got, c.want) {
			t.Errorf("%s: the ledger's lines are %v, not %v", name, got, c.want)
		}
	}
}
