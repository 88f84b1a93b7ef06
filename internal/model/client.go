package model

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

const (
	chatPath = "/chat/completions"

	defaultTimeout     = 15 * time.Minute
	defaultIdle        = 5 * time.Minute
	defaultMaxResponse = 64 << 20
)

// Client asks one model at one endpoint. It is safe for concurrent use, and keeps its connections alive.
type Client struct {
	options   Options
	model     []byte // JSON
	key       string
	shown     string // the URL as errors name it: without user, password and query
	maxTokens string
	invalid   *Failure // what is wrong with the endpoint's settings, told by every Chat
	url       string
	http      *http.Client
}

// New makes a client; nothing is sent. A base URL that cannot be used is reported by CheckBaseURL, and by each Chat as
// a Fatal failure.
func New(e Endpoint, o Options) *Client {
	c := &Client{options: withDefaults(o), key: strings.TrimSpace(e.APIKey)}
	c.model, _ = json.Marshal(e.Model)
	u, err := parseBaseURL(e.BaseURL)
	if err != nil {
		c.invalid = &Failure{Kind: Fatal, Message: err.Error(), cause: err}
		return c
	}
	u.Path += chatPath
	if u.RawPath != "" {
		u.RawPath += chatPath
	}
	c.shown = shownURL(u)
	c.maxTokens = maxTokensField(u)
	c.http = newHTTPClient()
	c.url = u.String()
	return c
}

func withDefaults(o Options) Options {
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	if o.Idle <= 0 {
		o.Idle = defaultIdle
	}
	if o.MaxResponse <= 0 {
		o.MaxResponse = defaultMaxResponse
	}
	if o.UserAgent == "" {
		o.UserAgent = "git-tilth"
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// CheckBaseURL tells what is wrong with a base URL, for a check before anything starts.
func CheckBaseURL(base string) error {
	_, err := parseBaseURL(base)
	return err
}

func parseBaseURL(base string) (*url.URL, error) {
	base = strings.TrimSpace(base)
	if base == "" {
		return nil, errors.New("no base URL for the model endpoint")
	}
	u, err := url.Parse(base)
	if err != nil {
		// The parser's error quotes the whole URL, which may hold a password.
		return nil, errors.New("the model endpoint's base URL is no URL")
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("the model endpoint's base URL %q is no http or https URL", shownURL(u))
	}
	u.Path = strings.TrimRight(u.Path, "/")
	u.RawPath = strings.TrimRight(u.RawPath, "/")
	u.Fragment, u.RawFragment = "", ""
	return u, nil
}

func shownURL(u *url.URL) string {
	shown := *u
	shown.User, shown.RawQuery, shown.Fragment = nil, "", ""
	// Without its scheme, user:password@host is a URL with a scheme called user.
	if i := strings.LastIndexByte(shown.Opaque, '@'); i >= 0 {
		shown.Opaque = shown.Opaque[i+1:]
	}
	return shown.String()
}

// maxTokensField: OpenAI's reasoning models refuse max_tokens, other servers may not know the newer name.
func maxTokensField(u *url.URL) string {
	if u.Hostname() == "api.openai.com" {
		return "max_completion_tokens"
	}
	return "max_tokens"
}

// Close drops idle connections.
func (c *Client) Close() {
	if c.http != nil {
		c.http.CloseIdleConnections()
	}
}

// Chat makes exactly one attempt. The error is always a *Failure.
func (c *Client) Chat(ctx context.Context, r Request) (*Reply, error) {
	if c.invalid != nil {
		return nil, c.invalid
	}
	attempt, end := newAttempt(ctx, c.options.Timeout)
	defer end()
	req, err := c.newRequest(attempt, r)
	if err != nil {
		return nil, c.transportFailure(ctx, attempt, err)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return nil, c.transportFailure(ctx, attempt, err)
	}
	res.Body = c.bounded(attempt, res)
	defer res.Body.Close()
	reply, failure := c.answer(ctx, attempt, res)
	if failure != nil {
		return nil, failure
	}
	return reply, nil
}

func (c *Client) newRequest(ctx context.Context, r Request) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, nil)
	if err != nil {
		return nil, err
	}
	body := c.body(r)
	for _, piece := range body {
		req.ContentLength += int64(len(piece)) // without a length it would go out in chunks, which some servers refuse
	}
	// The transport asks for it again when a kept-alive connection turns out to be closed.
	req.GetBody = func() (io.ReadCloser, error) {
		again := slices.Clone(body) // what is read of it is taken out of it
		return io.NopCloser(&again), nil
	}
	req.Body, _ = req.GetBody()
	req.Header.Set("User-Agent", c.options.UserAgent)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	if c.options.Stream {
		req.Header.Set("Accept", "text/event-stream, application/json")
	}
	if c.key != "" {
		req.Header.Set("Authorization", "Bearer "+c.key)
	}
	return req, nil
}
