package model

import (
	"errors"
	"io"
	"net"
	"net/http"
	"time"
)

// An answer with an error status is read for its message only: so much of it, and for so long.
const (
	maxErrorBody  = 1 << 20
	maxErrorDelay = 30 * time.Second
)

var errTooLarge = errors.New("the answer is larger than the client takes")

// newHTTPClient is a client that keeps its connections and follows no redirect: a POST that is redirected becomes a
// GET or takes the key to another host, and what the user has to do is correct the base URL.
func newHTTPClient() *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			Proxy:                 http.ProxyFromEnvironment,
			DialContext:           (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 15 * time.Second}).DialContext,
			ForceAttemptHTTP2:     true,
			TLSHandshakeTimeout:   20 * time.Second,
			IdleConnTimeout:       90 * time.Second,
			MaxIdleConnsPerHost:   8,
			ExpectContinueTimeout: time.Second,
			WriteBufferSize:       64 << 10,
			ReadBufferSize:        32 << 10,
			// A connection that died silently is noticed by a ping, not after the whole attempt's time.
			HTTP2: &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 20 * time.Second},
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// bounded is an answer's body as far as the client reads it.
func (c *Client) bounded(a attempt, res *http.Response) io.ReadCloser {
	b := &boundedBody{ReadCloser: res.Body, left: c.options.MaxResponse}
	if res.StatusCode >= 400 {
		b.left = min(b.left, maxErrorBody)
		b.cutSilently = true
		b.timer = time.AfterFunc(min(c.options.Idle, maxErrorDelay), func() { a.cancel(errIdle) })
	}
	return b
}

// boundedBody ends with errTooLarge, or just ends, after a number of bytes.
type boundedBody struct {
	io.ReadCloser
	left        int64
	cutSilently bool
	timer       *time.Timer // ends the attempt if it is not closed before; nil for none
}

func (b *boundedBody) Close() error {
	if b.timer != nil {
		b.timer.Stop()
	}
	return b.ReadCloser.Close()
}

func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		if b.cutSilently {
			return 0, io.EOF
		}
		// One byte more tells an answer of exactly the limit from a larger one.
		n, err := b.ReadCloser.Read(make([]byte, 1))
		if n > 0 {
			return 0, errTooLarge
		}
		return 0, err
	}
	if int64(len(p)) > b.left {
		p = p[:b.left]
	}
	n, err := b.ReadCloser.Read(p)
	b.left -= int64(n)
	return n, err
}
