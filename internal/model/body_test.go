package model

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand"
	"slices"
	"sync"
	"testing"
	"testing/iotest"
)

func contentOf(t *testing.T, b *body) string {
	t.Helper()
	again, err := b.again()
	if err != nil {
		t.Fatal(err)
	}
	first, err := io.ReadAll(b)
	if err != nil {
		t.Fatal(err)
	}
	second, err := io.ReadAll(iotest.OneByteReader(again))
	if err != nil {
		t.Fatal(err)
	}
	if int64(len(first)) != b.size() || !bytes.Equal(first, second) {
		t.Errorf("size %d, read %d and then %d bytes", b.size(), len(first), len(second))
	}
	return string(first)
}

func naive(head string, messages []json.RawMessage) string {
	return head + string(bytes.Join(raws(messages), []byte(","))) + bodyTail
}

func raws(messages []json.RawMessage) [][]byte {
	var out [][]byte
	for _, m := range messages {
		out = append(out, m)
	}
	return out
}

// However histories grow, shrink, change and alternate, a body is what joining its messages gives, and bodies handed
// out before stay what they were.
func TestBodyIsItsMessagesJoined(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	var a assembler
	var history []json.RawMessage
	type past struct {
		body *body
		want string
	}
	var pasts []past
	for i := range 300 {
		switch rng.Intn(8) {
		case 0:
			history = slices.Clone(history[:rng.Intn(len(history)+1)])
		case 1:
			if len(history) > 0 {
				history = slices.Clone(history)
				history[rng.Intn(len(history))] = json.RawMessage(fmt.Sprintf(`"changed %d"`, i))
			}
		default:
			history = append(history, json.RawMessage(fmt.Sprintf(`{"n":%d}`, i)))
		}
		head := "{["
		if rng.Intn(10) == 0 {
			head = `{"other":[`
		}
		b := a.body([]byte(head), history)
		pasts = append(pasts, past{b, naive(head, history)})
	}
	for i, p := range pasts {
		if got := contentOf(t, p.body); got != p.want {
			t.Fatalf("body %d: %s, want %s", i, got, p.want)
		}
	}
}

func TestBodiesOfConcurrentConversations(t *testing.T) {
	var a assembler
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			var history []json.RawMessage
			for i := range 50 {
				history = append(history, json.RawMessage(fmt.Sprintf(`"%d-%d"`, g, i)))
				got, err := io.ReadAll(a.body([]byte("["), history))
				if err != nil || string(got) != naive("[", history) {
					t.Errorf("%s", got)
					return
				}
			}
		})
	}
	wg.Wait()
}

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
		got := contentOf(t, c.assembler.body(c.head(tt.request), tt.request.Messages))
		if got != tt.want || !json.Valid([]byte(got)) {
			t.Errorf("%s:\n%s, want\n%s", tt.name, got, tt.want)
		}
	}
}
