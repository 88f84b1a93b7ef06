package model

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"
)

// errorObject is what endpoints put under "error", in the shapes seen: OpenAI {message, type, code}, OpenRouter
// {message, code (a number), metadata}, a plain string, vLLM's {object: "error", message} and FastAPI's {detail}.
type errorObject struct {
	message string
	kind    string // "type"
	code    string // "code", a number in decimal
	resets  time.Time
	resetIn time.Duration
	headers map[string]string // OpenRouter passes on those of the provider
}

type wireError struct {
	Message  text   `json:"message"`
	Type     text   `json:"type"`
	Code     scalar `json:"code"`
	Object   text   `json:"object"`
	Detail   scalar `json:"detail"`
	ResetsAt scalar `json:"resets_at"`
	ResetsIn number `json:"resets_in_seconds"`
	Metadata struct {
		Raw     scalar            `json:"raw"`
		Headers map[string]scalar `json:"headers"`
	} `json:"metadata"`
}

// scalar is a JSON string or number as text; an object or list is its JSON.
type scalar string

func (s *scalar) UnmarshalJSON(b []byte) error {
	if isNull(b) {
		return nil
	}
	if b[0] == '"' {
		var t text
		err := t.UnmarshalJSON(b)
		*s = scalar(t)
		return err
	}
	*s = scalar(b)
	return nil
}

// parseErrorObject reads the value of an "error" field; nil if it says that there is none.
func parseErrorObject(raw json.RawMessage) *errorObject {
	raw = bytes.TrimSpace(raw)
	switch string(raw) {
	case "", "null", "false", `""`, "{}", "[]", "0":
		return nil
	}
	if raw[0] != '{' {
		var s scalar
		if s.UnmarshalJSON(raw) != nil || s == "" {
			return nil
		}
		return &errorObject{message: oneLine(string(s))}
	}
	var w wireError
	if json.Unmarshal(raw, &w) != nil {
		// A known field of an odd shape: the object is an error all the same.
		return &errorObject{message: oneLine(raw)}
	}
	e := &errorObject{message: oneLine(string(w.Message)), kind: string(w.Type), code: string(w.Code)}
	if e.message == "" {
		e.message = oneLine(raw)
	} else if w.Metadata.Raw != "" {
		e.message += ": " + oneLine(string(w.Metadata.Raw))
	}
	e.readReset(w)
	return e
}

func (e *errorObject) readReset(w wireError) {
	if w.ResetsIn.known && w.ResetsIn.value >= 0 {
		e.resetIn = seconds(w.ResetsIn.value)
	}
	if at, ok := parseInstant(string(w.ResetsAt)); ok {
		e.resets = at
	}
	for name, v := range w.Metadata.Headers {
		if e.headers == nil {
			e.headers = map[string]string{}
		}
		e.headers[strings.ToLower(name)] = string(v)
	}
}

// errorIn finds the error in a whole body that is no chat completion; nil if it holds none.
func errorIn(body []byte) *errorObject {
	body = bytes.TrimSpace(bytes.TrimPrefix(bytes.TrimSpace(body), []byte("data:")))
	var w struct {
		Error json.RawMessage `json:"error"`
		wireErrorFields
	}
	if json.Unmarshal(body, &w) != nil {
		// Google's endpoint wraps its error in a list of one.
		var l []json.RawMessage
		if json.Unmarshal(body, &l) == nil && len(l) > 0 && len(l[0]) > 0 && l[0][0] == '{' {
			return errorIn(l[0])
		}
		return nil
	}
	if e := parseErrorObject(w.Error); e != nil {
		return e
	}
	if w.Object == "error" || w.Type == "error" {
		return parseErrorObject(body)
	}
	if w.Detail != "" {
		return &errorObject{message: oneLine(string(w.Detail))}
	}
	return nil
}

type wireErrorFields struct {
	Object text   `json:"object"`
	Type   text   `json:"type"`
	Detail scalar `json:"detail"`
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

// failure is an error object in an answer whose status is 200.
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
