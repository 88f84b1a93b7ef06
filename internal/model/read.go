package model

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net/http"
	"time"
)

var (
	errTimeout = errors.New("the attempt's time is up")
	errIdle    = errors.New("the stream fell silent")
)

// afterDone is the wait for the end of a finished stream, so that the connection can be used again.
const afterDone = 100 * time.Millisecond

// read reads a complete successful answer. The answer's content decides its shape, not the request: some gateways
// stream always, others never.
func (c *Client) read(a attempt, res *http.Response) (*Reply, *Failure, error) {
	mediaType, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if mediaType == "text/event-stream" {
		silence := time.AfterFunc(c.options.Idle, func() { a.cancel(errIdle) })
		reply, failure, err := readStream(&watched{res.Body, silence, c.options.Idle})
		if err == nil {
			a.drain(res.Body)
		}
		return reply, failure, err
	}
	var buf bytes.Buffer
	if n := res.ContentLength; n > 0 && n < 1<<20 {
		buf.Grow(int(n) + bytes.MinRead)
	}
	if _, err := io.Copy(&buf, res.Body); err != nil {
		return nil, nil, err
	}
	if looksLikeSSE(buf.Bytes()) {
		return readStream(&buf)
	}
	reply, failure := parseReply(buf.Bytes())
	return reply, failure, nil
}

func (a attempt) drain(r io.Reader) {
	timer := time.AfterFunc(afterDone, func() { a.cancel(nil) })
	defer timer.Stop()
	io.CopyN(io.Discard, r, 4<<10) // the answer is complete; an error only costs the connection
}

// watched ends the attempt when a read takes too long.
type watched struct {
	io.Reader
	timer *time.Timer
	idle  time.Duration
}

func (w *watched) Read(p []byte) (int, error) {
	w.timer.Reset(w.idle)
	n, err := w.Reader.Read(p)
	w.timer.Stop()
	return n, err
}
