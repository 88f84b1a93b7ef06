package model

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// healthy checks the rules for every reply, whatever the endpoint sent.
func healthy(t *testing.T, r *Reply, f *Failure) {
	t.Helper()
	if (r == nil) == (f == nil) {
		t.Fatalf("reply %v and failure %v", r, f)
	}
	if f != nil {
		if f.Kind == "" || f.Said == "" || strings.ContainsAny(f.Said, "\n\r\x1b") {
			t.Errorf("failure %q %q", f.Kind, f.Said)
		}
		return
	}
	if strings.TrimSpace(r.Content) == "" && len(r.ToolCalls) == 0 {
		t.Error("a turn with nothing in it")
	}
	if !json.Valid(r.Message) || bytes.TrimSpace(r.Message)[0] != '{' {
		t.Errorf("message %s", r.Message)
	}
	for _, c := range r.ToolCalls {
		if c.ID == "" {
			t.Error("a call without an id")
		}
	}
	u := r.Usage
	if u.Prompt < 0 || u.Eval < 0 || u.Cached < 0 || u.Reasoning < 0 || u.Cost < 0 {
		t.Errorf("usage %+v", u)
	}
}

func FuzzParseReply(f *testing.F) {
	f.Add([]byte(answerWith(`{"role":"assistant","content":"a"}`, "stop")))
	f.Add([]byte(answerWith(`{"content":null,"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}},null,5]}`, "tool_calls")))
	f.Add([]byte(`{"error":{"message":"m","code":402,"resets_at":1,"metadata":{"headers":{"x-ratelimit-reset":"1"}}}}`))
	f.Add([]byte(`[{"error":"x"}]`))
	f.Add([]byte(`{"choices":[{"message":{}}],"usage":{"prompt_tokens":"1e400","cost":[]}}`))
	f.Add([]byte("<html>"))
	f.Fuzz(func(t *testing.T, body []byte) {
		r, failure := parseReply(body)
		healthy(t, r, failure)
		given := r != nil && (textOf(gjson.GetBytes(body, "choices.0.message.role")) == "" ||
			slices.ContainsFunc(r.ToolCalls, func(c ToolCall) bool { return !bytes.Contains(body, []byte(c.ID)) }))
		if r != nil && !given && !bytes.Contains(body, bytes.TrimSpace(r.Message)) {
			t.Errorf("message %s is not in the answer", r.Message)
		}
	})
}

func FuzzStatus(f *testing.F) {
	f.Add(429, "Retry-After", "1e9", []byte(`{"error":{"type":"usage_limit_reached","resets_in_seconds":1e300}}`))
	f.Add(302, "Location", "http://%zz", []byte{})
	f.Add(429, "X-RateLimit-Reset", "1795262400000", []byte("data: {\"error\":1}"))
	f.Fuzz(func(t *testing.T, status int, name, value string, body []byte) {
		failure := statusFailure(status, http.Header{http.CanonicalHeaderKey(name): {value}}, body)
		if failure.Kind == "" {
			t.Error("no kind")
		}
		if d := failure.RetryAfter; d != nil && *d < 0 {
			t.Errorf("wait %v", *d)
		}
		if reset := failure.LimitReset; reset.Year() > 9999 || reset.Year() < 0 {
			t.Errorf("reset %v", reset)
		}
	})
}
