package model

import (
	"bytes"
	"net/http"

	"github.com/tidwall/gjson"

	"github.com/git-tilth/git-tilth/internal/jsonl"
)

// errorObject is the value of "error" in its known forms: OpenAI {message, type, code}, OpenRouter {message, code (a
// number), metadata}, a plain string, vLLM's {object: "error", message} and FastAPI's {detail}.
type errorObject struct {
	message string
	kind    string // "type"
	code    string // "code", a number in decimal
	whole   gjson.Result
}

// parseErrorObject reads the value of an "error" field, or returns nil if it is not an error.
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

// errorIn finds the error in a body that is not a chat completion, or returns nil.
func errorIn(body []byte) *errorObject {
	r, err := jsonl.Parse(bytes.TrimSpace(body))
	if err != nil {
		return nil
	}
	if r.IsArray() {
		r = r.Get("0") // Google's endpoint puts its error into a list
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

// fatalWords match error types and codes that no retry can fix, with any status.
var fatalWords = map[string]bool{
	"invalid_request_error": true, "authentication_error": true, "permission_error": true, "permission_denied": true,
	"not_found_error": true, "invalid_api_key": true, "model_not_found": true,
	"401": true, "403": true, "404": true,
}

func (e *errorObject) isFatal() bool { return fatalWords[e.kind] || fatalWords[e.code] }

// words returns the parts of the error that describe it.
func (e *errorObject) words() string {
	if e == nil {
		return ""
	}
	return e.kind + " " + e.code + " " + e.message
}

// failure returns the failure of an error object in an answer with status 200.
func (e *errorObject) failure() *Failure {
	f := &Failure{Kind: KindOf(0, e.words()), Said: e.message, object: e}
	switch refused := KindOf(http.StatusBadRequest, e.words()); {
	case e.code == "402":
		f.Kind = UsageLimit
	case f.Kind != HTTP:
	case e.isFatal(), refused == Overflow && e.code != "429" && !Passes(f.Said):
		f.Kind = refused
	default:
		f.Kind = ErrorObject
	}
	return f
}
