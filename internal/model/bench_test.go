package model_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/git-tilth/git-tilth/internal/model"
)

// longHistory is a conversation of n messages of about 2 kB each, as reading files makes it.
func longHistory(n int) []json.RawMessage {
	text := strings.Repeat("func f() { return \"x\" } // line\n", 60)
	var out []json.RawMessage
	for i := range n {
		raw, _ := json.Marshal(map[string]string{"role": "user", "content": fmt.Sprint(i, text)})
		out = append(out, raw)
	}
	return out
}

// zeroLatency takes a request in and answers at once.
func zeroLatency(b *testing.B) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		io.WriteString(w, fine)
	}))
	b.Cleanup(s.Close)
	return s.URL
}

// BenchmarkTurn is what a turn costs at different lengths of the history: the client's, and the same bytes posted raw.
func BenchmarkTurn(b *testing.B) {
	for _, n := range []int{2, 50, 400} {
		history := longHistory(n)
		tools := json.RawMessage(workerTools)
		b.Run(fmt.Sprintf("client/%d", n), func(b *testing.B) {
			c := model.New(model.Endpoint{BaseURL: zeroLatency(b), Model: "m", APIKey: "k"}, model.Options{})
			defer c.Close()
			b.ReportAllocs()
			for b.Loop() {
				if _, err := c.Chat(context.Background(), model.Request{Messages: history, Tools: tools}); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("raw/%d", n), func(b *testing.B) {
			url := zeroLatency(b)
			body := `{"model":"m","tools":` + workerTools + `,"messages":[` + string(bytes.Join(raw(history), []byte(","))) + `]}`
			b.ReportAllocs()
			for b.Loop() {
				res, err := http.Post(url, "application/json", strings.NewReader(body))
				if err != nil {
					b.Fatal(err)
				}
				io.Copy(io.Discard, res.Body)
				res.Body.Close()
			}
		})
	}
}

func raw(messages []json.RawMessage) [][]byte {
	var out [][]byte
	for _, m := range messages {
		out = append(out, m)
	}
	return out
}
