// Package clock replaces the clock of waits in tests.
package clock

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/git-tilth/git-tilth/internal/proc"
)

// Advance makes every sleep end at once and moves the clock by the time that it would have taken, which it adds to
// passed, in nanoseconds. It calls told after each sleep.
func Advance(passed *atomic.Int64, told func()) {
	proc.Now = func() time.Time { return time.Now().Add(time.Duration(passed.Load())) }
	proc.Sleep = func(ctx context.Context, d time.Duration) error {
		passed.Add(int64(max(d, 0)))
		told()
		return ctx.Err()
	}
}
