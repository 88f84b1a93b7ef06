package main

import (
	"os"

	"golang.org/x/term"

	"github.com/git-tilth/git-tilth/internal/view"
)

// terminal is what standard output can show.
func (p *process) terminal() view.Terminal { return p.terminalOf(p.stdout) }

func (p *process) terminalOf(f *os.File) view.Terminal {
	t := view.Terminal{TTY: isTerminal(f)}
	if !t.TTY {
		return t
	}
	t.Color = p.getenv("NO_COLOR") == "" && p.getenv("TERM") != "dumb"
	if w, _, err := term.GetSize(int(f.Fd())); err == nil {
		t.Width = w
	}
	return t
}
