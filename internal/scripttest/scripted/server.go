package scripted

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
)

// Roles, as queues are named in a script.
const (
	RoleWorker      = "worker"
	RoleEvaluator   = "evaluator"
	RoleInterview   = "interview"
	RoleSelfImprove = "self_improve"
)

// maxRequest limits a request's body in bytes.
const maxRequest = 256 << 20

// Request is one request to the endpoint. Step is the index of the step in its role's queue that answered it, or -1;
// Problem is then the reason.
type Request struct {
	N       int // from 1
	Role    string
	Step    int
	Status  int // 0 if the connection was dropped or the client left
	Problem string
	Header  http.Header
	Body    []byte
}

// Option changes how Start serves.
type Option func(*Server)

// LogFile appends each request to a file, one JSON object a line.
func LogFile(path string) Option { return func(s *Server) { s.logPath = path } }

// WithoutBodies drops Header and Body of requests, for measurements.
func WithoutBodies() Option { return func(s *Server) { s.forget = true } }

// OnRequest is called with each request before the answer, possibly concurrently.
func OnRequest(f func(Request)) Option { return func(s *Server) { s.onRequest = f } }

// Address listens there instead of on a free port. Only loopback addresses are taken.
func Address(addr string) Option { return func(s *Server) { s.addr = addr } }

// Server is a running endpoint.
type Server struct {
	// URL is the base URL to give to a client, for example http://127.0.0.1:39999/v1.
	URL string

	addr, logPath string
	forget        bool
	onRequest     func(Request)
	http          *http.Server
	stop          context.CancelFunc

	mu       sync.Mutex
	script   *Script
	queues   map[string]*queue
	requests []Request
	served   int
	echoes   map[string]bool
	log      *os.File
}

// Start serves a script on a free port of the loopback interface until Close.
func Start(script *Script, options ...Option) (*Server, error) {
	if script == nil {
		script = &Script{}
	}
	if err := script.check(); err != nil {
		return nil, err
	}
	s := &Server{script: script, addr: "127.0.0.1:0", queues: map[string]*queue{}, echoes: map[string]bool{}}
	for _, o := range options {
		o(s)
	}
	for role, steps := range script.queues() {
		s.queues[role] = newQueue(steps)
	}
	if err := s.listen(); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Server) listen() error {
	host, _, err := net.SplitHostPort(s.addr)
	if err != nil {
		return err
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return fmt.Errorf("%s is no loopback address", s.addr)
	}
	if s.logPath != "" {
		if s.log, err = os.OpenFile(s.logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
			return err
		}
	}
	listener, err := net.Listen("tcp", s.addr)
	if err != nil {
		return errors.Join(err, s.closeLog())
	}
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.URL = "http://" + listener.Addr().String() + "/v1"
	s.http = &http.Server{
		Handler:           s,
		ReadHeaderTimeout: 30 * time.Second,
		BaseContext:       func(net.Listener) context.Context { return ctx },
	}
	go s.http.Serve(listener) // it always ends with ErrServerClosed, or the listener's error at Close
	return nil
}

// Close ends the endpoint at once, with the answers in progress.
func (s *Server) Close() error {
	s.stop()
	err := s.http.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(err, s.closeLog())
}

func (s *Server) closeLog() error {
	if s.log == nil {
		return nil
	}
	err := s.log.Close()
	s.log = nil
	return err
}

// Requests returns the requests so far, in order of arrival.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// Left returns the number of unused steps of each role. Steps that repeat for ever do not count.
func (s *Server) Left() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := map[string]int{}
	for role, q := range s.queues {
		if n := q.unused(); n > 0 {
			left[role] = n
		}
	}
	return left
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	key := s.script.Key
	switch {
	case r.Method == http.MethodGet && key != "" && r.Header.Get("Authorization") != "Bearer "+key:
		writeJSON(w, http.StatusUnauthorized, errorBody("authentication_error", "the key is wrong"))
	case r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/models"):
		list := s.script.Models
		if list == nil {
			list = []byte(`{"object":"list","data":[{"id":"scripted","object":"model"}]}`)
		}
		writeJSON(w, http.StatusOK, list)
	case r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/chat/completions"):
		s.chat(w, r)
	default:
		said := "the scripted endpoint has no " + r.Method + " " + r.URL.Path
		writeJSON(w, http.StatusNotFound, errorBody("not_found_error", said))
	}
}

func (s *Server) chat(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxRequest))
	if err != nil {
		return // the client left
	}
	turn := s.turnFor(r.Header, body)
	if s.onRequest != nil {
		s.onRequest(turn.request)
	}
	if turn.step == nil {
		writeJSON(w, turn.request.Status, errorBody("invalid_request_error", turn.request.Problem))
		return
	}
	turn.answer(w, r)
}

// turnFor chooses the queue that answers a request, and logs it.
func (s *Server) turnFor(h http.Header, body []byte) *turn {
	s.mu.Lock()
	defer s.mu.Unlock()
	top := fields(body)
	s.served++
	t := &turn{request: Request{
		N: s.served, Step: -1, Role: roleOf(top["tools"]),
		Header: h.Clone(), Body: body,
	}}
	t.model = top["model"]
	s.choose(t, top)
	if t.step != nil && s.script.VerifyEcho {
		s.echoes[canonical(t.step.message(t.request.N))] = true
	}
	s.record(t.request)
	return t
}

func (s *Server) choose(t *turn, top map[string][]byte) {
	refuse := func(status int, problem string) {
		t.request.Status, t.request.Problem = status, problem
	}
	if s.script.Key != "" && t.request.Header.Get("Authorization") != "Bearer "+s.script.Key {
		refuse(http.StatusUnauthorized, "incorrect API key provided")
		return
	}
	if problem := s.checkHistory(t.request.Body, top); problem != "" {
		refuse(http.StatusBadRequest, problem)
		return
	}
	text := newHaystack(t.request.Body, top["messages"])
	i := s.queues[t.request.Role].next(text)
	if i < 0 {
		s.exhausted(t, refuse)
		return
	}
	step := &s.queues[t.request.Role].steps[i]
	if problem := step.mismatch(text); problem != "" {
		refuse(http.StatusBadRequest, fmt.Sprintf("script mismatch: %s, step %d: %s", t.request.Role, i+1, problem))
		return
	}
	s.queues[t.request.Role].use(i)
	t.step, t.request.Step, t.request.Status = step, i, step.status()
}

// exhausted answers a request without a step. Without a step for the learning call there is nothing to learn.
func (s *Server) exhausted(t *turn, refuse func(int, string)) {
	if t.request.Role == RoleSelfImprove && len(s.script.SelfImprove) == 0 {
		t.step = &Step{Content: `{"propose":"no"}`}
		t.request.Status = http.StatusOK
		return
	}
	refuse(http.StatusBadRequest, "script exhausted: "+t.request.Role)
}

// logLine is a request in the log file. The key is not in it, only whether there was one.
type logLine struct {
	N          int             `json:"n"`
	Role       string          `json:"role"`
	Step       int             `json:"step"`
	Status     int             `json:"status"`
	Authorized bool            `json:"authorized,omitempty"`
	Problem    string          `json:"problem,omitempty"`
	Body       json.RawMessage `json:"body,omitempty"`
	Text       string          `json:"text,omitempty"` // a body that is not JSON
}

func (s *Server) record(r Request) {
	if s.log != nil {
		line := logLine{N: r.N, Role: r.Role, Step: r.Step, Status: r.Status, Problem: r.Problem,
			Authorized: r.Header.Get("Authorization") != ""}
		if json.Valid(r.Body) {
			line.Body = r.Body
		} else {
			line.Text = string(r.Body)
		}
		if data, err := json.Marshal(line); err == nil {
			s.log.Write(append(data, '\n')) // a full disk must not change the endpoint's answers
		}
	}
	if s.forget {
		r.Header, r.Body = nil, nil
	}
	s.requests = append(s.requests, r)
}

// roleOf derives the role from the offered tools.
func roleOf(tools []byte) string {
	list := elements(tools)
	if len(list) == 0 {
		return RoleSelfImprove
	}
	for _, tool := range list {
		var spec struct {
			Function struct {
				Name string `json:"name"`
			} `json:"function"`
		}
		if json.Unmarshal(tool, &spec) != nil {
			continue
		}
		switch spec.Function.Name {
		case "submit_case":
			return RoleWorker
		case "submit_verdict":
			return RoleEvaluator
		case "write_seed":
			return RoleInterview
		}
	}
	return RoleWorker
}

func errorBody(kind, message string) []byte {
	b, _ := json.Marshal(map[string]any{"error": map[string]string{"type": kind, "message": message}})
	return b
}

func writeJSON(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(body) // a client that left needs no answer
}
