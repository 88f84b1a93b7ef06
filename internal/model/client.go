package model

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

const (
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
	api       openai.Client
	http      *http.Client
	assembler assembler
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
	c.shown = shownURL(u) + "/chat/completions"
	c.maxTokens = maxTokensField(u)
	c.http = newHTTPClient()
	c.api = openai.Client{Options: c.requestOptions(u)}
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

// requestOptions configures the openai client completely. The client is made as a literal of its request options and
// not by openai.NewClient, because that one reads OPENAI_API_KEY, OPENAI_BASE_URL, OPENAI_ORG_ID and, with
// OPENAI_CUSTOM_HEADERS, headers of any name: a key meant for another endpoint would be sent to this one. Client.Post,
// the only method in use here, needs nothing but the options.
func (c *Client) requestOptions(u *url.URL) []option.RequestOption {
	base := *u
	base.RawQuery = ""
	// The openai client adds the slash that makes this a directory to the decoded path only, and loses an escaped one.
	base.Path += "/"
	if base.RawPath != "" {
		base.RawPath += "/"
	}
	options := []option.RequestOption{
		option.WithBaseURL(base.String()),
		option.WithHTTPClient(c.http),
		option.WithMaxRetries(0),
		option.WithHeader("User-Agent", c.options.UserAgent),
	}
	if c.key != "" {
		options = append(options, option.WithAPIKey(c.key))
	}
	for name, values := range u.Query() {
		for _, v := range values {
			options = append(options, option.WithQueryAdd(name, v))
		}
	}
	return options
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
	var res *http.Response
	accept := "application/json"
	if c.options.Stream {
		accept = "text/event-stream, application/json"
	}
	b := c.assembler.body(c.head(r), r.Messages)
	err := c.api.Post(attempt, "chat/completions", nil, &res,
		option.WithRequestBody("application/json", b),
		option.WithMiddleware(c.exchange(attempt, b)),
		option.WithHeader("Accept", accept))
	if res == nil {
		return nil, c.transportFailure(ctx, attempt, err)
	}
	defer res.Body.Close()
	reply, failure := c.answer(ctx, attempt, res)
	if failure != nil {
		return nil, failure
	}
	return reply, nil
}
