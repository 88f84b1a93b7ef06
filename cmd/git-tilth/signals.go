package main

import (
	"context"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/git-tilth/git-tilth/internal/proc"
)

// watchSignals makes the first signal cancel the context, and a second one kill the process and its children.
func (p *process) watchSignals() {
	second := make(chan struct{})
	ctx, cancel := context.WithCancel(proc.WithSecondSignal(context.Background(), second))
	p.ctx = ctx
	ch := make(chan os.Signal, 4)
	// Without a handler, SIGQUIT (Ctrl-\) prints stack traces.
	watched := []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT}
	// A process started by nohup continues to ignore hang-ups.
	if !signal.Ignored(syscall.SIGHUP) {
		watched = append(watched, syscall.SIGHUP)
	}
	signal.Notify(ch, watched...)
	// A closed output pipe must not end a run of hours. A handler is better than "ignore", because children then still
	// get the default action.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	var got atomic.Bool
	go func() {
		count := proc.CountSignals()
		for sig := range ch {
			if p.editing.Load() && (sig == syscall.SIGINT || sig == syscall.SIGQUIT) {
				continue
			}
			end := count.Second(sig, time.Now())
			got.Store(true)
			cancel()
			if end {
				p.twice.Store(true)
				close(second)
				proc.LastWords()
				os.Exit(exitInterrupted)
			}
		}
	}()
	p.interrupted = got.Load
	// The handler stays, so that a late signal prints no stack traces.
	p.stopSignals = cancel
}
