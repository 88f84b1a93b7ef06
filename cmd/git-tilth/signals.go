package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/git-tilth/git-tilth/internal/urgency"
)

// watchSignals makes the first signal cancel the context and a second one end the process and its children at once.
func (p *process) watchSignals() {
	second := make(chan struct{})
	ctx, cancel := context.WithCancel(urgency.With(context.Background(), second))
	p.ctx = ctx
	ch := make(chan os.Signal, 4)
	// Unhandled, SIGQUIT would show the inside of this program to whoever types Ctrl-\.
	watched := []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT}
	// A process started by nohup keeps ignoring hang-ups.
	if !signal.Ignored(syscall.SIGHUP) {
		watched = append(watched, syscall.SIGHUP)
	}
	signal.Notify(ch, watched...)
	// A reader of our output that goes away must not end a run of hours. With a handler instead of "ignore", children
	// still get the default.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	var got atomic.Bool
	go func() {
		count := impatience{echoes: startedByGit()}
		for sig := range ch {
			if p.editing.Load() && (sig == syscall.SIGINT || sig == syscall.SIGQUIT) {
				continue
			}
			end := count.second(sig, time.Now())
			got.Store(true)
			cancel()
			if end {
				p.twice.Store(true)
				close(second)
				lastWords()
				os.Exit(exitInterrupted)
			}
		}
	}()
	p.interrupted = got.Load
	// The handler stays: a signal that comes while the process ends must not show a stack either.
	p.stopSignals = cancel
}

// lastWords waits for the end of the children, which a second signal ends, and then gives the stop a moment to be
// written.
func lastWords() {
	for end := time.Now().Add(childrenEnd); urgency.Children() && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	time.Sleep(stopWritten)
}

const (
	// childrenEnd is longer than what git has to put its affairs in order.
	childrenEnd = 5 * time.Second
	stopWritten = time.Second
)

// echoWindow is how long after a signal git's copy of it is waited for. It comes within milliseconds; a busy machine
// may take longer.
const echoWindow = time.Second

// impatience tells a second signal from the first one's echo. The git that dispatched to this process hands every
// signal that it gets on to it, and waits for its end; so a Ctrl-C, which the terminal sends to both, arrives here
// twice.
type impatience struct {
	echoes bool // git may send copies
	first  os.Signal
	at     time.Time
}

// second takes a signal in and reports whether somebody is asking for the second time.
func (c *impatience) second(sig os.Signal, now time.Time) bool {
	if c.first == nil {
		c.first, c.at = sig, now
		return false
	}
	echo := c.echoes && sig == c.first && now.Sub(c.at) < echoWindow
	c.echoes = false // there is one copy, and no more
	return !echo
}

// startedByGit reports whether the parent is a git. Where there is no /proc to ask, it may be.
func startedByGit() bool {
	name, err := os.Readlink(filepath.Join("/proc", fmt.Sprint(os.Getppid()), "exe"))
	if err != nil {
		return true
	}
	return strings.HasPrefix(filepath.Base(name), "git")
}
