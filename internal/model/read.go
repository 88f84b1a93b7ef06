package model

import (
	"bytes"
	"errors"
	"io"
	"net/http"
)

var errIdle = errors.New("the stream fell silent")

// read reads a successful answer whole. Its shape is told by what it is, not by what was asked for: some gateways
// stream always, others never.
func (c *Client) read(res *http.Response) (*Reply, *Failure, error) {
	var buf bytes.Buffer
	if n := res.ContentLength; n > 0 && n < 1<<20 {
		buf.Grow(int(n) + bytes.MinRead)
	}
	if _, err := io.Copy(&buf, res.Body); err != nil {
		return nil, nil, err
	}
	reply, failure := parseReply(buf.Bytes())
	return reply, failure, nil
}
