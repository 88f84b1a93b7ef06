package model

import (
	"encoding/json"
	"testing"
)

func TestRequestFields(t *testing.T) {
	messages := []json.RawMessage{json.RawMessage(`{"role":"user","content":"<&> é"}`)}
	tools := json.RawMessage(`[{"type":"function"}]`)
	tests := []struct {
		name    string
		options Options
		request Request
		want    string
	}{
		{"several messages", Options{}, Request{Messages: append(messages, messages...)},
			`{"model":"a/\"b\"","messages":[{"role":"user","content":"<&> é"},{"role":"user","content":"<&> é"}]}`},
		{"plain", Options{}, Request{Messages: messages},
			`{"model":"a/\"b\"","messages":[{"role":"user","content":"<&> é"}]}`},
		{"tools", Options{}, Request{Messages: messages, Tools: tools},
			`{"model":"a/\"b\"","tools":[{"type":"function"}],"messages":[{"role":"user","content":"<&> é"}]}`},
	}
	for _, tt := range tests {
		c, err := New(Endpoint{BaseURL: "http://h/v1", Model: `a/"b"`}, tt.options)
		if err != nil {
			t.Fatal(err)
		}
		got := string(c.body(tt.request))
		if got != tt.want || !json.Valid([]byte(got)) {
			t.Errorf("%s:\n%s, want\n%s", tt.name, got, tt.want)
		}
	}
}
