package proc

import (
	"bytes"
	"fmt"
	"unicode/utf8"
)

// maxSecret is longer than most secrets that clean redacts, in bytes.
const maxSecret = 4 << 10

// maxLine is the longest line that OnLine gets, in bytes.
const maxLine = 32 << 20

// headTail keeps the beginning and the end of its input in bounded memory. It is not safe for concurrent use.
type headTail struct {
	limit int
	// headOnly keeps the first limit bytes and no end.
	headOnly bool
	// clean redacts secrets in the kept parts; nil redacts nothing. It does not recognise half a secret, so there is a
	// margin on both sides of the cut.
	clean  func(string) string
	margin int
	head   []byte
	tail   []byte // the last bytes, in order, once compacted
	total  int64
}

func (b *headTail) Write(p []byte) (int, error) {
	n := len(p)
	b.total += int64(n)
	if b.headOnly {
		b.head = append(b.head, p[:min(n, b.limit-len(b.head))]...)
		return n, nil
	}
	if room := b.limit/2 + b.margin - len(b.head); room > 0 {
		k := min(room, len(p))
		b.head = append(b.head, p[:k]...)
		p = p[k:]
	}
	keep := b.limit - b.limit/2 + b.margin
	if len(p) > keep {
		p = p[len(p)-keep:]
	}
	b.tail = append(b.tail, p...)
	if len(b.tail) > 2*keep+4096 {
		b.tail = append(b.tail[:0], b.tail[len(b.tail)-keep:]...)
	}
	return n, nil
}

// Bytes returns the kept bytes and whether something was left out. It cuts between lines if a line end is near, else
// between characters.
func (b *headTail) Bytes() ([]byte, bool) {
	if b.headOnly {
		return b.head, b.total > int64(b.limit)
	}
	keep := b.limit - b.limit/2
	if b.total <= int64(b.limit) {
		return append(b.head, b.tail...), false
	}
	head, tail := b.head, b.tail
	if extra := len(tail) - keep - b.margin; extra > 0 {
		tail = tail[extra:]
	}
	if b.clean != nil {
		head, tail = []byte(b.clean(string(head))), []byte(b.clean(string(tail)))
		head, tail = head[:max(0, len(head)-b.margin)], tail[min(len(tail), b.margin):]
	}
	head = cutEnd(head[:min(len(head), b.limit/2)])
	tail = cutStart(tail[max(0, len(tail)-keep):])
	left := b.total - int64(len(head)) - int64(len(tail))
	var out bytes.Buffer
	out.Write(head)
	if len(head) > 0 && head[len(head)-1] != '\n' {
		out.WriteByte('\n')
	}
	fmt.Fprintf(&out, "[... %d bytes left out here ...]\n", left)
	out.Write(tail)
	return out.Bytes(), true
}

// nearLine is how far a cut may move to fall between two lines.
const nearLine = 512

func cutEnd(p []byte) []byte {
	if i := bytes.LastIndexByte(p, '\n'); i >= 0 && len(p)-i <= nearLine {
		return p[:i+1]
	}
	for i := len(p) - 1; i >= max(0, len(p)-utf8.UTFMax); i-- {
		if !utf8.FullRune(p[i:]) {
			return p[:i]
		}
	}
	return p
}

func cutStart(p []byte) []byte {
	if i := bytes.IndexByte(p, '\n'); i >= 0 && i < nearLine && i+1 < len(p) {
		return p[i+1:]
	}
	for i := 0; i < utf8.UTFMax && i < len(p); i++ {
		if utf8.RuneStart(p[i]) {
			return p[i:]
		}
	}
	return p
}

// lineSplitter passes on whole lines, each cut at max bytes.
type lineSplitter struct {
	fn   func([]byte)
	max  int
	line []byte
}

func (s *lineSplitter) Write(p []byte) (int, error) {
	n := len(p)
	for i := bytes.IndexByte(p, '\n'); i >= 0; i = bytes.IndexByte(p, '\n') {
		s.add(p[:i])
		s.flush()
		p = p[i+1:]
	}
	s.add(p)
	return n, nil
}

func (s *lineSplitter) add(p []byte) {
	if room := s.max - len(s.line); len(p) > room {
		p = p[:max(room, 0)]
	}
	s.line = append(s.line, p...)
}

func (s *lineSplitter) flush() {
	s.fn(s.line)
	s.line = s.line[:0]
}

// Close hands on a last line without a newline.
func (s *lineSplitter) Close() {
	if len(s.line) > 0 {
		s.flush()
	}
}
