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

	"github.com/git-tilth/git-tilth/internal/pattern"
)

// until reads the wait from the headers.
func (f *Failure) until(h http.Header, now time.Time) *Failure {
	if f.Kind == UsageLimit {
		f.LimitReset = f.object.reset(h, now)
	} else if d, ok := retryAfter(h, now); ok {
		f.RetryAfter = &d
	}
	return f
}

// The words of endpoints and agent programs for their failures.
var (
	overflowWords = pattern.New(`(?i)(?:prompt|input) is too long|context[_ ]?(?:length|window|size|limit)`)
	// longWords have this meaning only in a request that is refused for good. A rate limit's message may have them too.
	longWords = pattern.New(`(?i)\b(?:prompt|inputs?|request|tokens?)\b.{0,80}` +
		`(?:exceed|up to \d|longer than|must (?:be <=|have less than) \d)|(?:maximum|model) (?:prompt|model) length|` +
		`range of input length|reduce (?:the length of the|your) (?:message|prompt)`)
	passingWords = pattern.New(`(?i)not your (?:usage|account)|your rate limit|per.?(?:second|minute|min\b)|disk quota`)
	limitWords   = pattern.New(`(?i)usage.?(?:limit|not.included)|quota|exhausted your capacity|` +
		`(?:hit|reached) your (?:[\w.-]+ ){0,3}limit|\b(?:hour|session|daily|weekly|monthly|spend(?:ing)?) limit|` +
		`insufficient.(?:credit|balance|funds)|credit.balance|included credits|request allowance|out of [\w ]*usage|per.day|` +
		`billing.(?:hard.limit|not.active)|\bhard.limit`)
)

// KindOf classifies a failure of an endpoint or agent program by its HTTP status (0 for none) and its words. All
// failures are classified here.
func KindOf(status int, said string) Kind {
	switch {
	case status == 401, status == 404, status >= 300 && status < 400:
		return Fatal
	case overflowWords().MatchString(said):
		return Overflow
	case status >= 500, status == 408, status == 409, status == 425, status > 0 && status < 200:
		return HTTP
	case status == 402:
		return UsageLimit
	case limitWords().MatchString(said) && !Passes(said):
		return UsageLimit
	case status == 429, status == 0:
		return HTTP
	case status == 413, longWords().MatchString(said):
		return Overflow
	}
	return Fatal
}

// Passes reports whether an error's limit is not the account's, or ends within moments.
func Passes(said string) bool { return passingWords().MatchString(said) }

func statusFailure(status int, h http.Header, body []byte) *Failure {
	e := errorIn(body)
	f := &Failure{Status: status, object: e, Said: saidIn(e, body)}
	f.Kind = KindOf(status, e.words()+" "+f.Said)
	if status >= 300 && status < 400 {
		f.Said = "it redirects to " + redirectTarget(h)
	}
	return f
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

// complete sets the status and the message of a failure.
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

// hideKey masks the key, which endpoints quote in a refusal. A key of fewer than four characters is a placeholder for
// servers without keys and is not masked.
func (c *Client) hideKey(s string) string {
	if len(c.key) < 4 {
		return s
	}
	return strings.ReplaceAll(s, c.key, "[redacted:API_KEY]")
}

// broken returns the failure of a request without a complete answer. The caller's cancellation and our time limits
// take precedence over the network errors that they cause.
func (c *Client) broken(caller, attempt context.Context, status int, err error) *Failure {
	if op, ok := errors.AsType[*url.Error](err); ok {
		err = op.Err // without the URL, which is in Message and may have a key in its query
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
		kind, said = Malformed, "the answer is too large"
	case attempt.Err() != nil:
		kind, err = Timeout, fmt.Errorf("no complete answer within %s: %w", c.options.Timeout, attempt.Err())
	case errors.As(err, &netErr) && netErr.Timeout():
		kind = Timeout
	case errors.Is(err, http.ErrSchemeMismatch) || errors.As(err, &record) || errors.As(err, &certificate) ||
		strings.HasPrefix(err.Error(), "net/http: invalid header field value"): // for example a newline in the key
		kind = Fatal
	case errors.Is(err, io.ErrUnexpectedEOF):
		err = fmt.Errorf("the answer was cut off: %w", err)
	}
	return c.complete(&Failure{Kind: kind, Said: cmp.Or(said, oneLine(err.Error())), cause: err}, status)
}
