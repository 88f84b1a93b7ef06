// Package urgency tells a first signal from a second one, wherever something is under way.
//
// A first signal cancels the context of the command. What takes a moment and would only be work for the next resume if
// it were cut short goes on in IgnoreFirstSignal of it. A second signal ends that too, so that no child outlives the
// process.
package urgency

import (
	"context"
	"sync/atomic"
	"time"
)

type key struct{}

// With returns a copy of ctx that knows the channel which a second signal closes.
func With(ctx context.Context, second <-chan struct{}) context.Context {
	return context.WithValue(ctx, key{}, second)
}

// Second is closed by a second signal; nil, which never is, where nobody watches for signals.
func Second(ctx context.Context) <-chan struct{} {
	second, _ := ctx.Value(key{}).(<-chan struct{})
	return second
}

// IgnoreFirstSignal returns ctx without its own end: only a second signal cancels it.
func IgnoreFirstSignal(ctx context.Context) context.Context {
	return untilSecond{ctx, Second(ctx)}
}

type untilSecond struct {
	context.Context
	second <-chan struct{}
}

func (c untilSecond) Deadline() (time.Time, bool) { return time.Time{}, false }
func (c untilSecond) Done() <-chan struct{}       { return c.second }

func (c untilSecond) Err() error {
	select {
	case <-c.second:
		return context.Canceled
	default:
		return nil
	}
}

var children atomic.Int64

// Child counts a child process until the function that it returns is called.
func Child() (over func()) {
	children.Add(1)
	return func() { children.Add(-1) }
}

// Children reports whether a child is running that is not over yet.
func Children() bool { return children.Load() > 0 }
