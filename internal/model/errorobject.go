package model

import (
	"bytes"

	"github.com/tidwall/gjson"

	"github.com/git-tilth/git-tilth/internal/jsonl"
)

// errorObject is the value of "error", in the shapes seen: OpenAI {message, type, code}, OpenRouter {message, code (a
// number), metadata}, a plain string, vLLM's {object: "error", message} and FastAPI's {detail}.
type errorObject struct {
	message string
	kind    string // "type"
	code    string // "code", a number in decimal
	whole   gjson.Result
}

// parseErrorObject reads the value of an "error" field; nil if it says that there is none.
func parseErrorObject(r gjson.Result) *errorObject {
	switch r.Raw {
	case "", "null", "false", `""`, "{}", "[]", "0":
		return nil
	}
	if !r.IsObject() {
		return &errorObject{message: oneLine(scalar(r))}
	}
	e := &errorObject{
		message: oneLine(textOf(r.Get("message"))), kind: textOf(r.Get("type")), code: scalar(r.Get("code")), whole: r,
	}
	if e.message == "" {
		e.message = oneLine(r.Raw)
	} else if raw := scalar(r.Get("metadata.raw")); raw != "" {
		e.message += ": " + oneLine(raw)
	}
	return e
}

// errorIn finds the error in a whole body that is no chat completion; nil if it holds none.
func errorIn(body []byte) *errorObject {
	body = bytes.TrimSpace(bytes.TrimPrefix(bytes.TrimSpace(body), []byte("data:")))
	r, err := jsonl.Parse(body)
	if err != nil {
		return nil
	}
	if r.IsArray() {
		r = r.Get("0") // Google's endpoint wraps its error in a list of one
	}
	if !r.IsObject() {
		return nil
	}
	if e := parseErrorObject(r.Get("error")); e != nil {
		return e
	}
	if textOf(r.Get("object")) == "error" || textOf(r.Get("type")) == "error" {
		return parseErrorObject(r)
	}
	if detail := scalar(r.Get("detail")); detail != "" {
		return &errorObject{message: oneLine(detail)}
	}
	return nil
}

// limitWords are the error types and codes that say that an allowance is used up. rate_limit_exceeded is none of them:
// it passes within moments.
var limitWords = map[string]bool{
	"insufficient_quota": true, "usage_limit_reached": true, "usage_limit_exceeded": true, "usage_not_included": true,
	"quota_exceeded": true, "billing_hard_limit_reached": true, "billing_not_active": true,
	"insufficient_credits": true, "insufficient_balance": true, "credit_balance_too_low": true,
}

// fatalWords are the error types and codes that no retry mends, with whatever status they come.
var fatalWords = map[string]bool{
	"invalid_request_error": true, "authentication_error": true, "permission_error": true, "permission_denied": true,
	"not_found_error": true, "invalid_api_key": true, "model_not_found": true, "context_length_exceeded": true,
	"401": true, "403": true, "404": true,
}

func (e *errorObject) isLimit() bool {
	return limitWords[e.kind] || limitWords[e.code] || e.code == "402"
}
func (e *errorObject) isFatal() bool { return fatalWords[e.kind] || fatalWords[e.code] }

// failure returns the failure of an error object in an answer with status 200.
func (e *errorObject) failure() *Failure {
	f := &Failure{Kind: ErrorObject, Said: e.message}
	switch {
	case e.isLimit():
		f.Kind = UsageLimit
	case e.isFatal():
		f.Kind = Fatal
	}
	f.object = e
	return f
}
