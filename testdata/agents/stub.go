package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"
)

// answer is the stubbed model's answer to one request.
type answer struct {
	text    string
	shell   string // a command for the program's shell tool
	write   string // a path for the program's file writing tool
	read    string // a path for its file reading tool
	agent   string // a prompt for a subagent
	hang    bool   // until the client leaves
	status  int    // an HTTP error, with body and headers
	body    string
	headers map[string]string
}

// stub is a model API on loopback. Requests that offer tools are the conversation and go to brain; the others
// (titles, quota checks, routing) get a short text.
type stub struct {
	*httptest.Server
	dialect dialect

	mu    sync.Mutex
	brain func(n int, body string) answer
	n     int
	given int64    // answers of the model since play
	log   []string // bodies of the conversation's requests
	seen  []string // every request line
}

// dialect implements one API: it finds the conversation of a request and writes an answer.
type dialect struct {
	path  string // part of the path of a model call
	main  func(body []byte) bool
	write func(w http.ResponseWriter, r *http.Request, body []byte, a answer)
}

func startStub(d dialect) *stub {
	s := &stub{dialect: d}
	s.Server = httptest.NewServer(s)
	return s
}

// play sets the model's answers from here on and clears the log.
func (s *stub) play(brain func(n int, body string) answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.brain, s.n, s.log, s.given = brain, 0, nil, 0
}

// answered returns the number of answers of the model since play.
func (s *stub) answered() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.given
}

// requests returns the bodies of the conversation's requests since play.
func (s *stub) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string{}, s.log...)
}

func (s *stub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	s.mu.Lock()
	s.seen = append(s.seen, r.Method+" "+r.URL.String())
	s.mu.Unlock()
	if r.Method != http.MethodPost || !strings.Contains(r.URL.Path, s.dialect.path) {
		http.Error(w, `{"error":{"message":"not found","type":"not_found_error"}}`, http.StatusNotFound)
		return
	}
	a := answer{text: "ok"}
	if s.dialect.main(body) {
		a = s.think(string(body))
	}
	switch {
	case a.hang:
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	case a.status != 0:
		w.Header().Set("Content-Type", "application/json")
		for k, v := range a.headers {
			w.Header().Set(k, v)
		}
		w.WriteHeader(a.status)
		fmt.Fprint(w, a.body)
	default:
		s.dialect.write(w, r, body, a)
	}
}

func (s *stub) think(body string) answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = append(s.log, body)
	s.n++
	if s.brain == nil {
		return answer{text: "nothing to say"}
	}
	a := s.brain(s.n, body)
	if !a.hang && a.status == 0 {
		s.given++
	}
	return a
}

// sse writes one server-sent event.
func sse(w http.ResponseWriter, event string, data any) {
	encoded, err := json.Marshal(data)
	if err != nil {
		panic(err)
	}
	if event != "" {
		fmt.Fprintf(w, "event: %s\n", event)
	}
	fmt.Fprintf(w, "data: %s\n\n", encoded)
	if f, ok := w.(http.Flusher); ok {
		f.Flush()
	}
}

type obj = map[string]any

func startStream(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(v)
}

func unique(prefix string) string { return fmt.Sprintf("%s%d", prefix, time.Now().UnixNano()) }

func mentions(body []byte, what string) bool { return bytes.Contains(body, []byte(what)) }

func quoted(v any) string {
	data, _ := json.Marshal(v)
	return string(data)
}
