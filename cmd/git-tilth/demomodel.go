package main

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// demoModel is the demo's endpoint. It gives its answers in the order of the run's requests.
type demoModel struct {
	given   atomic.Int64
	answers []demoAnswer
}

// demoAnswer is an answer of demo/script.json.
type demoAnswer struct {
	Content string `json:"content"`
	Tools   []struct {
		Name string          `json:"name"`
		Args json.RawMessage `json:"args"`
	} `json:"tools"`
	DelayMS int             `json:"delay_ms"`
	Usage   json.RawMessage `json:"usage"`
}

// serveDemoModel listens on a free port of the loopback interface until the server is closed.
func serveDemoModel(script []byte) (server *http.Server, url string, err error) {
	m := &demoModel{}
	if err := json.Unmarshal(script, &m.answers); err != nil {
		return nil, "", err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", err
	}
	server = &http.Server{Handler: m, ReadHeaderTimeout: 30 * time.Second}
	go server.Serve(listener) // server.Close ends it
	return server, "http://" + listener.Addr().String() + "/v1", nil
}

func (m *demoModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n := int(m.given.Add(1))
	if n > len(m.answers) {
		http.Error(w, `{"error":{"message":"the demo has no more answers"}}`, http.StatusBadRequest)
		return
	}
	answer := m.answers[n-1]
	select {
	case <-r.Context().Done():
	case <-time.After(time.Duration(answer.DelayMS) * time.Millisecond):
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(answer.completion(n)) // the client may have left
	}
}

func (a demoAnswer) completion(n int) map[string]any {
	message, finish := map[string]any{"role": "assistant", "content": a.Content}, "stop"
	var calls []any
	for i, t := range a.Tools {
		call := map[string]any{"name": t.Name, "arguments": string(t.Args)}
		calls = append(calls, map[string]any{"id": fmt.Sprintf("call_%d_%d", n, i), "type": "function",
			"function": call})
	}
	if len(calls) > 0 {
		message["tool_calls"], finish = calls, "tool_calls"
	}
	return map[string]any{"id": fmt.Sprintf("demo-%d", n), "object": "chat.completion", "usage": a.Usage,
		"choices": []any{map[string]any{"index": 0, "message": message, "finish_reason": finish}}}
}
