package model

import "time"

// Kind is the fault of an answer, a word for the record.
type Kind string

// The kinds of failure. HealthOK is the record's word for a call without one.
const (
	HealthOK = "ok"

	Empty       Kind = "empty"        // neither content nor tool calls
	ErrorObject Kind = "error_object" // an error object in an answer with status 200
	FinishError Kind = "finish_error" // finish_reason "error"
	Malformed   Kind = "malformed"    // no chat completion: broken JSON, HTML, no choices, too large
	HTTP        Kind = "http"         // a status that may pass: 408, 409, 425, 429, 5xx
	Network     Kind = "network"      // no connection, or one that broke before the answer was whole
	Timeout     Kind = "timeout"      // the endpoint took longer than Options allow
	Fatal       Kind = "fatal"        // no retry can mend it: 401, 404, an invalid request, an untrusted certificate
	UsageLimit  Kind = "usage_limit"  // the account's allowance is used up, LimitReset says until when if known
	Canceled    Kind = "canceled"     // the caller's context ended
)

// retryable is the only table of failures after which the same history may be sent again.
var retryable = map[Kind]bool{
	Empty: true, ErrorObject: true, FinishError: true, Malformed: true, HTTP: true, Network: true, Timeout: true,
}

// Failure is an answer that is no turn, or no answer. Message is one line with the endpoint, the status and the
// endpoint's words, without the key.
type Failure struct {
	Kind         Kind
	Status       int // HTTP status, 0 if there was none
	Message      string
	Said         string         // the endpoint's own text, cut to a line; "" if it said nothing
	RetryAfter   *time.Duration // how long the endpoint wants to be left alone, nil if it did not say. 0 means at once
	LimitReset   time.Time      // when a UsageLimit ends; zero if not known
	FinishReason string
	Usage        Usage  // what the failed call took all the same, where the endpoint says so
	Mend         string // what the user can do about it, where it is known; Hint knows more
	Misset       bool   // a setting names what an agent does not offer

	cause  error
	object *errorObject // what the failure was read from, for its reset time
}

func (f *Failure) Error() string { return f.Message }

// Unwrap gives the transport's error, or context.Canceled for a Canceled one.
func (f *Failure) Unwrap() error { return f.cause }

// Retryable reports whether the same request may fare better later.
func (f *Failure) Retryable() bool { return retryable[f.Kind] }

// Hint returns the command or setting that helps, or "".
func (f *Failure) Hint() string {
	switch {
	case f.Mend != "":
		return f.Mend
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
