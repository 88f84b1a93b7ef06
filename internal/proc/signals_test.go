package proc

import (
	"context"
	"errors"
	"testing"
)

func TestOnlyTheSecondSignalEndsWhatGoesOn(t *testing.T) {
	second := make(chan struct{})
	ctx, first := context.WithCancel(WithSecondSignal(context.Background(), second))
	on := IgnoreFirstSignal(IgnoreFirstSignal(ctx)) // within each other they are one
	first()
	if ctx.Err() == nil || on.Err() != nil {
		t.Fatalf("after the first: %v, %v", ctx.Err(), on.Err())
	}
	derived, cancel := context.WithCancel(on)
	defer cancel()
	close(second)
	<-derived.Done()
	if !errors.Is(on.Err(), context.Canceled) || !errors.Is(derived.Err(), context.Canceled) {
		t.Errorf("after the second: %v, %v", on.Err(), derived.Err())
	}
}

func TestNobodyWatches(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if on := IgnoreFirstSignal(ctx); on.Err() != nil || on.Done() != nil {
		t.Error("it ends although there is no second signal")
	}
}

func TestChildren(t *testing.T) {
	one, two := CountChild(), CountChild()
	one()
	if !ChildrenRun() {
		t.Error("one is left")
	}
	two()
	if ChildrenRun() {
		t.Error("none is left")
	}
}
