package proc

import (
	"context"
	"sync/atomic"
	"time"
)

// Now returns the time by which runs wait. A test replaces Now and Sleep, so that no test sleeps.
var Now = time.Now

// Sleep waits until the time is over or the context ends, and returns the context's error.
var Sleep = func(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
	return ctx.Err()
}

// AdvanceClock makes every sleep end at once and moves the clock by the time that it would have taken, which it adds to
// passed, in nanoseconds. It calls told after each sleep.
func AdvanceClock(passed *atomic.Int64, told func()) {
	Now = func() time.Time { return time.Now().Add(time.Duration(passed.Load())) }
	Sleep = func(ctx context.Context, d time.Duration) error {
		passed.Add(int64(max(d, 0)))
		told()
		return ctx.Err()
	}
}
