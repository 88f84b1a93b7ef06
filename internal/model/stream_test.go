package model

import (
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
)

// events makes a stream of deltas of the first choice, the last with a finish reason.
func events(deltas ...string) string {
	var b strings.Builder
	for _, d := range deltas {
		b.WriteString(`data: {"id":"x","model":"m","choices":[{"index":0,"delta":` + d + `,"finish_reason":null}]}` + "\n\n")
	}
	b.WriteString(`data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n")
	return b.String()
}

func sameJSON(t *testing.T, got, want string) {
	t.Helper()
	var g, w any
	if err := json.Unmarshal([]byte(got), &g); err != nil {
		t.Fatalf("%s: %v", got, err)
	}
	if err := json.Unmarshal([]byte(want), &w); err != nil {
		t.Fatalf("%s: %v", want, err)
	}
	if !reflect.DeepEqual(g, w) {
		t.Errorf("\n%s, want\n%s", got, want)
	}
}

func TestStreamReassembles(t *testing.T) {
	tests := []struct {
		name   string
		deltas []string
		want   string
	}{
		{"text", []string{`{"role":"assistant","content":""}`, `{"content":"a"}`, `{"content":"a"}`, `{"content":" b"}`},
			`{"role":"assistant","content":"aa b"}`},
		{"role and more in every delta", []string{`{"role":"assistant","content":"a","x":"same"}`, `{"role":"assistant","content":"b","x":"same"}`},
			`{"role":"assistant","content":"ab","x":"same"}`},
		{"null content, then text", []string{`{"role":"assistant","content":null}`, `{"content":"a"}`, `{"content":null}`},
			`{"role":"assistant","content":"a"}`},
		{"torn surrogate pair and escapes", []string{`{"role":"assistant","content":"\ud83d"}`, `{"content":"\ude00\n"}`, `{"content":"\"\\"}`},
			`{"role":"assistant","content":"😀\n\"\\"}`},
		{"reasoning", []string{`{"role":"assistant","reasoning":"be"}`, `{"reasoning":"be","reasoning_content":"x"}`, `{"content":"c"}`},
			`{"role":"assistant","reasoning":"bebe","reasoning_content":"x","content":"c"}`},
		{"calls by index", []string{
			`{"role":"assistant","content":null,"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":""}}]}`,
			`{"tool_calls":[{"index":0,"function":{"arguments":"{\"x\":"}}]}`,
			`{"tool_calls":[{"index":1,"id":"b","type":"function","function":{"name":"g","arguments":"{"}}]}`,
			`{"tool_calls":[{"index":0,"function":{"arguments":"1}"}},{"index":1,"function":{"arguments":"}"}}]}`},
			`{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{\"x\":1}"}},
			{"id":"b","type":"function","function":{"name":"g","arguments":"{}"}}]}`},
		{"calls without content", []string{`{"role":"assistant","tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]}`},
			`{"role":"assistant","content":null,"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]}`},
		{"every call has index 0", []string{`{"role":"assistant","content":"","tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]}`,
			`{"tool_calls":[{"index":0,"id":"b","function":{"name":"f","arguments":"{}"}}]}`},
			`{"role":"assistant","content":"","tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}},{"id":"b","function":{"name":"f","arguments":"{}"}}]}`},
		{"no index at all", []string{`{"role":"assistant","content":"","tool_calls":[{"id":"a","function":{"name":"f","arguments":"{"}}]}`,
			`{"tool_calls":[{"function":{"arguments":"}"}}]}`, `{"tool_calls":[{"id":"b","function":{"name":"f","arguments":"{}"}}]}`},
			`{"role":"assistant","content":"","tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}},{"id":"b","function":{"name":"f","arguments":"{}"}}]}`},
		{"id and name in every delta", []string{`{"role":"assistant","content":"","tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{"}}]}`,
			`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"}"}}]}`},
			`{"role":"assistant","content":"","tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]}`},
		{"reasoning details", []string{
			`{"role":"assistant","content":"c","reasoning_details":[{"type":"reasoning.text","text":"th","format":"f","index":0,"signature":null}]}`,
			`{"reasoning_details":[{"type":"reasoning.text","text":"ink","format":"f","index":0}]}`,
			`{"reasoning_details":[{"type":"reasoning.text","text":"","format":"f","index":0,"signature":"sig=="}]}`,
			`{"reasoning_details":[{"type":"reasoning.encrypted","data":"AA","id":"r1","index":0}]}`,
			`{"reasoning_details":[{"type":"reasoning.encrypted","data":"BB","id":"r2","index":0}]}`,
			`{"reasoning_details":[{"type":"reasoning.summary","summary":"s"}]}`},
			`{"role":"assistant","content":"c","reasoning_details":[{"type":"reasoning.text","text":"think","format":"f","index":0,"signature":"sig=="},
			{"type":"reasoning.encrypted","data":"AA","id":"r1","index":0},{"type":"reasoning.encrypted","data":"BB","id":"r2","index":0},
			{"type":"reasoning.summary","summary":"s"}]}`},
		{"unknown fields", []string{`{"role":"assistant","content":"c","n":1,"o":{"a":"x","b":[1]}}`, `{"n":2.50,"o":{"a":"y","c":true,"b":[2]}}`},
			`{"role":"assistant","content":"c","n":2.50,"o":{"a":"xy","b":[1,2],"c":true}}`},
		{"no role", []string{`{"content":"c"}`}, `{"role":"assistant","content":"c"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			reply, failure, err := readStream(iotest.OneByteReader(strings.NewReader(events(tt.deltas...))))
			if err != nil || failure != nil {
				t.Fatal(err, failure)
			}
			sameJSON(t, string(reply.Message), tt.want)
			again, failure := parseReply([]byte(answerWith(string(reply.Message), "stop")))
			if failure != nil {
				t.Fatalf("%s: %s", reply.Message, failure.Said)
			}
			sameJSON(t, string(again.Message), tt.want)
			if again.Content != reply.Content || !reflect.DeepEqual(again.ToolCalls, reply.ToolCalls) ||
				reply.FinishReason != "stop" {
				t.Errorf("%+v and %+v", reply, again)
			}
		})
	}
}

func TestStreamForms(t *testing.T) {
	one := `{"choices":[{"index":0,"delta":{"role":"assistant","content":"hi"}}]}`
	end := `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":7,"completion_tokens":3,"cost":0.5}}`
	tests := map[string]string{
		"plain":          "data: " + one + "\n\ndata: " + end + "\n\ndata: [DONE]\n\n",
		"no space, CRLF": "data:" + one + "\r\n\r\ndata:" + end + "\r\n\r\ndata:[DONE]\r\n\r\n",
		"comments and names": ": PROCESSING\n\nevent: chunk\nid: 1\nretry: 5\ndata: " + one + "\n\n: PING\ndata: " +
			end + "\n\ndata: [DONE]",
		"no blank lines":        "data: " + one + "\ndata: " + end + "\ndata: [DONE]\n",
		"no DONE":               "data: " + one + "\n\ndata: " + end + "\n\n",
		"no newline at the end": "data: " + one + "\n\ndata: " + end,
		"usage in its own": "data: " + one +
			"\n\ndata: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}],\"usage\":null}\n\ndata: " +
			"{\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":3,\"cost\":0.5}}\n\ndata: [DONE]\n\n",
		"usage that grows": "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":1}}\n\ndata: " +
			one + "\n\ndata: " + end + "\n\ndata: [DONE]\n\n",
		"data over two lines": "data: {\"choices\":\ndata: " +
			"[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"hi\"}}]}\n\ndata: " + end + "\n\n",
		"other choices": "data: " + one +
			"\n\ndata: {\"choices\":[{\"index\":1,\"delta\":{\"content\":\"NO\"}}]}\n\ndata: " + end +
			"\n\ndata: [DONE]\n\n",
		"a whole message": "data: {\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":\"hi\"}," +
			"\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":3,\"cost\":0.5}}" +
			"\n\ndata: [DONE]\n\n",
	}
	for name, in := range tests {
		t.Run(name, func(t *testing.T) {
			r, f, err := readStream(strings.NewReader(in))
			if err != nil || f != nil {
				t.Fatal(err, f)
			}
			if r.Content != "hi" || r.FinishReason != "stop" ||
				r.Usage != (Usage{Prompt: 7, Eval: 3, Cost: 0.5, CostKnown: true}) {
				if name != "usage that grows" || r.Content != "hi" || r.Usage.Eval != 3 {
					t.Errorf("%+v", r)
				}
			}
		})
	}
}

func TestStreamHealth(t *testing.T) {
	one := "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"hi\"}}]}\n\n"
	tests := []struct {
		name, in string
		want     Kind
	}{
		{"empty", events(`{"role":"assistant","content":""}`), Empty},
		{"only DONE", "data: [DONE]\n\n", Empty},
		{"reasoning only", events(`{"role":"assistant","reasoning":"hm"}`), Empty},
		{"error at once", "data: {\"error\":{\"message\":\"busy\"}}\n\n", ErrorObject},
		{"error in the middle",
			one +
				"event: error\ndata: " +
				"{\"error\":{\"message\":\"busy\",\"code\":502},\"choices\":[{\"delta\":{}," +
				"\"finish_reason\":\"error\"}]}\n\n", ErrorObject},
		{"error in the choice",
			one +
				"data: {\"choices\":[{\"index\":0,\"delta\":{},\"error\":{\"message\":\"busy\"}," +
				"\"finish_reason\":\"error\"}]}\n\ndata: [DONE]\n\n", ErrorObject},
		{"error in the choice, nothing after",
			one + "data: {\"choices\":[{\"index\":0,\"delta\":{},\"error\":{\"message\":\"busy\"}}]}\n\n", ErrorObject},
		{"finish reason", one + "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"error\"}]}\n\n",
			FinishError},
		{"detail", "data: {\"detail\":\"busy\"}\n\n", ErrorObject},
		{"wrong key", "data: {\"error\":{\"message\":\"key\",\"type\":\"authentication_error\"}}\n\n", Fatal},
		{"quota", one + "data: {\"error\":{\"message\":\"quota\",\"type\":\"insufficient_quota\"}}\n\n", UsageLimit},
		{"broken chunk", one + "data: {\"choices\":[{\n\n", Malformed},
		{"a chunk that is a number", one + "data: 5\n\n", Malformed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, f, err := readStream(strings.NewReader(tt.in))
			if err != nil || f == nil || f.Kind != tt.want {
				t.Errorf("%v %v %v, want %s", r, f, err, tt.want)
			}
		})
	}
	for name, in := range map[string]string{"nothing": "", "no end": one, "in an event": one + "data: {\"choi"} {
		_, f, err := readStream(strings.NewReader(in))
		if !errors.Is(err, io.ErrUnexpectedEOF) && (f == nil || f.Kind != Malformed) {
			t.Errorf("%s: %v %v", name, f, err)
		}
	}
}
