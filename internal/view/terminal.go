package view

import (
	"strings"
	"time"
	"unicode"

	"github.com/git-tilth/git-tilth/internal/text"
)

// Terminal describes the display of an output. The zero value is a pipe.
type Terminal struct {
	TTY   bool // a terminal: aligned columns with headings, cut to Width
	Color bool
	Width int // columns; 0: not known
	// Height is the number of lines; 0 if it is not known.
	Height int
	JSON   bool // a program reads it
	Now    time.Time
}

// Styles of text on a terminal.
const (
	plain  = ""
	bold   = "1"
	dim    = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
	blue   = "34"
	purple = "35"
	cyan   = "36"
)

// Paint sets s in a style if the terminal shows colours.
func (t Terminal) Paint(style, s string) string {
	if !t.Color || style == "" || s == "" {
		return s
	}
	return "\x1b[" + style + "m" + s + "\x1b[0m"
}

// Fold breaks lines that are longer than the terminal is wide between words.
func (t Terminal) Fold(s string) string {
	if t.Width <= 0 {
		return s
	}
	return text.Wrap(s, t.Width)
}

// Finding returns a line of a check, a task or a setting, and below it the commands that help, one per line. A
// terminal wraps the line between words, but not commands, so that they can be pasted.
func (t Terminal) Finding(head, says, command string) string {
	line := head + text.VisibleLine(says)
	if t.TTY && t.Width > 0 {
		line = text.Hang(line, t.Width, "         ")
	}
	for command := range strings.Lines(command) {
		line += "\n         " + text.VisibleLine(strings.TrimSuffix(command, "\n"))
	}
	return line + "\n"
}

// Width returns the number of columns of s on a terminal.
func Width(s string) (n int) {
	for _, r := range s {
		n += runeWidth(r)
	}
	return n
}

func runeWidth(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case r >= 0x1100 && r <= 0x115f, r >= 0x2e80 && r <= 0xa4cf, r >= 0xac00 && r <= 0xd7a3, r >= 0xf900 && r <= 0xfaff,
		r >= 0xfe30 && r <= 0xfe6f, r >= 0xff00 && r <= 0xff60, r >= 0xffe0 && r <= 0xffe6, r >= 0x1f300 &&
			r <= 0x1faff,
		r >= 0x20000 && r <= 0x3fffd:
		return 2
	}
	return 1
}

// Fit cuts s to at most max columns, with an ellipsis where something is missing.
func Fit(s string, max int) string {
	if max <= 0 || Width(s) <= max {
		return s
	}
	var b strings.Builder
	room := max - 1
	for _, r := range s {
		if room -= runeWidth(r); room < 0 {
			break
		}
		b.WriteRune(r)
	}
	return b.String() + "…"
}
