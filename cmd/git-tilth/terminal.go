package main

import (
	"cmp"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/git-tilth/git-tilth/internal/view"
)

// terminal is what standard output can show.
func (p *process) terminal() view.Terminal { return p.terminalOf(p.stdout) }

func (p *process) terminalOf(f *os.File) view.Terminal {
	t := view.Terminal{TTY: isTerminal(f), ASCII: p.asciiLocale()}
	if !t.TTY {
		return t
	}
	t.Color = p.getenv("NO_COLOR") == "" && p.getenv("TERM") != "dumb"
	if w, _, err := term.GetSize(int(f.Fd())); err == nil {
		t.Width = w
	}
	return t
}

// asciiLocale reports whether the user's locale names a set of characters that is not UTF-8. Where nothing is set, as in
// many containers, terminals show UTF-8 all the same.
func (p *process) asciiLocale() bool {
	locale := strings.ToLower(cmp.Or(p.getenv("LC_ALL"), p.getenv("LC_CTYPE"), p.getenv("LANG")))
	return locale != "" && !strings.Contains(locale, "utf-8") && !strings.Contains(locale, "utf8")
}
