package view

import "unicode/utf8"

// Limits of what one event may weigh in a page. The record keeps everything; the page says how much it left out.
const (
	maxString = 256 << 10 // bytes of one string value
	maxEvent  = 1 << 20   // bytes of one event after its strings were cut
	maxDepth  = 64        // nesting; deeper lines are shown as plain text
)

// safeJSON copies one line of the record as JSON that can stand inside a script element: it holds no <, > or &, no line
// breaks and no broken UTF-8. The line is a JSON object already (jsonl.IsObject), so that no grammar is needed here.
type safeJSON struct {
	in   []byte
	pos  int
	out  []byte
	left int // bytes of string values that were left out
}

// special are the bytes that end the fast run through a string.
var special = func() (t [256]bool) {
	for i := 0x80; i < 0x100; i++ {
		t[i] = true
	}
	for _, c := range []byte{'"', '\\', '<', '>', '&', 0x7f} {
		t[c] = true
	}
	return t
}()

const hexDigits = "0123456789abcdef"

// copyEvent appends line to out in its safe form, without left bytes of its texts. Of an event that is too deep or too
// big for a page nothing is appended.
func copyEvent(out, line []byte) (_ []byte, left int, ok bool) {
	s := safeJSON{in: line, out: out}
	for depth := 0; s.pos < len(line); {
		c := line[s.pos]
		switch c {
		case '"':
			s.text()
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		if s.pos++; c > ' ' {
			s.out = append(s.out, c)
		}
		if depth > maxDepth || len(s.out) > len(out)+maxEvent {
			return out, 0, false
		}
	}
	return s.out, s.left, true
}

// text copies a string with its quotes, cut after maxString bytes of output.
func (s *safeJSON) text() {
	s.pos++
	s.out = append(s.out, '"')
	for end := len(s.out) + maxString; ; {
		start := s.pos
		for !special[s.in[s.pos]] {
			s.pos++
		}
		kept := min(s.pos-start, max(end-len(s.out), 0))
		s.out = append(s.out, s.in[start:start+kept]...)
		s.left += s.pos - start - kept
		if s.in[s.pos] == '"' {
			s.pos++
			s.out = append(s.out, '"')
			return
		}
		from, start := len(s.out), s.pos
		if s.odd(); from >= end {
			s.out = s.out[:from]
			s.left += s.pos - start
		}
	}
}

// odd copies one character that cannot be copied blindly.
func (s *safeJSON) odd() {
	c, n := s.in[s.pos], 1
	switch {
	case c == '\\':
		if n = 2; s.in[s.pos+1] == 'u' {
			n = len(`\u0000`)
		}
		s.out = append(s.out, s.in[s.pos:s.pos+n]...)
	case c < utf8.RuneSelf:
		s.out = append(s.out, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
	default:
		var r rune
		if r, n = utf8.DecodeRune(s.in[s.pos:]); r == '\u2028' || r == '\u2029' {
			s.out = append(s.out, '\\', 'u', '2', '0', '2', hexDigits[r&15])
		} else {
			s.out = utf8.AppendRune(s.out, r) // of broken UTF-8 the replacement character
		}
	}
	s.pos += n
}
