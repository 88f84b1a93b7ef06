package model

import (
	"bufio"
	"bytes"
	"io"
)

// sseReader reads server-sent events. Comments, ids and retry times are skipped: what counts is the data.
type sseReader struct {
	lines *bufio.Reader
}

// next gives the next event's data, its lines joined by newlines, and io.EOF after the last. An event that the end of
// the stream leaves without its blank line is given too; whether the answer is whole is told by what it holds.
func (r *sseReader) next() ([]byte, error) {
	var data []byte
	seen := false
	for {
		line, err := r.lines.ReadBytes('\n')
		if err != nil && err != io.EOF {
			return nil, err
		}
		line = bytes.TrimRight(line, "\r\n")
		if value, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			if seen {
				data = append(data, '\n')
			}
			data = append(data, bytes.TrimPrefix(value, []byte(" "))...)
			seen = true
		}
		if seen && (len(line) == 0 || err == io.EOF) {
			return data, nil
		}
		if err == io.EOF {
			return nil, io.EOF
		}
	}
}

// looksLikeSSE tells a stream that came under another content type.
func looksLikeSSE(body []byte) bool {
	body = bytes.TrimSpace(body)
	begins := func(s string) bool { return bytes.HasPrefix(body, []byte(s)) }
	return begins("data:") || begins("event:") || begins(": ")
}
