package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/git-tilth/git-tilth/internal/config"
	"github.com/git-tilth/git-tilth/internal/view"
)

// startLive starts the live lines on a terminal.
func (p *runLines) startLive() {
	if p.Term.TTY && !p.Term.JSON && p.timer == nil {
		p.timer = time.AfterFunc(time.Second, p.redraw)
	}
}

// stopLive removes the live lines.
func (p *runLines) stopLive() {
	if p.timer != nil {
		p.timer.Stop()
		p.timer = nil
	}
	p.clearLive()
}

// redraw updates the live line between events.
func (p *runLines) redraw() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer != nil {
		p.drawLive()
		p.timer.Reset(time.Second)
	}
}

// clearLive removes the live lines from the screen. A terminal that was made narrower has wrapped them.
func (p *runLines) clearLive() {
	p.Term = p.term()
	rows := 0
	for _, columns := range p.shown {
		rows++
		if p.Term.Width > 0 {
			rows += max(columns-1, 0) / p.Term.Width
		}
	}
	if rows > 0 {
		fmt.Fprint(p.out, "\r\x1b[K"+strings.Repeat("\x1b[A\x1b[K", rows-1))
	}
	p.shown = nil
}

// between separates the parts of the last line.
const between = " · "

// maxRows limits the lines of running tasks, because git-tilth cannot redraw lines that scrolled off the screen.
const maxRows = 12

// drawLive redraws the last line: task, iteration and cap, tokens, cost, time and the worker's activity. With several
// running tasks each has its own line above it.
func (p *runLines) drawLive() {
	if p.timer == nil {
		return
	}
	p.clearLive()
	var lines []string
	var sum []string
	if p.tokens > 0 {
		sum = append(sum, view.Count(p.tokens)+" tokens")
	}
	if p.cost > 0 {
		sum = append(sum, view.Money(p.cost))
	}
	sum = append(sum, view.Span(p.now().Sub(p.since)))
	tasks := slices.Sorted(maps.Keys(p.at))
	most := maxRows
	if p.Term.Height > 0 {
		most = min(most, max(p.Term.Height-2, 1))
	}
	if n := len(tasks) - most; n > 0 {
		sum = append([]string{fmt.Sprintf("%d more running", n)}, sum...)
	}
	for _, task := range tasks[:min(len(tasks), most)] {
		of := p.at[task]
		row := []string{fmt.Sprintf("%s  iteration %d of %d", task, max(of.iter, 1), int(p.Caps[config.MaxIterations]))}
		if len(tasks) == 1 {
			row, sum = append(row, sum...), nil
		}
		lines = append(lines, p.fits(row, task))
	}
	if sum != nil {
		lines = append(lines, p.fits(sum, ""))
	}
	fmt.Fprint(p.out, "\r\x1b[K"+strings.Join(lines, "\r\n"))
	for _, line := range lines {
		p.shown = append(p.shown, view.Width(line))
	}
}

// fits joins parts into a line. It shortens the activity of the task's worker to fit the terminal.
func (p *runLines) fits(parts []string, task string) string {
	room := 0 // for any number of columns
	if p.Term.Width > 0 {
		room = max(p.Term.Width-1-view.Width(strings.Join(parts, between)+between), 1)
	}
	if waits := p.work(task).waits; waits != nil {
		parts = append(parts, view.WaitLeft(waits, p.now()))
	} else if now := p.doing[task].Text(p.now(), room); now != "" {
		parts = append(parts, now)
	}
	return view.Fit(strings.Join(parts, between), p.Term.Width-1)
}

// patience is the time after which a preflight without a terminal prints its running part.
const patience = 2 * time.Second

// Validating shows the running validator until the next event of its task. Without a task, the validator belongs to
// the preflight and is shown until the next part; "" ends the last one.
func (p *runLines) Validating(task, name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	what := "validator " + name
	if task == "" {
		what = "preflight: " + name
		if p.patience != nil {
			p.patience.Stop()
		}
		if name != "" && p.timer == nil {
			p.patience = time.AfterFunc(patience, func() { p.Tell("preflight: trying " + name) })
		}
	}
	if p.doing[task] = (view.Doing{What: what, Since: p.now()}); name == "" {
		delete(p.doing, task)
	}
	p.drawLive()
}

// trial returns a function that shows the running part of a preflight without a session, like Validating.
func (w *repoContext) trial() func(task, name string) {
	p := newRunLines(nil, func() view.Terminal { return w.p.shownOn(w.p.stderr) }, w.p.stderr, w.p.stderr,
		isTerminal(w.p.stderr))
	return func(task, name string) {
		p.mu.Lock()
		if p.startLive(); name == "" {
			p.stopLive()
		}
		p.mu.Unlock()
		p.Validating(task, name)
	}
}
