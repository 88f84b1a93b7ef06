package scripted_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/git-tilth/git-tilth/internal/model"
	"github.com/git-tilth/git-tilth/internal/scripttest/scripted"
)

func toolNamed(names ...string) json.RawMessage {
	var tools []string
	for _, n := range names {
		tools = append(tools, `{"type":"function","function":{"name":"`+n+`"}}`)
	}
	return json.RawMessage("[" + strings.Join(tools, ",") + "]")
}

func message(role, content string) json.RawMessage {
	b, _ := json.Marshal(map[string]string{"role": role, "content": content})
	return b
}

func start(t *testing.T, script string, options ...scripted.Option) *scripted.Server {
	t.Helper()
	parsed, err := scripted.Parse([]byte(script))
	if err != nil {
		t.Fatal(err)
	}
	s, err := scripted.Start(parsed, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// post sends a body and returns status and answer; 0 if the connection broke.
func post(t *testing.T, s *scripted.Server, body string, header ...string) (int, string) {
	t.Helper()
	req, err := http.NewRequest("POST", s.URL+"/chat/completions", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, err.Error()
	}
	return res.StatusCode, string(answer)
}

// ask is a request of a role by the name of its tool, with one user message.
func ask(tool, text string) string {
	tools := ""
	if tool != "" {
		tools = `,"tools":` + string(toolNamed("read_file", tool))
	}
	return `{"model":"m"` + tools + `,"messages":[` + string(message("user", text)) + `]}`
}

func contentIn(t *testing.T, answer string) string {
	t.Helper()
	var c struct {
		Choices []struct{ Message struct{ Content string } }
		Error   struct{ Message string }
	}
	if err := json.Unmarshal([]byte(answer), &c); err != nil {
		t.Fatalf("%s: %v", answer, err)
	}
	if len(c.Choices) == 0 {
		return "error: " + c.Error.Message
	}
	return c.Choices[0].Message.Content
}

func TestQueues(t *testing.T) {
	s := start(t, `{
		"worker": [{"content":"w1"},{"content":"w2","repeat":2}],
		"evaluator": [{"content":"e","repeat":-1}],
		"interview": [{"content":"i"}]
	}`)
	for i, step := range []struct{ tool, want string }{
		{"submit_case", "w1"}, {"submit_verdict", "e"}, {"submit_case", "w2"}, {"write_seed", "i"},
		{"submit_case", "w2"},
		{"", `{"propose":"no"}`}, {"submit_verdict", "e"}, {"submit_case", "error: script exhausted: worker"},
		{"other", "error: script exhausted: worker"}, {"write_seed", "error: script exhausted: interview"}, {"", `{"propose":"no"}`},
	} {
		_, answer := post(t, s, ask(step.tool, "x"))
		if got := contentIn(t, answer); got != step.want {
			t.Errorf("request %d: %q, want %q", i+1, got, step.want)
		}
	}
	if left := s.Left(); len(left) != 0 {
		t.Errorf("left %v", left)
	}
	requests := s.Requests()
	if len(requests) != 11 || requests[4].Role != "worker" || requests[4].Step != 1 || requests[7].Step != -1 ||
		requests[7].Problem == "" {
		t.Errorf("%+v", requests)
	}
	own := start(t, `{"self_improve":[{"content":"learned"}]}`)
	for _, want := range []string{"learned", "error: script exhausted: self_improve"} {
		_, answer := post(t, own, ask("", "x"))
		if got := contentIn(t, answer); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if left := start(t, `{"worker":[{"repeat":3},{"repeat":-1}]}`).Left(); left["worker"] != 3 {
		t.Errorf("left %v", left)
	}
}

func TestConditions(t *testing.T) {
	s := start(t, `{"worker": [
		{"content":"second", "when":"quoted \"word\""},
		{"content":"last", "when_last":["alpha","beta"]},
		{"content":"strict", "expect":"sesame", "forbid":["password"]},
		{"content":"first"}
	]}`)
	body := func(texts ...string) string {
		var all []string
		for _, text := range texts {
			all = append(all, string(message("user", text)))
		}
		return `{"model":"m","tools":` + string(toolNamed("submit_case")) + `,"messages":[` + strings.Join(all, ",") + `]}`
	}
	for i, tt := range []struct {
		body, want string
		status     int
	}{
		{body("alpha beta", "other"), `script mismatch: worker, step 3: the request does not hold "sesame"`, 400},
		{body("sesame", "my password"), `script mismatch: worker, step 3: the request holds "password"`, 400},
		{body("sesame\n"), "strict", 200},
		{body("x", "beta and alpha"), "last", 200},
		{body("a quoted \"word\" here", "x"), "second", 200},
		{body("x"), "first", 200},
		{body("x"), "script exhausted: worker", 400},
	} {
		status, answer := post(t, s, tt.body)
		if got := strings.TrimPrefix(contentIn(t, answer), "error: "); got != tt.want || status != tt.status {
			t.Errorf("request %d: %d %q, want %d %q", i+1, status, got, tt.status, tt.want)
		}
	}
}

func TestHistoryIsChecked(t *testing.T) {
	user := `{"role":"user","content":"x"}`
	call := `{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"b"}]}`
	tool := func(id string) string { return `{"role":"tool","tool_call_id":"` + id + `","content":"r"}` }
	for _, tt := range []struct {
		messages, problem string
	}{
		{user, ""},
		{user + "," + call + "," + tool("b") + "," + tool("a"), ""},
		{user + "," + call + "," + tool("a"), "1 tool call(s)"},
		{user + "," + call + "," + tool("a") + "," + user, "1 tool call(s)"},
		{user + "," + call + "," + tool("a") + "," + tool("a"), "no open tool call"},
		{user + "," + tool("z"), "no open tool call"},
		{user + `,{"role":"assistant","content":""}`, "neither content nor tool calls"},
		{user + `,{"role":"assistant","reasoning":"r"}`, "neither content nor tool calls"},
		{`{"role":"narrator","content":"x"}`, "unknown role"},
		{`{"role":"user"}`, "without content"},
		{`{"role":5}`, "messages[0]"},
		{``, "no messages"},
		{`{`, "no valid JSON"},
	} {
		body := `{"model":"m","tools":` + string(toolNamed("submit_case")) + `,"messages":[` + tt.messages + `]}`
		status, answer := post(t, start(t, `{"worker":[{"content":"ok"}]}`), body)
		if (tt.problem == "") != (status == 200) || !strings.Contains(answer, tt.problem) {
			t.Errorf("%s: %d %s, want %q", tt.messages, status, answer, tt.problem)
		}
		if status, _ := post(t, start(t, `{"lenient":true,"worker":[{"content":"ok"}]}`), body); status != 200 {
			t.Errorf("lenient, %s: %d", tt.messages, status)
		}
	}
	if _, answer := post(t, start(t, `{"worker":[{}]}`), `{"messages":[`+user+`]}`); !strings.Contains(answer, "no model") {
		t.Error(answer)
	}
}

func TestKey(t *testing.T) {
	s := start(t, `{"key":"k","worker":[{"content":"ok"}]}`)
	for i, header := range []string{"", "Bearer other", "k", "Bearer k"} {
		status, _ := post(t, s, ask("submit_case", "x"), "Authorization", header)
		if want := []int{401, 401, 401, 200}[i]; status != want {
			t.Errorf("%q: %d", header, status)
		}
	}
}

// turns is a script with every kind of turn, for a conversation of as many requests.
const turns = `{"verify_echo":true,"worker":[
	{"content":"Grüße, \"quotes\" \\ and 😀 <&>","reasoning":"thinking, thinking, thinking",
	 "reasoning_details":[{"type":"reasoning.text","text":"a long text in pieces","format":"f","index":0,"signature":"sig"},{"type":"reasoning.encrypted","data":"AAAA","index":1}],
	 "tools":[{"name":"read_file","args":{"path":"a b.txt","n":1.50}},{"name":"bash","args":"{\"cut off","id":"own"}],
	 "usage":{"prompt_tokens":5,"completion_tokens":6,"cost":0.25,"prompt_tokens_details":{"cached_tokens":4}}},
	{"message":{"role":"assistant","content":"c","reasoning_content":"why, oh why","x_unknown":{"deep":[1,2.50,null,{"a":"b"}]},"annotations":[]}},
	{"message":{"role":"assistant","content":[{"type":"text","text":"a part"}]}},
	{"tools":[{"name":"submit_case"}]}
]}`

// Everything from the endpoint must come back unchanged, because verify_echo refuses anything else.
func TestConversationIsEchoed(t *testing.T) {
	s := start(t, turns)
	c, err := model.New(model.Endpoint{BaseURL: s.URL, Model: "m"}, model.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var replies []*model.Reply
	history := []json.RawMessage{message("user", "begin")}
	for n := range 4 {
		r, err := c.Chat(context.Background(), model.Request{Messages: history, Tools: toolNamed("submit_case")})
		if err != nil {
			t.Fatalf("turn %d: %v", n+1, err)
		}
		replies, history = append(replies, r), append(history, r.Message)
		for _, call := range r.ToolCalls {
			answer, _ := json.Marshal(map[string]string{"role": "tool", "tool_call_id": call.ID, "content": "done"})
			history = append(history, answer)
		}
	}
	altered := append([]json.RawMessage{history[0], json.RawMessage(`{"role":"assistant","content":"never said"}`)},
		history[2:]...)
	_, err = c.Chat(context.Background(), model.Request{Messages: altered, Tools: toolNamed("submit_case")})
	if err == nil || !strings.Contains(err.Error(), "did not write like that") {
		t.Errorf("an altered message: %v", err)
	}
	if r := replies[0]; r.ToolCalls[0].ID != "call_1_0" || r.ToolCalls[1].Arguments != `{"cut off` ||
		r.Usage.Cost != 0.25 {
		t.Errorf("%+v", r)
	}
}

func TestAnswersAreTheSameEachTime(t *testing.T) {
	_, first := post(t, start(t, turns), ask("submit_case", "x"))
	_, second := post(t, start(t, turns), ask("submit_case", "x"))
	if first != second {
		t.Errorf("%s\n%s", first, second)
	}
}

func TestFaults(t *testing.T) {
	s := start(t, `{"worker":[
		{"status":503,"headers":{"Retry-After":"7","Content-Type":"text/plain"}},
		{"status":429,"error":{"message":"slow","type":"rate_limit_exceeded"}},
		{"error":"plain"}, {"raw":"<html>"}, {"raw":""}, {"cut":10,"content":"hello"}, {"drop":true}, {"empty":true},
		{"delay_ms":1,"drip_ms":1,"content":"slow"}
	]}`)
	for i, want := range []struct {
		status int
		part   string
	}{
		{503, "the script answers with status 503"}, {429, `{"error":{"message":"slow","type":"rate_limit_exceeded"}}`},
		{200, `{"error":"plain"}`}, {200, "<html>"}, {200, ""}, {0, "EOF"}, {0, "EOF"}, {200, `"completion_tokens":0`}, {200, "slow"},
	} {
		status, answer := post(t, s, ask("submit_case", "x"))
		if status != want.status || !strings.Contains(answer, want.part) {
			t.Errorf("step %d: %d %s, want %d %s", i+1, status, answer, want.status, want.part)
		}
	}
}

func TestHangEndsWithTheServer(t *testing.T) {
	arrived := make(chan struct{})
	s := start(t, `{"worker":[{"hang":true},{"delay_ms":3600000}]}`, scripted.OnRequest(func(scripted.Request) { arrived <- struct{}{} }))
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() { post(t, s, ask("submit_case", "x")) })
	}
	<-arrived
	<-arrived
	s.Close()
	wg.Wait()
}

func TestOtherPaths(t *testing.T) {
	s := start(t, `{}`)
	for path, want := range map[string]int{"/models": 200, "/nowhere": 404} {
		res, err := http.Get(s.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("%s: %d", path, res.StatusCode)
		}
	}
}

func TestParallelRequestsAreEachAnsweredOnce(t *testing.T) {
	s := start(t, `{"worker":[{"content":"x","repeat":20}],"evaluator":[{"content":"y","repeat":20}]}`)
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() {
			if status, answer := post(t, s, ask([]string{"submit_case", "submit_verdict"}[i%2], "q")); status != 200 {
				t.Error(answer)
			}
		})
	}
	wg.Wait()
	if len(s.Requests()) != 40 || len(s.Left()) != 0 {
		t.Errorf("%d requests, left %v", len(s.Requests()), s.Left())
	}
}

func TestLogFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log.jsonl")
	s := start(t, `{"worker":[{"content":"x"}],"lenient":true}`, scripted.LogFile(path), scripted.WithoutBodies())
	post(t, s, ask("submit_case", "line\nbreak"), "Authorization", "Bearer very-secret")
	post(t, s, "no JSON")
	s.Close()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.Split(bytes.TrimSpace(data), []byte("\n"))
	if len(lines) != 2 || bytes.Contains(data, []byte("very-secret")) {
		t.Fatalf("%s", data)
	}
	var first, second struct {
		N, Step, Status int
		Role, Text      string
		Authorized      bool
		Body            struct{ Messages []struct{ Content string } }
	}
	if json.Unmarshal(lines[0], &first) != nil || json.Unmarshal(lines[1], &second) != nil {
		t.Fatalf("%s", data)
	}
	if first.N != 1 || first.Role != "worker" || first.Status != 200 || !first.Authorized ||
		first.Body.Messages[0].Content != "line\nbreak" {
		t.Errorf("%+v", first)
	}
	if second.Text != "no JSON" || second.Authorized {
		t.Errorf("%+v", second)
	}
	if r := s.Requests()[0]; r.Body != nil || r.Role != "worker" {
		t.Errorf("%+v", r)
	}
}
