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
	"time"

	"github.com/git-tilth/git-tilth/internal/model"
)

// longHistory is a conversation of n messages of about 2 kB each, as after reading files.
func longHistory(n int) []json.RawMessage {
	text := strings.Repeat("func f() { return \"x\" } // line\n", 60)
	var out []json.RawMessage
	for i := range n {
		raw, _ := json.Marshal(map[string]string{"role": "user", "content": fmt.Sprint(i, text)})
		out = append(out, raw)
	}
	return out
}

// zeroLatency reads a request and answers at once.
func zeroLatency(b *testing.B) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		io.WriteString(w, fine)
	}))
	b.Cleanup(s.Close)
	return s.URL
}

// BenchmarkTurn measures a turn at different lengths of the history: with the client, and with the same bytes posted
// raw.
func BenchmarkTurn(b *testing.B) {
	for _, n := range []int{2, 50, 400} {
		history := longHistory(n)
		tools := json.RawMessage(workerTools)
		b.Run(fmt.Sprintf("client/%d", n), func(b *testing.B) {
			c := clientOf(b, model.Endpoint{BaseURL: zeroLatency(b), Model: "m", APIKey: "k"}, model.Options{})
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

// BenchmarkConversation runs 200 turns of a growing history. It reports the time of a turn above a raw replay of the
// same bytes, in microseconds, for the first and the last twenty turns. The two alternate in going first, so that the
// garbage collector and the caches favour neither.
func BenchmarkConversation(b *testing.B) {
	const turns, edge = 200, 20
	steps := longHistory(2 * turns)
	url := zeroLatency(b)
	replay := replays(steps)
	var first, last time.Duration
	for b.Loop() {
		c := clientOf(b, model.Endpoint{BaseURL: url, Model: "m"}, model.Options{})
		for turn := range turns {
			n := 2*turn + 1
			ask := func() {
				if _, err := c.Chat(context.Background(),
					model.Request{Messages: steps[:n], Tools: json.RawMessage(workerTools)}); err != nil {
					b.Fatal(err)
				}
			}
			above := difference(turn%2 == 0, ask, func() { replay(b, url, n) })
			switch {
			case turn < edge:
				first += above
			case turn >= turns-edge:
				last += above
			}
		}
		c.Close()
	}
	perTurn := float64(b.N) * edge * float64(time.Microsecond)
	b.ReportMetric(float64(first)/perTurn, "first-µs/turn")
	b.ReportMetric(float64(last)/perTurn, "last-µs/turn")
}

// difference returns how much longer f takes than g.
func difference(swap bool, f, g func()) time.Duration {
	took := func(h func()) time.Duration {
		begin := time.Now()
		h()
		return time.Since(begin)
	}
	if swap {
		base := took(g)
		return took(f) - base
	}
	return took(f) - took(g)
}

// replays returns a function that posts the first n messages as a request, from prepared bytes.
func replays(messages []json.RawMessage) func(b *testing.B, url string, n int) {
	all := []byte(`{"model":"m","tools":` + workerTools + `,"messages":[`)
	var ends []int
	for i, m := range messages {
		if i > 0 {
			all = append(all, ',')
		}
		all = append(all, m...)
		ends = append(ends, len(all))
	}
	return func(b *testing.B, url string, n int) {
		body := io.MultiReader(bytes.NewReader(all[:ends[n-1]]), strings.NewReader("]}"))
		req, err := http.NewRequest(http.MethodPost, url, body)
		if err != nil {
			b.Fatal(err)
		}
		req.ContentLength = int64(ends[n-1] + 2)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			b.Fatal(err)
		}
		io.Copy(io.Discard, res.Body)
		res.Body.Close()
	}
}
