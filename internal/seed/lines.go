package seed

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
)

// lineReader reads lines in a goroutine of its own, so that a question can end
// with its context while the read itself still waits: a read on a terminal
// cannot be taken back. It begins with the first question and not before, so that
// it takes nothing from an input that is never asked for.
type lineReader struct {
	in    *bufio.Reader
	start sync.Once
	want  chan struct{}
	got   chan readLine
	asked bool // a read is under way whose line nobody has taken
}

type readLine struct {
	text string
	err  error
}

func newLineReader(in io.Reader) *lineReader {
	return &lineReader{in: bufio.NewReaderSize(in, 4096), want: make(chan struct{}, 1), got: make(chan readLine, 1)}
}

// next returns the next line without its end, io.EOF behind the last, or
// ErrAborted when ctx ends first.
func (r *lineReader) next(ctx context.Context) (string, error) {
	r.start.Do(func() { go r.loop() })
	if !r.asked {
		r.asked = true
		r.want <- struct{}{}
	}
	select {
	case l := <-r.got:
		r.asked = false
		return l.text, l.err
	case <-ctx.Done():
		return "", aborted(ctx)
	}
}

func (r *lineReader) loop() {
	for range r.want {
		text, err := r.read()
		r.got <- readLine{text, err}
	}
}

// read takes one line of bounded length; a last line without its newline counts.
func (r *lineReader) read() (string, error) {
	var b strings.Builder
	for {
		part, err := r.in.ReadSlice('\n')
		b.Write(part)
		switch {
		case b.Len() > maxTextBytes:
			return "", fmt.Errorf("an answer is longer than %s", byteSize(maxTextBytes))
		case err == nil || (errors.Is(err, io.EOF) && b.Len() > 0):
			return strings.TrimRight(b.String(), "\r\n"), nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF):
			return "", io.EOF
		default:
			return "", fmt.Errorf("the answers cannot be read: %w", err)
		}
	}
}
