// A first signal cancels the context of the command. A short operation that the next resume would have to finish runs
// in IgnoreFirstSignal of it. A second signal ends that too, so that no child outlives the process.

package proc

import (
	"context"
	"sync/atomic"
	"time"
)

type secondKey struct{}

// WithSecondSignal returns a copy of ctx with the channel that a second signal closes.
func WithSecondSignal(ctx context.Context, second <-chan struct{}) context.Context {
	return context.WithValue(ctx, secondKey{}, second)
}

// SecondSignal is closed by a second signal; it is nil if signals are not watched.
func SecondSignal(ctx context.Context) <-chan struct{} {
	second, _ := ctx.Value(secondKey{}).(<-chan struct{})
	return second
}

// IgnoreFirstSignal returns ctx without its own end: only a second signal cancels it.
func IgnoreFirstSignal(ctx context.Context) context.Context {
	return untilSecond{ctx, SecondSignal(ctx)}
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

// CountChild counts a child process until the returned function is called.
func CountChild() (over func()) {
	children.Add(1)
	return func() { children.Add(-1) }
}

// ChildrenRun reports whether a child is still running.
func ChildrenRun() bool { return children.Load() > 0 }
