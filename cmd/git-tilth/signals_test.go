package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestAPipeThatNobodyOpensIsNotWaitedForPastASignal(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := await(ctx, func() (*os.File, error) { return os.Open(pipe) }); !errors.Is(err, context.Canceled) {
		t.Errorf("await = %v, want it canceled", err)
	}
	if got, err := await(t.Context(), func() (int, error) { return 7, nil }); got != 7 || err != nil {
		t.Errorf("await = %d, %v", got, err)
	}
}
