package main

import (
	"fmt"
	"sync"
	"time"

	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/text"
	"github.com/git-tilth/git-tilth/internal/view"
)

// patience is the time after which a preflight without a terminal prints its running part.
const patience = 2 * time.Second

// trial shows the running part of a preflight: with a timer on a terminal, else as a line if it takes long.
type trial struct {
	tty  bool
	tell func(line string) // prints a line
	draw func(line string) // replaces the last line, or removes it for ""

	mu    sync.Mutex
	doing view.Doing
	timer *time.Timer
}

// trial returns the trial of a command without a session.
func (w *repoContext) trial() *trial {
	return &trial{tty: isTerminal(w.p.stderr), tell: w.Tell, draw: func(says string) {
		columns := max(w.p.shownOn(w.p.stderr).Width-1, 20)
		fmt.Fprint(w.p.stderr, "\r\x1b[K"+view.Fit(text.VisibleLine(says), columns))
	}}
}

// begins starts a part of the preflight; "" ends the last one.
func (t *trial) begins(_, name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.timer != nil {
		t.timer.Stop()
	}
	t.doing = view.Doing{Since: proc.Now()}
	if name != "" {
		t.doing.What = "preflight: " + name
	}
	switch {
	case t.tty:
		t.tick()
	case name != "":
		t.timer = time.AfterFunc(patience, func() { t.tell("preflight: trying " + name) })
	}
}

// tick draws the timer now and once a second. The caller holds the lock of t.
func (t *trial) tick() {
	of := t.doing
	t.draw(of.Text(proc.Now(), 0))
	if of.What == "" {
		return
	}
	t.timer = time.AfterFunc(time.Second, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.doing == of {
			t.tick()
		}
	})
}
