package text

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
)

// maxLine limits one line of Lines, in bytes.
const maxLine = 64 << 10

// Lines reads a terminal or a pipe line by line. A goroutine reads, so that a question can end with its context while
// the read still waits: a read on a terminal cannot be cancelled. It starts with the first question, so that an input
// that is never asked keeps its bytes.
type Lines struct {
	in    *bufio.Reader
	start sync.Once
	want  chan struct{}
	got   chan line
	asked bool // a read is in progress, or its line was not taken
}

type line struct {
	text string
	err  error
}

// NewLines returns the lines of in. Nothing else may read from in.
func NewLines(in io.Reader) *Lines {
	return &Lines{in: bufio.NewReaderSize(in, 4096), want: make(chan struct{}, 1), got: make(chan line, 1)}
}

// Next returns the next line without its end, io.EOF behind the last, or the context's error when ctx ends first.
func (r *Lines) Next(ctx context.Context) (string, error) {
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
		return "", ctx.Err()
	}
}

func (r *Lines) loop() {
	for range r.want {
		text, err := r.read()
		r.got <- line{text, err}
	}
}

// read takes one line of bounded length; a last line without its newline counts.
func (r *Lines) read() (string, error) {
	var b strings.Builder
	for {
		part, err := r.in.ReadSlice('\n')
		b.Write(part)
		switch {
		case b.Len() > maxLine:
			return "", fmt.Errorf("an answer is longer than %d KB", maxLine>>10)
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
