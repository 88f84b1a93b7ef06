package view

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Terminal says what an output can show. The zero value is a pipe.
type Terminal struct {
	TTY   bool // a person reads it: aligned columns with headings, cut to Width
	Color bool
	Width int // columns; 0: not known
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

// paint sets s in a style if the terminal shows colours.
func (t Terminal) paint(style, s string) string {
	if !t.Color || style == "" || s == "" {
		return s
	}
	return "\x1b[" + style + "m" + s + "\x1b[0m"
}

// Clean makes foreign text harmless on a terminal and in a tab-separated line:
// control characters, which could move the cursor, set the title or hide text, and
// characters that reorder or hide what is read are replaced by what they are called.
// The result is one line of valid UTF-8.
func Clean(s string) string {
	if isClean(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + 8)
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		i += n
		switch {
		case r == utf8.RuneError && n == 1:
			b.WriteRune(utf8.RuneError)
		case r == '\n' || r == '\t' || r == '\r':
			b.WriteByte(' ')
		case r < 0x20:
			b.WriteRune(0x2400 + r)
		case r == 0x7f:
			b.WriteRune(0x2421)
		case hidden(r):
			fmt.Fprintf(&b, "<U+%04X>", r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

func isClean(s string) bool {
	for i := range len(s) {
		if s[i] < 0x20 || s[i] >= 0x7f {
			return false
		}
	}
	return true
}

// hidden tells the characters that a terminal does not draw, or draws elsewhere:
// C1 controls, bidirectional and other format characters, line separators.
func hidden(r rune) bool {
	switch {
	case r >= 0x80 && r < 0xa0, r == 0x2028, r == 0x2029:
		return true
	case r == 0x200d, r == 0x200c: // joiners, part of emoji and of some scripts
		return false
	}
	return unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Co, r) || unicode.Is(unicode.Cs, r)
}

// width is how many columns s takes on a terminal.
func width(s string) (n int) {
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
		r >= 0xfe30 && r <= 0xfe6f, r >= 0xff00 && r <= 0xff60, r >= 0xffe0 && r <= 0xffe6, r >= 0x1f300 && r <= 0x1faff,
		r >= 0x20000 && r <= 0x3fffd:
		return 2
	}
	return 1
}

// fit cuts s to at most max columns, with an ellipsis where something is missing.
func fit(s string, max int) string {
	if max <= 0 || width(s) <= max {
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
