package proc

import (
	"context"
	"time"
)

// Now returns the time for waits. Tests replace Now and Sleep, so that they do not sleep.
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
