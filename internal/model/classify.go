package model

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// until takes from the headers how long to wait.
func (f *Failure) until(h http.Header, now time.Time) *Failure {
	if f.Kind == UsageLimit {
		f.LimitReset = f.object.reset(h, now)
	} else if d, ok := retryAfter(h, now); ok {
		f.RetryAfter = new(min(d, longestWait))
	}
	return f
}

// statusFailure is the table of HTTP statuses.
func statusFailure(status int, h http.Header, body []byte, now time.Time) *Failure {
	e := errorIn(body)
	f := &Failure{Kind: Fatal, Status: status, object: e, Said: saidIn(e, body)}
	switch {
	case status == http.StatusPaymentRequired, e != nil && e.isLimit(),
		status == http.StatusTooManyRequests && isLongLimit(e.reset(h, now), h, now):
		f.Kind = UsageLimit
	case status >= 300 && status < 400:
		f.Said = "it redirects to " + redirectTarget(h)
	case status == http.StatusRequestTimeout, status == http.StatusConflict, status == http.StatusTooEarly,
		status == http.StatusTooManyRequests, status >= 500, status < 200:
		f.Kind = HTTP
	}
	return f
}

// isLongLimit distinguishes a 429 that means "come back tomorrow" from one that means "not so fast".
func isLongLimit(reset time.Time, h http.Header, now time.Time) bool {
	if asked, ok := retryAfter(h, now); ok {
		return asked > longestWait
	}
	return !reset.IsZero() && reset.Sub(now) > longestWait
}

func saidIn(e *errorObject, body []byte) string {
	switch {
	case e != nil:
		return e.message
	case looksLikeHTML(body):
		return "a page of HTML"
	}
	return oneLine(body)
}

// redirectTarget returns the target of a redirect, without secrets in the URL.
func redirectTarget(h http.Header) string {
	u, err := url.Parse(h.Get("Location"))
	if err != nil || h.Get("Location") == "" {
		return "nowhere"
	}
	return oneLine(shownURL(u))
}

// complete gives a failure its status and its message.
func (c *Client) complete(f *Failure, status int) *Failure {
	f.Status = status
	f.Said = c.hideKey(f.Said)
	var b strings.Builder
	b.WriteString(c.shown)
	if status != 0 && status != http.StatusOK {
		fmt.Fprintf(&b, ": %d %s", status, http.StatusText(status))
	}
	if f.Said != "" {
		b.WriteString(": " + f.Said)
	}
	if !f.LimitReset.IsZero() {
		b.WriteString(" (the limit ends at " + f.LimitReset.UTC().Format(time.RFC3339) + ")")
	}
	f.Message = b.String()
	return f
}

// hideKey: endpoints quote the key that they refuse. What is shorter than four characters is a placeholder for servers
// that need no key, and would only garble the text.
func (c *Client) hideKey(s string) string {
	if len(c.key) < 4 {
		return s
	}
	return strings.ReplaceAll(s, c.key, "[redacted:API_KEY]")
}

// broken returns the failure of a request without a complete answer. The caller's cancellation and our time limits take
// precedence over the network errors that they cause.
func (c *Client) broken(caller context.Context, a attempt, status int, err error) *Failure {
	if op, ok := errors.AsType[*url.Error](err); ok {
		err = op.Err // without the URL, which Message names already and which may hold a key in its query
	}
	kind := Network
	var tooLarge *http.MaxBytesError
	var netErr net.Error
	var record tls.RecordHeaderError
	var certificate *tls.CertificateVerificationError
	said := ""
	switch {
	case caller.Err() != nil:
		kind, said, err = Canceled, "canceled", caller.Err()
	case errors.As(err, &tooLarge):
		kind, said = Malformed, "the answer is larger than the client takes"
	case errors.Is(context.Cause(a), errIdle):
		kind, err = Timeout, fmt.Errorf("%w for %s", errIdle, c.options.Idle)
	case a.Err() != nil:
		kind, err = Timeout, fmt.Errorf("no whole answer within %s: %w", c.options.Timeout, context.Cause(a))
	case errors.As(err, &netErr) && netErr.Timeout():
		kind = Timeout
	case errors.Is(err, http.ErrSchemeMismatch) || errors.As(err, &record) || errors.As(err, &certificate) ||
		strings.HasPrefix(err.Error(), "net/http: invalid header field value"): // such as a newline in the key
		kind = Fatal
	case errors.Is(err, io.ErrUnexpectedEOF):
		err = fmt.Errorf("the answer was cut off: %w", err)
	}
	return c.complete(&Failure{Kind: kind, Said: cmp.Or(said, oneLine(err.Error())), cause: err}, status)
}
