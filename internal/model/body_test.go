package model

import (
	"bytes"
	"encoding/json"
	"testing"
)

func TestRequestFields(t *testing.T) {
	messages := []json.RawMessage{json.RawMessage(`{"role":"user","content":"<&> é"}`)}
	tools := json.RawMessage(`[{"type":"function"}]`)
	tests := []struct {
		name     string
		endpoint string
		options  Options
		request  Request
		want     string
	}{
		{"several messages", "http://h/v1", Options{}, Request{Messages: append(messages, messages...)},
			`{"model":"a/\"b\"","messages":[{"role":"user","content":"<&> é"},{"role":"user","content":"<&> é"}]}`},
		{"plain", "http://h/v1", Options{}, Request{Messages: messages},
			`{"model":"a/\"b\"","messages":[{"role":"user","content":"<&> é"}]}`},
		{"tools", "http://h/v1", Options{}, Request{Messages: messages, Tools: tools, ToolChoice: "required", MaxTokens: 9},
			`{"model":"a/\"b\"","max_tokens":9,"tools":[{"type":"function"}],"tool_choice":"required","messages":[{"role":"user","content":"<&> é"}]}`},
		{"one tool", "https://api.openai.com/v1", Options{}, Request{Messages: messages, Tools: tools, ToolChoice: "f", MaxTokens: 9},
			`{"model":"a/\"b\"","max_completion_tokens":9,"tools":[{"type":"function"}],"tool_choice":{"type":"function","function":{"name":"f"}},"messages":[{"role":"user","content":"<&> é"}]}`},
		{"choice without tools", "http://h/v1", Options{Stream: true}, Request{Messages: messages, ToolChoice: "auto"},
			`{"model":"a/\"b\"","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"<&> é"}]}`},
	}
	for _, tt := range tests {
		c := New(Endpoint{BaseURL: tt.endpoint, Model: `a/"b"`}, tt.options)
		got := string(bytes.Join(c.body(tt.request), nil))
		if got != tt.want || !json.Valid([]byte(got)) {
			t.Errorf("%s:\n%s, want\n%s", tt.name, got, tt.want)
		}
	}
}
