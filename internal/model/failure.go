package model

import (
	"slices"
	"time"
)

// Kind is the fault of an answer, a word for the record.
type Kind string

// The kinds of failure. HealthOK is the record's word for a call without a failure.
const (
	HealthOK = "ok"

	Empty       Kind = "empty"            // neither content nor tool calls
	ErrorObject Kind = "error_object"     // an error object in an answer with status 200
	FinishError Kind = "finish_error"     // finish_reason "error"
	Malformed   Kind = "malformed"        // not a chat completion: broken JSON, HTML, no choices, too large
	HTTP        Kind = "http"             // a temporary status: 408, 409, 425, 429, 5xx
	Network     Kind = "network"          // no connection, or one broken before the end of the answer
	Timeout     Kind = "timeout"          // the endpoint exceeded a timeout of Options
	Ended       Kind = "ended"            // an agent program ended before its turn was complete
	Fatal       Kind = "fatal"            // a retry cannot help: 401, 404, an invalid request, an untrusted certificate
	UsageLimit  Kind = "usage_limit"      // the account's allowance is used up until LimitReset, if known
	Overflow    Kind = "context_overflow" // the conversation is too long for the model
	Canceled    Kind = "canceled"         // the caller's context ended
)

// After these failures the same history is sent again.
var (
	transient = []Kind{Malformed, HTTP, Network, Timeout, Ended}
	empty     = []Kind{Empty, ErrorObject, FinishError}
)

// Transient reports whether the failure of the endpoint or agent program is temporary.
func (k Kind) Transient() bool { return slices.Contains(transient, k) }

// Empty reports whether the answer was empty.
func (k Kind) Empty() bool { return slices.Contains(empty, k) }

// Failure is a missing answer, or an answer that is not a turn. Message is one line with the endpoint, the status and
// the endpoint's words, without the key.
type Failure struct {
	Kind         Kind
	Status       int // HTTP status, or 0
	Message      string
	Said         string         // the endpoint's text, shortened to a line, or ""
	RetryAfter   *time.Duration // wait that the endpoint asks for; nil if unknown, 0 for none
	LimitReset   time.Time      // end of a UsageLimit; zero if unknown
	FinishReason string
	Usage        Usage  // usage of the failed call, if the endpoint reports it
	Fix          string // fix for the user, if known; see Hint
	Misset       bool   // a setting has a value that the agent does not offer

	cause  error
	object *errorObject // source of the failure, for its reset time
}

func (f *Failure) Error() string { return f.Message }

// Unwrap returns the transport's error, or context.Canceled for Canceled.
func (f *Failure) Unwrap() error { return f.cause }

// Retryable reports whether the same request may succeed later.
func (f *Failure) Retryable() bool { return f.Kind.Transient() || f.Kind.Empty() }

// Hint returns the command or setting that fixes the failure, or "".
func (f *Failure) Hint() string {
	switch {
	case f.Fix != "":
		return f.Fix
	case f.Status == 401 || f.Status == 403:
		return "check the API key: TILTH_API_KEY or the role's own (TILTH_EVALUATOR_API_KEY, TILTH_PREP_API_KEY), " +
			"else what git credential fill gives for this URL"
	case f.Status == 404:
		return "check TILTH_BASE_URL and the model's name: git tilth config"
	case f.Status >= 300 && f.Status < 400:
		return "set TILTH_BASE_URL to the address it redirects to"
	case f.Kind == UsageLimit:
		return "git tilth resume, once the limit is lifted"
	}
	return ""
}
