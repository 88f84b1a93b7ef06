package model

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// answerWith is a completion around a message.
func answerWith(message, finish string) string {
	return `{"id":"x","choices":[{"index":0,"message":` + message + `,"finish_reason":"` + finish + `"}],` +
		`"usage":{"prompt_tokens":7,"completion_tokens":3}}`
}

func TestHealth(t *testing.T) {
	said := `{"role":"assistant","content":"hello"}`
	tests := []struct {
		name, body string
		want       Kind // "" for a turn
		says       string
	}{
		{"text", answerWith(said, "stop"), "", ""},
		{"text that speaks of limits", answerWith(`{"role":"assistant","content":"rate limit reached, error 429, quota exceeded"}`, "stop"), "", ""},
		{"text, zero usage", `{"choices":[{"message":` + said + `}],"usage":{"prompt_tokens":0,"completion_tokens":0}}`, "", ""},
		{"text, no usage", `{"choices":[{"message":` + said + `}]}`, "", ""},
		{"text, odd usage", `{"choices":[{"message":` + said + `}],"usage":"none"}`, "", ""},
		{"text, null error", `{"error":null,"choices":[{"error":null,"message":` + said + `}]}`, "", ""},
		{"text, empty error", `{"error":{},"choices":[{"error":"","message":` + said + `}]}`, "", ""},
		{"call without text", answerWith(`{"role":"assistant","content":null,"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]}`, "tool_calls"), "", ""},
		{"refusal", answerWith(`{"role":"assistant","content":null,"refusal":"I will not"}`, "stop"), "", ""},
		{"truncated text", answerWith(said, "length"), "", ""},
		{"space around", "\n \t" + answerWith(said, "stop") + "\n", "", ""},

		{"no body", "", Empty, "empty answer"},
		{"blank body", " \n", Empty, "empty answer"},
		{"empty content", answerWith(`{"role":"assistant","content":""}`, "stop"), Empty, "neither content nor tool calls"},
		{"blank content", answerWith(`{"role":"assistant","content":" \n"}`, "stop"), Empty, "neither"},
		{"null content", answerWith(`{"role":"assistant","content":null,"tool_calls":[]}`, "stop"), Empty, "neither"},
		{"reasoning only", answerWith(`{"role":"assistant","content":"","reasoning":"hm"}`, "length"), Empty, `finish_reason "length"`},
		{"no message", `{"choices":[{"finish_reason":"stop"}]}`, Empty, "neither"},
		{"no choices", `{"choices":[]}`, Empty, "no choices"},

		{"error object", `{"error":{"message":"overloaded","code":502}}`, ErrorObject, "overloaded"},
		{"error beside choices", `{"error":{"message":"overloaded"},"choices":[{"message":` + said + `}]}`, ErrorObject, "overloaded"},
		{"error string", `{"error":"boom"}`, ErrorObject, "boom"},
		{"error without message", `{"error":{"code":500}}`, ErrorObject, "500"},
		{"error of an odd shape", `{"error":{"message":"m","metadata":7}}`, ErrorObject, "m"},
		{"error in the choice", `{"choices":[{"error":{"code":502,"message":"upstream"},"message":` + said + `,"finish_reason":"error"}]}`, ErrorObject, "upstream"},
		{"vLLM's error", `{"object":"error","message":"bad","code":500}`, ErrorObject, "bad"},
		{"FastAPI's error", `{"detail":"worker died"}`, ErrorObject, "worker died"},
		{"Google's error", `[{"error":{"code":503,"message":"busy"}}]`, ErrorObject, "busy"},
		{"provider's words", `{"error":{"message":"Provider returned error","metadata":{"raw":"too busy"}}}`, ErrorObject, "too busy"},
		{"wrong key with 200", `{"error":{"message":"no","code":401}}`, Fatal, "no"},
		{"invalid request with 200", `{"error":{"message":"no","type":"invalid_request_error"}}`, Fatal, "no"},
		{"no credit with 200", `{"error":{"message":"pay","code":402}}`, UsageLimit, "pay"},
		{"quota with 200", `{"error":{"message":"pay","code":"insufficient_quota"}}`, UsageLimit, "pay"},
		{"mere rate limit with 200", `{"error":{"message":"slow down","code":429,"type":"rate_limit_exceeded"}}`, ErrorObject, "slow down"},
		{"limit in words only", `{"error":{"message":"usage limit reached, insufficient_quota"}}`, UsageLimit, "usage limit"},

		{"finish error", answerWith(said, "error"), FinishError, `finish_reason "error"`},

		{"broken JSON", `{"choices":[{"message":{"content":"he`, Malformed, "not a valid chat completion"},
		{"HTML", "<!DOCTYPE html><html><body>Bad gateway</body></html>", Malformed, "HTML"},
		{"text", "upstream connect error", Malformed, "upstream connect error"},
		{"a number", "5", Malformed, "5"},
		{"null", "null", Malformed, "null"},
		{"a list", "[]", Malformed, "[]"},
		{"another object", `{"hello":"world"}`, Malformed, "hello"},
		{"message is no object", answerWith(`"hi"`, "stop"), Malformed, "not an object"},
		{"two values", answerWith(said, "stop") + "{}", Malformed, "not a valid"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			reply, failure := parseReply([]byte(tt.body))
			if (reply == nil) == (failure == nil) {
				t.Fatalf("reply %v and failure %v", reply, failure)
			}
			if failure == nil {
				if tt.want != "" {
					t.Fatalf("a turn, want %s", tt.want)
				}
				return
			}
			if failure.Kind != tt.want || !strings.Contains(failure.Said, tt.says) {
				t.Errorf("%s %q, want %q with %q", failure.Kind, failure.Said, tt.want, tt.says)
			}
		})
	}
}

func TestMessageIsVerbatim(t *testing.T) {
	messages := []string{
		`{"role":"assistant","content":"a","x_unknown":{"b":[1.0,2e3,"<&>"]},"reasoning_details":[{"type":"reasoning.encrypted","data":"Zm9v+/=="}]}`,
		`{ "tool_calls" : [ {"id":"1","type":"function","function":{"name":"f","arguments":"{\"a\": \"\\u00e9 \u2028\"}"}} ] ,` + "\n" + `"role":"assistant","content":null }`,
		`{"role":"assistant","content":"é \ud83d\ude00 \ud83d","reasoning_content":"r"}`,
		"{\"role\":\"assistant\",\"content\":\"latin-1 \xe9\"}",
	}
	for _, m := range messages {
		reply, failure := parseReply([]byte(answerWith(m, "stop")))
		if failure != nil {
			t.Fatalf("%s: %v", m, failure.Said)
		}
		if string(reply.Message) != m {
			t.Errorf("message\n%s\nwant\n%s", reply.Message, m)
		}
	}
}

func TestReplyFields(t *testing.T) {
	body := `{"choices":[{"message":{"role":"assistant","content":[{"type":"thinking","thinking":"no"},{"type":"text","text":"a"},{"type":"text","text":"b"}],
		"reasoning":"why","reasoning_details":[{"type":"reasoning.text","text":"why"}],
		"tool_calls":[{"id":"c1","type":"function","function":{"name":"bash","arguments":"{\"command\":\"ls\"}"}},
			{"function":{"name":"glob","arguments":{"pattern":"*"}}},{"id":"c3","function":{"name":"x","arguments":"{\"cut"}},{"id":"c4","function":null}]},
		"finish_reason":"tool_calls"}],
		"usage":{"prompt_tokens":100,"completion_tokens":20,"cost":0.0125,"prompt_tokens_details":{"cached_tokens":64},
			"completion_tokens_details":{"reasoning_tokens":11}}}`
	r, failure := parseReply([]byte(body))
	if failure != nil {
		t.Fatal(failure.Said)
	}
	if r.Content != "ab" || r.Reasoning != "why" || string(r.ReasoningDetails) != `[{"type":"reasoning.text","text":"why"}]` || r.FinishReason != "tool_calls" {
		t.Errorf("%+v", r)
	}
	want := []ToolCall{{"c1", "bash", `{"command":"ls"}`}, {r.ToolCalls[1].ID, "glob", `{"pattern":"*"}`}, {"c3", "x", `{"cut`}, {"c4", "", ""}}
	if len(r.ToolCalls) != len(want) {
		t.Fatalf("%+v", r.ToolCalls)
	}
	for i := range want {
		if r.ToolCalls[i] != want[i] {
			t.Errorf("call %d: %+v, want %+v", i, r.ToolCalls[i], want[i])
		}
	}
	if want := (Usage{100, 20, 64, 11, 0.0125, true}); r.Usage != want {
		t.Errorf("usage %+v, want %+v", r.Usage, want)
	}
}

func TestUsage(t *testing.T) {
	tests := []struct {
		json string
		want Usage
	}{
		{`{}`, Usage{}},
		{`null`, Usage{}},
		{`{"prompt_tokens":1,"completion_tokens":2}`, Usage{Prompt: 1, Eval: 2}},
		{`{"prompt_tokens":"10","completion_tokens":2.0}`, Usage{Prompt: 10, Eval: 2}},
		{`{"prompt_tokens":-1,"completion_tokens":1e300}`, Usage{Eval: 1 << 50}},
		{`{"cost":0}`, Usage{CostKnown: true}},
		{`{"cost":null,"total_cost":0.5}`, Usage{Cost: 0.5, CostKnown: true}},
		{`{"cost":{"usd":1}}`, Usage{}},
		{`{"cost":-3}`, Usage{}},
		{`{"prompt_cache_hit_tokens":5}`, Usage{Cached: 5}},
		{`{"prompt_tokens_details":null,"completion_tokens_details":[]}`, Usage{}},
	}
	for _, tt := range tests {
		if got, _ := readUsage(gjson.Parse(tt.json)); got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.json, got, tt.want)
		}
	}
}

func TestFailedAnswerKeepsItsUsage(t *testing.T) {
	_, f := parseReply([]byte(answerWith(`{"role":"assistant","content":""}`, "stop")))
	if f == nil || f.Usage.Prompt != 7 || f.Usage.Eval != 3 {
		t.Errorf("%+v", f)
	}
}

func TestMessageWithoutRoleGetsOne(t *testing.T) {
	for in, want := range map[string]string{
		`{"content":"a"}`:   `{"content":"a","role":"assistant"}`,
		`{ "content":"a" }`: `{"content":"a","role":"assistant"}`,
	} {
		r, f := parseReply([]byte(answerWith(in, "stop")))
		if f != nil || string(r.Message) != want || !json.Valid(r.Message) {
			t.Errorf("%s: %s %v", in, r.Message, f)
		}
	}
}

func TestOneLine(t *testing.T) {
	if got := oneLine("a\n\t b\x1b[31m\x00\xff"); got != "a b␛[31m␀�" {
		t.Errorf("%q", got)
	}
	if got := oneLine(strings.Repeat("é", 1000)); len(got) > 610 || !strings.HasSuffix(got, "é…") {
		t.Errorf("%q", got)
	}
}

// The answer to a call names its id, so a call without an id gets one and is sent back with it.
func TestCallsWithoutIDs(t *testing.T) {
	body := `{"choices":[{"message":{"content":null,"x_opaque":{"b":1.50,"a":2},"tool_calls":[
		{"function":{"name":"glob","arguments":"{}"},"extra":7},{"id":"","type":"function","function":{"name":"a","arguments":{"k":1}}},null,
		{"id":"twice","type":"function","function":{"name":"b"}},{"id":"twice","type":"function","function":{"name":"c"}}]}}]}`
	first, failure := parseReply([]byte(body))
	if failure != nil {
		t.Fatal(failure.Said)
	}
	second, _ := parseReply([]byte(body))
	seen := map[string]bool{}
	for _, r := range []*Reply{first, second} {
		sent := gjson.ParseBytes(r.Message)
		for i, call := range r.ToolCalls {
			entry := sent.Get("tool_calls").Array()[i]
			if call.ID == "" || seen[call.ID] && call.ID != "twice" || entry.Get("id").String() != call.ID ||
				entry.Get("type").String() != "function" || !entry.Get("function").IsObject() {
				t.Errorf("call %d: %+v is sent back as %s", i, call, entry.Raw)
			}
			seen[call.ID] = true
		}
		if len(r.ToolCalls) != 5 || r.ToolCalls[3].ID != "twice" || r.ToolCalls[4].ID == "twice" {
			t.Errorf("%+v", r.ToolCalls)
		}
		if sent.Get("role").String() != "assistant" || sent.Get("x_opaque").Raw != `{"b":1.50,"a":2}` || sent.Get("tool_calls.0.extra").Int() != 7 ||
			sent.Get("tool_calls.1.function.arguments").Raw != `{"k":1}` {
			t.Errorf("not as it came: %s", sent.Raw)
		}
	}
}

func TestUsageOfATotalAlone(t *testing.T) {
	r, failure := parseReply([]byte(`{"choices":[{"message":{"content":"hi"}}],"usage":{"total_tokens":120}}`))
	if failure != nil || r.Usage.Prompt != 120 {
		t.Errorf("%+v %+v", r, failure)
	}
	r, _ = parseReply([]byte(`{"choices":[{"message":{"content":"hi"}}],"usage":{"prompt_tokens":0,"completion_tokens":7,"total_tokens":120}}`))
	if r.Usage.Prompt != 0 || r.Usage.Eval != 7 {
		t.Errorf("%+v", r.Usage)
	}
}
