package agent

import (
	"fmt"
	"testing"
	"time"

	"github.com/git-tilth/git-tilth/internal/testsize"
)

// A result is not the end while a subagent is running, for any time, and within the linger time without one. The last
// message is judged, and the whole usage is counted once.
// At night the gap is up to a minute.
func TestResultIsNotTheEnd(t *testing.T) {
	type gap struct {
		seconds float64
		kind    string
		linger  time.Duration
	}
	const short = 300 * time.Millisecond
	gaps := []gap{{0.05, "", short}, {0.05, "local_agent", short}, {1, "local_agent", short},
		{2, "local_workflow", short}}
	if testsize.IsFull() {
		gaps = append(gaps, gap{15, "", 0}, gap{5, "local_agent", time.Second}, gap{21, "local_agent", 0},
			gap{40, "local_workflow", 0}, gap{60, "local_agent", 0})
	}
	for _, g := range gaps {
		t.Run(fmt.Sprint(g), func(t *testing.T) {
			t.Parallel()
			f := newFake(t, fakeStep{"turns": 2, "text": "all done", "cost": 0.5,
				"early": map[string]any{"text": "the helper works on it", "gap": g.seconds, "kind": g.kind}})
			p := claude()
			turn := f.turn("x", Ref{ID: p.NewID()})
			turn.Linger, turn.Timeout = g.linger, 2*time.Minute
			out := f.run(p, turn)
			want := Usage{Prompt: 400, Eval: 80, Cost: 0.5, CostKnown: true}
			if out.How != Completed || out.Cut || out.Text != "all done" || out.Usage != want {
				t.Errorf("%+v", out)
			}
		})
	}
}

// A shell that only serves is not waited for.
func TestShellIsNotWaitedFor(t *testing.T) {
	f := newFake(t, fakeStep{"early": map[string]any{"text": "serving", "kind": "local_bash", "never": true}})
	p := claude()
	turn := f.turn("x", Ref{ID: p.NewID()})
	turn.Linger = 50 * time.Millisecond
	if out := f.run(p, turn); out.How != Completed || out.Text != "serving" || out.Cut {
		t.Errorf("%+v", out)
	}
}

// A turn that is ended while a subagent is running is not a success, and its call is marked.
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
