package text

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Visible makes untrusted text harmless for a terminal or pager. It replaces control characters, which could move the
// cursor, set the title or hide text, and characters that reorder or hide text, by their names. It keeps newlines and
// tabs. The result is valid UTF-8.
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
			// Some programs end lines with a carriage return.
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

// Escaped makes JSON harmless for a terminal: it escapes the characters that Visible names, so the JSON value stays the
// same. rest is an incomplete character at the end of b.
func Escaped(b []byte) (shown, rest []byte) {
	for i := 1; i < utf8.UTFMax && i <= len(b); i++ {
		if end := b[len(b)-i:]; !utf8.FullRune(end) {
			b, rest = b[:len(b)-i], end
			break
		}
	}
	first := 0
	for first < len(b) && b[first] < 0x7f { // nearly every text
		first++
	}
	if !bytes.ContainsFunc(b[first:], isUndrawn) {
		return b, rest
	}
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		if !isUndrawn(r) {
			shown = append(shown, b[:n]...)
		} else {
			for _, unit := range utf16.AppendRune(nil, r) {
				shown = fmt.Appendf(shown, `\u%04x`, unit)
			}
		}
		b = b[n:]
	}
	return shown, rest
}

func isUndrawn(r rune) bool { return r == 0x7f || isHidden(r) }

func isPlain(s string) bool {
	for i := range len(s) {
		if s[i] < 0x20 || s[i] >= 0x7f {
			return false
		}
	}
	return true
}

// isHidden reports whether a terminal does not draw a character, or draws it elsewhere: C1 controls, bidirectional and
// other format characters, line separators, fillers, and variation selectors, which can hide a text.
func isHidden(r rune) bool {
	switch {
	case r < 0x80:
		return false
	case r < 0xa0, r == 0x2028, r == 0x2029:
		return true
	case r == 0x200d, r == 0x200c, r == 0xfe0e, r == 0xfe0f: // part of emoji, the joiners of some scripts too
		return false
	}
	return unicode.In(r, unicode.Cf, unicode.Co, unicode.Cs, unicode.Other_Default_Ignorable_Code_Point,
		unicode.Variation_Selector)
}
