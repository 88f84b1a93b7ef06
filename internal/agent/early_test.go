package agent

import (
	"testing"
	"time"
)

// A result is not the end while an agent of the program's own is under way, however long that takes, and up to a
// linger of quiet without one. What is judged is the last message, and all that was spent is booked, once.
func TestResultIsNotTheEnd(t *testing.T) {
	const linger = 300 * time.Millisecond
	for _, early := range []map[string]any{
		{"gap": 0.05}, {"gap": 0.05, "kind": "local_agent"}, {"gap": 1, "kind": "local_agent"},
		{"gap": 2, "kind": "local_workflow"},
	} {
		early["text"] = "the helper works on it"
		f := newFake(t, fakeStep{"turns": 2, "text": "all done", "cost": 0.5, "early": early})
		p := claude()
		turn := f.turn("x", Ref{ID: p.NewID()})
		turn.Linger = linger
		out := f.run(p, turn)
		want := Usage{Prompt: 400, Eval: 80, Cost: 0.5, CostKnown: true}
		if out.How != Completed || out.Cut || out.Text != "all done" || out.Usage != want {
			t.Errorf("%v: %+v", early, out)
		}
	}
}

// What only serves is not waited for.
func TestShellIsNotWaitedFor(t *testing.T) {
	f := newFake(t, fakeStep{"early": map[string]any{"text": "serving", "kind": "local_bash", "never": true}})
	p := claude()
	turn := f.turn("x", Ref{ID: p.NewID()})
	turn.Linger = 50 * time.Millisecond
	if out := f.run(p, turn); out.How != Completed || out.Text != "serving" || out.Cut {
		t.Errorf("%+v", out)
	}
}

// A turn that is ended while an agent of its own works is no success, and its call says so.
func TestTurnIsCut(t *testing.T) {
	f := newFake(t, fakeStep{"early": map[string]any{"text": "wait for it", "kind": "local_agent", "never": true}})
	p := claude()
	turn := f.turn("x", Ref{ID: p.NewID()})
	turn.Linger, turn.Timeout = 10*time.Millisecond, time.Second
	out := f.run(p, turn)
	if call := out.Call(); out.How != TimedOut || call.Health != "cut" || call.Error == "" || out.Usage.Prompt != 100 {
		t.Errorf("%+v %+v", out, call)
	}
}
