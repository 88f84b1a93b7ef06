package text

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Visible makes foreign text harmless where a terminal or pager shows it. Control characters, which could move the
// cursor, set the title or hide text, and characters that reorder or hide what is read are replaced by what they are
// called. Newlines and tabs stay. The result is valid UTF-8.
func Visible(s string) string { return visible(s, false) }

// VisibleLine is Visible for one line, as in a tab-separated table: newlines, tabs and carriage returns become blanks.
func VisibleLine(s string) string { return visible(s, true) }

func visible(s string, line bool) string {
	if isPlain(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + 8)
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		i += n
		switch {
		case line && (r == '\n' || r == '\t' || r == '\r'):
			b.WriteByte(' ')
		case r == '\n' || r == '\t':
			b.WriteRune(r)
		case r == '\r' && strings.HasPrefix(s[i:], "\n"):
			// The end of a line as some programs write it.
		case r < 0x20:
			b.WriteRune(0x2400 + r) // the picture of the control character
		case r == 0x7f:
			b.WriteRune(0x2421)
		case isHidden(r):
			fmt.Fprintf(&b, "<U+%04X>", r)
		default:
			b.WriteRune(r) // an invalid byte was decoded as U+FFFD
		}
	}
	return b.String()
}

func isPlain(s string) bool {
	for i := range len(s) {
		if s[i] < 0x20 || s[i] >= 0x7f {
			return false
		}
	}
	return true
}

// isHidden reports whether a terminal does not draw a character, or draws it elsewhere: C1 controls, bidirectional and
// other format characters, line separators.
func isHidden(r rune) bool {
	switch {
	case r >= 0x80 && r < 0xa0, r == 0x2028, r == 0x2029:
		return true
	case r == 0x200d, r == 0x200c: // joiners, part of emoji and of some scripts
		return false
	}
	return unicode.In(r, unicode.Cf, unicode.Co, unicode.Cs)
}
