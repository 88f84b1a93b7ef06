package model

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"

	"strings"
	"sync"
	"time"

	"github.com/git-tilth/git-tilth/internal/proc"
)

const (
	chatPath = "/chat/completions"

	defaultTimeout     = 15 * time.Minute
	defaultMaxResponse = 64 << 20

	// Limits for reading the body of an error answer.
	maxErrorBody      = 1 << 20
	defaultErrorDelay = 30 * time.Second
)

// Client sends requests to one model at one endpoint. It is safe for concurrent use and reuses its connections.
type Client struct {
	options Options
	model   []byte // JSON
	key     string
	shown   string // the URL in errors, without user, password and query
	url     string
	http    *http.Client
	listed  sync.Once // the endpoint's list of models was read for the price
}

// New returns a client and sends nothing. The error reports an invalid base URL.
func New(e Endpoint, o Options) (*Client, error) {
	u, err := parseBaseURL(e.BaseURL)
	if err != nil {
		return nil, err
	}
	u.Path += chatPath
	if u.RawPath != "" {
		u.RawPath += chatPath
	}
	return &Client{options: withDefaults(o), key: strings.TrimSpace(e.APIKey), model: marshal(e.Model),
		shown: shownURL(u), http: newHTTPClient(), url: u.String()}, nil
}

func withDefaults(o Options) Options {
	o.Timeout = cmp.Or(o.Timeout, defaultTimeout)
	o.ErrorDelay = cmp.Or(o.ErrorDelay, defaultErrorDelay)
	o.MaxResponse = cmp.Or(o.MaxResponse, defaultMaxResponse)
	o.UserAgent = cmp.Or(o.UserAgent, "git-tilth")
	if o.Now == nil {
		o.Now = proc.Now
	}
	return o
}

func parseBaseURL(base string) (*url.URL, error) {
	base = strings.TrimSpace(base)
	if base == "" {
		return nil, errors.New("no base URL for the model endpoint")
	}
	u, err := url.Parse(base)
	if err != nil {
		// The parser's error quotes the whole URL, which may have a password.
		return nil, errors.New("the model endpoint's base URL is not a URL")
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("the model endpoint's base URL %q is not an http or https URL", shownURL(u))
	}
	u.Path = strings.TrimRight(u.Path, "/")
	u.RawPath = strings.TrimRight(u.RawPath, "/")
	u.Fragment, u.RawFragment = "", ""
	return u, nil
}

func shownURL(u *url.URL) string {
	shown := *u
	shown.User, shown.RawQuery, shown.Fragment = nil, "", ""
	// Without a scheme, user:password@host parses as a URL with the scheme user.
	if i := strings.LastIndexByte(shown.Opaque, '@'); i >= 0 {
		shown.Opaque = shown.Opaque[i+1:]
	}
	return shown.String()
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Chat makes exactly one attempt. The error is always a *Failure.
func (c *Client) Chat(ctx context.Context, r Request) (*Reply, error) {
	var reply *Reply
	failure := c.try(ctx, c.options.Timeout, http.MethodPost, c.url, c.body(r), func(body []byte) (f *Failure) {
		reply, f = parseReply(body)
		return f
	})
	if failure != nil {
		c.book(ctx, &failure.Usage)
		return nil, failure
	}
	c.book(ctx, &reply.Usage)
	return reply, nil
}

// try makes one request within a time limit that includes reading, and classifies the answer. read reads the body of a
// successful answer.
func (c *Client) try(caller context.Context, limit time.Duration, method, at string, body []byte,
	read func(body []byte) *Failure) *Failure {
	ctx, cancel := context.WithTimeout(caller, limit)
	defer cancel()
	req, err := c.newRequest(ctx, method, at, body)
	if err != nil {
		return c.broken(caller, ctx, 0, err)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return c.broken(caller, ctx, 0, err)
	}
	defer res.Body.Close()
	var failure *Failure
	if res.StatusCode < 200 || res.StatusCode > 299 {
		// The status counts even if the body does not arrive.
		timer := time.AfterFunc(c.options.ErrorDelay, cancel)
		said, _ := io.ReadAll(io.LimitReader(res.Body, min(c.options.MaxResponse, maxErrorBody)))
		timer.Stop()
		failure, err = statusFailure(res.StatusCode, res.Header, said), caller.Err()
	} else if said, unread := io.ReadAll(http.MaxBytesReader(nil, res.Body, c.options.MaxResponse)); unread == nil {
		failure = read(said)
	} else {
		err = unread
	}
	switch {
	case err != nil:
		return c.broken(caller, ctx, res.StatusCode, err)
	case failure == nil:
		return nil
	}
	return c.complete(failure.until(res.Header, c.options.Now()), res.StatusCode)
}

func (c *Client) newRequest(ctx context.Context, method, at string, body []byte) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, at, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", c.options.UserAgent)
	req.Header.Set("Accept", "application/json")
	if c.key != "" {
		req.Header.Set("Authorization", "Bearer "+c.key)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	return req, nil
}

// body returns a request. The messages come last, so that the beginning stays the same from turn to turn.
func (c *Client) body(r Request) []byte {
	var b bytes.Buffer
	b.WriteString(`{"model":`)
	b.Write(c.model)
	if len(r.Tools) > 0 {
		b.WriteString(`,"tools":`)
		b.Write(r.Tools)
	}
	b.WriteString(`,"messages":[`)
	for i, m := range r.Messages {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(m)
	}
	b.WriteString(`]}`)
	return b.Bytes()
}

// newHTTPClient returns a client that reuses connections and follows no redirect. A redirected POST becomes a GET, or
// sends the key to another host, so the user must correct the base URL.
func newHTTPClient() *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			Proxy:                 http.ProxyFromEnvironment,
			DialContext:           (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 15 * time.Second}).DialContext,
			TLSHandshakeTimeout:   20 * time.Second,
			IdleConnTimeout:       90 * time.Second,
			MaxIdleConnsPerHost:   8,
			ExpectContinueTimeout: time.Second,
			WriteBufferSize:       64 << 10,
			ReadBufferSize:        32 << 10,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
