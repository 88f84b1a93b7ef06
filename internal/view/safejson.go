package view

import (
	"errors"
	"unicode/utf8"
)

// Limits of what one event may weigh in a page. The record keeps everything; the page says how much it left out.
const (
	maxString = 256 << 10 // bytes of one string value
	maxEvent  = 1 << 20   // bytes of one event after its strings were cut
	maxDepth  = 64        // nesting; deeper lines are shown as plain text
)

var (
	errNotObject = errors.New("not a JSON object")
	errTooBig    = errors.New("event too big for the page")
)

// safeJSON copies one line of the record as JSON that can stand inside a script element: it holds no <, > or &, no line
// breaks and no broken UTF-8.
type safeJSON struct {
	in    []byte
	pos   int
	out   []byte
	left  int // bytes of string values that were left out
	limit int // length of out at which the event is too big
}

// Bytes that end the fast run through a string.
var special = func() (t [256]bool) {
	for i := range 0x20 {
		t[i] = true
	}
	for i := 0x80; i < 0x100; i++ {
		t[i] = true
	}
	for _, c := range []byte{'"', '\\', '<', '>', '&', 0x7f} {
		t[c] = true
	}
	return t
}()

const hexDigits = "0123456789abcdef"

// copyEvent appends line to out in its safe form, without left bytes of its texts. On an error out is returned as it
// was given.
func (s *safeJSON) copyEvent(out, line []byte) (_ []byte, left int, err error) {
	*s = safeJSON{in: line, out: out, limit: len(out) + maxEvent}
	s.space()
	if s.peek() != '{' {
		return out, 0, errNotObject
	}
	if err := s.object(0); err != nil {
		return out, 0, err
	}
	s.space()
	if s.pos != len(s.in) {
		return out, 0, errNotObject
	}
	return s.out, s.left, nil
}

func (s *safeJSON) peek() byte {
	if s.pos < len(s.in) {
		return s.in[s.pos]
	}
	return 0
}

func (s *safeJSON) space() {
	for s.pos < len(s.in) {
		switch s.in[s.pos] {
		case ' ', '\t', '\n', '\r':
			s.pos++
		default:
			return
		}
	}
}

func (s *safeJSON) value(depth int) error {
	if depth > maxDepth {
		return errTooBig
	}
	s.space()
	switch c := s.peek(); c {
	case '{':
		return s.object(depth)
	case '[':
		return s.array(depth)
	case '"':
		return s.text(maxString)
	case 't':
		return s.word("true")
	case 'f':
		return s.word("false")
	case 'n':
		return s.word("null")
	default:
		return s.number()
	}
}

func (s *safeJSON) object(depth int) error {
	s.pos++
	s.out = append(s.out, '{')
	s.space()
	if s.peek() == '}' {
		s.pos++
		s.out = append(s.out, '}')
		return nil
	}
	for {
		s.space()
		if s.peek() != '"' {
			return errNotObject
		}
		if err := s.text(maxString); err != nil {
			return err
		}
		s.space()
		if s.peek() != ':' {
			return errNotObject
		}
		s.pos++
		s.out = append(s.out, ':')
		if err := s.value(depth + 1); err != nil {
			return err
		}
		if last, err := s.after('}'); last || err != nil {
			return err
		}
	}
}

func (s *safeJSON) array(depth int) error {
	s.pos++
	s.out = append(s.out, '[')
	s.space()
	if s.peek() == ']' {
		s.pos++
		s.out = append(s.out, ']')
		return nil
	}
	for {
		if err := s.value(depth + 1); err != nil {
			return err
		}
		if last, err := s.after(']'); last || err != nil {
			return err
		}
	}
}

// after copies what stands after a member or an element: a comma, or the end, which makes it the last.
func (s *safeJSON) after(end byte) (last bool, err error) {
	if len(s.out) > s.limit {
		return false, errTooBig
	}
	s.space()
	b := s.peek()
	if b != ',' && b != end {
		return false, errNotObject
	}
	s.pos++
	s.out = append(s.out, b)
	return b == end, nil
}

func (s *safeJSON) word(w string) error {
	if len(s.in)-s.pos < len(w) || string(s.in[s.pos:s.pos+len(w)]) != w {
		return errNotObject
	}
	s.pos += len(w)
	s.out = append(s.out, w...)
	return nil
}

// number accepts exactly JSON's grammar: what a lenient reader lets through, the page's JSON.parse would reject
// together with the other events of its block.
func (s *safeJSON) number() error {
	start := s.pos
	if s.peek() == '-' {
		s.pos++
	}
	whole := s.pos
	if s.digits() == 0 || s.in[whole] == '0' && s.pos > whole+1 {
		return errNotObject
	}
	if s.peek() == '.' {
		s.pos++
		if s.digits() == 0 {
			return errNotObject
		}
	}
	if c := s.peek(); c == 'e' || c == 'E' {
		s.pos++
		if c := s.peek(); c == '+' || c == '-' {
			s.pos++
		}
		if s.digits() == 0 {
			return errNotObject
		}
	}
	s.out = append(s.out, s.in[start:s.pos]...)
	return nil
}

func (s *safeJSON) digits() (n int) {
	for s.pos < len(s.in) && s.in[s.pos] >= '0' && s.in[s.pos] <= '9' {
		s.pos++
		n++
	}
	return n
}

// text copies a string value, cut after max bytes of output.
func (s *safeJSON) text(max int) error {
	s.pos++
	s.out = append(s.out, '"')
	end := len(s.out) + max
	for {
		start := s.pos
		for s.pos < len(s.in) && !special[s.in[s.pos]] {
			s.pos++
		}
		s.run(start, end)
		if s.pos >= len(s.in) {
			return errNotObject
		}
		c := s.in[s.pos]
		if c == '"' {
			s.pos++
			s.out = append(s.out, '"')
			return nil
		}
		if err := s.odd(c, len(s.out) < end); err != nil {
			return err
		}
	}
}

// run copies plain bytes from start as far as the cut allows.
func (s *safeJSON) run(start, end int) {
	n := s.pos - start
	if room := end - len(s.out); n > room {
		room = max(room, 0)
		s.left += n - room
		n = room
	}
	s.out = append(s.out, s.in[start:start+n]...)
}

// odd copies one character that cannot be copied blindly; keep is false behind the cut, where it is only read.
func (s *safeJSON) odd(c byte, keep bool) error {
	from, start := len(s.out), s.pos
	switch {
	case c == '\\':
		if err := s.escape(); err != nil {
			return err
		}
	case c < 0x20:
		return errNotObject
	case c < utf8.RuneSelf:
		s.pos++
		s.out = append(s.out, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
	default:
		r, n := utf8.DecodeRune(s.in[s.pos:])
		s.pos += n
		switch {
		case r == utf8.RuneError && n == 1:
			s.out = append(s.out, "\uFFFD"...)
		case r == '\u2028' || r == '\u2029':
			s.out = append(s.out, '\\', 'u', '2', '0', '2', hexDigits[r&15])
		default:
			s.out = append(s.out, s.in[start:s.pos]...)
		}
	}
	if !keep {
		s.out = s.out[:from]
		s.left += s.pos - start
	}
	return nil
}

func (s *safeJSON) escape() error {
	if s.pos+1 >= len(s.in) {
		return errNotObject
	}
	switch s.in[s.pos+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		s.out = append(s.out, s.in[s.pos:s.pos+2]...)
		s.pos += 2
		return nil
	case 'u':
		if s.pos+6 > len(s.in) {
			return errNotObject
		}
		for _, c := range s.in[s.pos+2 : s.pos+6] {
			if !isHex(c) {
				return errNotObject
			}
		}
		s.out = append(s.out, s.in[s.pos:s.pos+6]...)
		s.pos += 6
		return nil
	}
	return errNotObject
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}
