package loop

import (
	"context"
	"time"

	"github.com/git-tilth/git-tilth/internal/agent"
	"github.com/git-tilth/git-tilth/internal/model"
	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/record"
)

// tick is the interval between records of a wait.
const tick = time.Minute

// longestAwake is the longest wait that keeps the machine awake.
const longestAwake = time.Hour

// wait waits before the next attempt at a request that failed.
func (c caller) wait(ctx context.Context, f *model.Failure, p agent.Pause) error {
	w := record.AgentWaits{Who: c.who.who(), Reason: record.Outage, Detail: f.Message, Attempt: p.Attempt}
	if c.makeTurn != nil {
		w.Who, w.Detail = c.who.Name(), f.Said
	}
	return c.run.hold(ctx, c.emitPhase, w, p.Wait)
}

// hold waits for an endpoint or agent program. It records the wait at its start and once a minute. The wait counts
// neither as an iteration nor as wall clock.
func (r *run) hold(ctx context.Context, emit func(record.Event) error, w record.AgentWaits, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	until := r.Now().Add(d)
	w.Until = record.FormatTime(until)
	r.waits(1)
	defer r.waits(-1)
	if d > longestAwake && r.o.Awake != nil {
		r.o.Awake(false)
		defer r.o.Awake(true)
	}
	// Linux stops the monotonic clock while the machine sleeps. Round(0) leaves the wall clock.
	for left := d; left > 0; left = min(until.Sub(r.Now()), until.Round(0).Sub(r.Now())) {
		event := w
		if err := emit(&event); err != nil {
			return err
		}
		if err := proc.Sleep(ctx, min(left, tick)); err != nil {
			return err
		}
	}
	return nil
}

// waits adds to the number of waiting lanes. The wall clock stops while a lane waits.
func (r *run) waits(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.Now()
	if r.waiting > 0 {
		r.idle += now.Sub(r.idleSince)
	}
	r.waiting, r.idleSince = r.waiting+n, now
}

// otherFree reports whether another agent of a list is free.
func (c caller) otherFree() bool {
	all, role := c.run.o.Worker.all(), ""
	if c.role == record.RoleEvaluator {
		all, role = c.run.o.Evaluator.all(), c.role
	}
	for _, r := range all {
		if r.Name() != c.who.Name() && c.isFree(role)(r) {
			return true
		}
	}
	return false
}
