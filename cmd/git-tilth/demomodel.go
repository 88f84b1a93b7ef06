package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/tidwall/gjson"
)

// demoModel is the demo's endpoint. Each role's answers are given in their order.
type demoModel struct {
	mu    sync.Mutex
	given int
	left  map[string][]demoAnswer
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
	if err := json.Unmarshal(script, &m.left); err != nil {
		return nil, "", err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", err
	}
	server = &http.Server{Handler: m, ReadHeaderTimeout: 30 * time.Second}
	go server.Serve(listener) // ends with the server
	return server, "http://" + listener.Addr().String() + "/v1", nil
}

func (m *demoModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client left
	}
	role := demoRole(body)
	answer, n, ok := m.next(role)
	if !ok {
		http.Error(w, fmt.Sprintf(`{"error":{"message":"the demo has no more answers for the %s"}}`, role), http.StatusBadRequest)
		return
	}
	select {
	case <-r.Context().Done():
	case <-time.After(time.Duration(answer.DelayMS) * time.Millisecond):
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(answer.completion(n)) // a client that left needs no answer
	}
}

// demoRole is the role that asks, by the tools on offer.
func demoRole(request []byte) string {
	tools := gjson.GetBytes(request, "tools")
	switch {
	case !tools.Exists():
		return "self_improve"
	case tools.Get(`#(function.name=="submit_verdict")`).Exists():
		return "evaluator"
	}
	return "worker"
}

func (m *demoModel) next(role string) (answer demoAnswer, n int, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	queue := m.left[role]
	if len(queue) == 0 {
		return demoAnswer{}, 0, false
	}
	m.left[role] = queue[1:]
	m.given++
	return queue[0], m.given, true
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
