package model_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/git-tilth/git-tilth/internal/model"
	"github.com/git-tilth/git-tilth/internal/scripttest/scripted"
)

const workerTools = `[{"type":"function","function":{"name":"submit_case","parameters":{"type":"object"}}}]`

func messages(texts ...string) []json.RawMessage {
	var out []json.RawMessage
	for _, text := range texts {
		raw, _ := json.Marshal(map[string]string{"role": "user", "content": text})
		out = append(out, raw)
	}
	return out
}

func workerRequest(texts ...string) model.Request {
	return model.Request{Messages: messages(texts...), Tools: json.RawMessage(workerTools)}
}

func start(t *testing.T, script scripted.Script) *scripted.Server {
	t.Helper()
	s, err := scripted.Start(&script)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// client asks the endpoint at a URL.
func client(t *testing.T, url string, o model.Options) *model.Client {
	return clientOf(t, model.Endpoint{BaseURL: url, Model: "test-model", APIKey: "sk-very-secret"}, o)
}

func clientOf(t testing.TB, e model.Endpoint, o model.Options) *model.Client {
	t.Helper()
	c, err := model.New(e, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func serve(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	return s.URL
}

func failureOf(t *testing.T, err error) *model.Failure {
	t.Helper()
	var f *model.Failure
	if !errors.As(err, &f) {
		t.Fatalf("error %v, want a Failure", err)
	}
	if strings.Contains(f.Error(), "sk-very-secret") || strings.Contains(f.Said, "sk-very-secret") {
		t.Errorf("the key is in %q", f.Error())
	}
	return f
}

const fine = `{"choices":[{"message":{"role":"assistant","content":"fine"},"finish_reason":"stop"}]}`

func TestFailuresOnTheWire(t *testing.T) {
	cut, none := 30, 0
	html := "<html><body>It works!</body></html>"
	broken := `{"choices":[{"mess`
	tests := []struct {
		name string
		step scripted.Step
		kind model.Kind
		says string
	}{
		{"wrong key", scripted.Step{Status: 401, Error: json.RawMessage(`{"message":"incorrect key sk-very-secret"}`)}, model.Fatal, "401 Unauthorized: incorrect key [redacted:API_KEY]"},
		{"server error", scripted.Step{Status: 500}, model.HTTP, "500 Internal Server Error"},
		{"server error, cut off", scripted.Step{Status: 500, Cut: &cut}, model.HTTP, "500"},
		{"error object", scripted.Step{Error: json.RawMessage(`{"message":"overloaded"}`)}, model.ErrorObject, "overloaded"},
		{"error in the choice", scripted.Step{Content: "x", FinishReason: "error", ChoiceError: json.RawMessage(`{"code":502,"message":"upstream"}`)}, model.ErrorObject, "upstream"},
		{"finish reason", scripted.Step{Content: "x", FinishReason: "error"}, model.FinishError, "finish_reason"},
		{"nothing", scripted.Step{Empty: true}, model.Empty, "neither"},
		{"HTML", scripted.Step{Raw: &html}, model.Malformed, "HTML"},
		{"broken JSON", scripted.Step{Raw: &broken}, model.Malformed, "not a valid chat completion"},
		{"cut off", scripted.Step{Content: "hello", Cut: &cut}, model.Network, "cut off"},
		{"no body at all", scripted.Step{Content: "hello", Cut: &none}, model.Network, "cut off"},
		{"dropped", scripted.Step{Drop: true}, model.Network, ""},
		{"redirect", scripted.Step{Status: 308, Headers: map[string]string{"Location": "https://elsewhere.example/v1"}}, model.Fatal, "redirects to https://elsewhere.example/v1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := start(t, scripted.Script{Worker: []scripted.Step{tt.step}})
			_, err := client(t, s.URL, model.Options{}).Chat(context.Background(), workerRequest("hi"))
			f := failureOf(t, err)
			if f.Kind != tt.kind || !strings.Contains(f.Error(), tt.says) ||
				!strings.HasPrefix(f.Error(), s.URL+"/chat/completions") {
				t.Errorf("%s %q, want %s with %q", f.Kind, f, tt.kind, tt.says)
			}
			if len(s.Requests()) != 1 {
				t.Errorf("%d requests for one attempt", len(s.Requests()))
			}
		})
	}
}

func TestNoConnection(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + l.Addr().String()
	l.Close()
	_, err = client(t, url, model.Options{}).Chat(context.Background(), workerRequest("hi"))
	if f := failureOf(t, err); f.Kind != model.Network || !strings.Contains(f.Error(), "connection refused") {
		t.Errorf("%s %v", f.Kind, f)
	}
}

func TestCertificateThatIsNotTrustedIsFatal(t *testing.T) {
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	defer s.Close()
	_, err := client(t, s.URL, model.Options{}).Chat(context.Background(), workerRequest("hi"))
	if f := failureOf(t, err); f.Kind != model.Fatal || !strings.Contains(f.Error(), "certificate") {
		t.Errorf("%s %v", f.Kind, f)
	}
}

func TestHTTPSToAnHTTPServerIsFatal(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {})
	_, err := client(t, strings.Replace(url, "http:", "https:", 1), model.Options{}).Chat(context.Background(),
		workerRequest("hi"))
	if f := failureOf(t, err); f.Kind != model.Fatal {
		t.Errorf("%s %v", f.Kind, f)
	}
}

func TestSlowAnswers(t *testing.T) {
	tests := map[string]struct {
		step    scripted.Step
		options model.Options
	}{
		"no answer": {scripted.Step{Hang: true}, model.Options{Timeout: 50 * time.Millisecond}},
		"slow body": {scripted.Step{Content: strings.Repeat("x", 1000), DripMS: 20},
			model.Options{Timeout: 100 * time.Millisecond}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := start(t, scripted.Script{Worker: []scripted.Step{tt.step}})
			_, err := client(t, s.URL, tt.options).Chat(context.Background(), workerRequest("hi"))
			if f := failureOf(t, err); f.Kind != model.Timeout || !f.Retryable() {
				t.Errorf("%s %v", f.Kind, f)
			}
		})
	}
}

func TestCancel(t *testing.T) {
	for name, beginning := range map[string]string{"before the answer": "", "in the answer": "{"} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			url := serve(t, func(w http.ResponseWriter, r *http.Request) {
				io.Copy(io.Discard, r.Body)
				if beginning != "" {
					io.WriteString(w, beginning)
					http.NewResponseController(w).Flush()
				}
				cancel()
				<-r.Context().Done()
			})
			_, err := client(t, url, model.Options{}).Chat(ctx, workerRequest("hi"))
			if f := failureOf(t, err); f.Kind != model.Canceled || !errors.Is(err, context.Canceled) || f.Retryable() {
				t.Errorf("%s %v", f.Kind, err)
			}
		})
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	s := start(t, scripted.Script{})
	_, err := client(t, s.URL, model.Options{}).Chat(ctx, workerRequest("hi"))
	if f := failureOf(t, err); f.Kind != model.Canceled {
		t.Errorf("%s %v", f.Kind, err)
	}
}

// An error's status counts even when its text does not arrive.
func TestErrorWithAnEndlessBody(t *testing.T) {
	s := start(t, scripted.Script{
		Worker: []scripted.Step{{Status: 503, Headers: map[string]string{"Retry-After": "3"}, DripMS: 60000}}})
	_, err := client(t, s.URL, model.Options{ErrorDelay: 50 * time.Millisecond}).Chat(context.Background(),
		workerRequest("hi"))
	if f := failureOf(t, err); f.Kind != model.HTTP || f.Status != 503 || f.RetryAfter == nil ||
		*f.RetryAfter != 3*time.Second {
		t.Errorf("%s %v", f.Kind, f)
	}
}

func TestAnswerIsBounded(t *testing.T) {
	long := strings.Repeat("x", 5000)
	s := start(t, scripted.Script{Worker: []scripted.Step{{Content: long}, {Status: 500, Raw: &long}}})
	c := client(t, s.URL, model.Options{MaxResponse: 4000})
	_, err := c.Chat(context.Background(), workerRequest("hi"))
	if f := failureOf(t, err); f.Kind != model.Malformed || !strings.Contains(f.Error(), "too large") {
		t.Errorf("%s %v", f.Kind, f)
	}
	_, err = c.Chat(context.Background(), workerRequest("hi"))
	if f := failureOf(t, err); f.Kind != model.HTTP || len(f.Error()) > 600 {
		t.Errorf("%s, %d bytes", f.Kind, len(f.Error()))
	}
	exact := serve(t, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, fine) })
	if _, err := client(t, exact, model.Options{MaxResponse: int64(len(fine))}).Chat(context.Background(),
		workerRequest("hi")); err != nil {
		t.Errorf("an answer of exactly the limit: %v", err)
	}
}

// Variables for other OpenAI clients must not reach this endpoint.
func TestEnvironmentDoesNotLeak(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "leak-key")
	t.Setenv("OPENAI_ADMIN_KEY", "leak-admin")
	t.Setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/leak")
	t.Setenv("OPENAI_ORG_ID", "leak-org")
	t.Setenv("OPENAI_PROJECT_ID", "leak-project")
	t.Setenv("OPENAI_CUSTOM_HEADERS", "X-Leak: leak-header\nAuthorization: leak-auth")
	var got http.Header
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got = r.Header.Clone()
		io.WriteString(w, fine)
	})
	for _, key := range []string{"", "own-key"} {
		c := clientOf(t, model.Endpoint{BaseURL: url, Model: "m", APIKey: key}, model.Options{})
		if _, err := c.Chat(context.Background(), workerRequest("hi")); err != nil {
			t.Fatal(err)
		}
		if dump := fmt.Sprint(got); strings.Contains(strings.ToLower(dump), "leak") ||
			strings.Contains(dump, "Stainless") {
			t.Errorf("headers %v", got)
		}
		want := ""
		if key != "" {
			want = "Bearer own-key"
		}
		if got.Get("Authorization") != want {
			t.Errorf("authorization %q, want %q", got.Get("Authorization"), want)
		}
	}
}

func TestBaseURL(t *testing.T) {
	var path string
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		path = r.URL.String()
		io.WriteString(w, fine)
	})
	for base, want := range map[string]string{
		"":                     "/chat/completions",
		"/":                    "/chat/completions",
		"/v1":                  "/v1/chat/completions",
		"/v1/":                 "/v1/chat/completions",
		"/api/v1//":            "/api/v1/chat/completions",
		"/a%2Fb/v1":            "/a%2Fb/v1/chat/completions",
		"/v1?api-version=2&x=": "/v1/chat/completions?api-version=2&x=",
		"/v1#part":             "/v1/chat/completions",
	} {
		if _, err := client(t, " "+url+base+"\n", model.Options{}).Chat(context.Background(),
			workerRequest("hi")); err != nil {
			t.Errorf("%q: %v", base, err)
		}
		if path != want {
			t.Errorf("%q: %s, want %s", base, path, want)
		}
	}
	for _, bad := range []string{"", "localhost:8080/v1", "ftp://host/v1", "http://", "://x", "/v1", "http://user:hunter2@ho st/"} {
		if _, err := model.New(model.Endpoint{BaseURL: bad}, model.Options{}); err == nil ||
			strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestSecretsOfTheURLAreNotShown(t *testing.T) {
	_, err := client(t, "http://user:hunter2@127.0.0.1:1/v1?key=hunter3", model.Options{}).Chat(context.Background(), workerRequest("hi"))
	if f := failureOf(t, err); strings.Contains(f.Error(), "hunter") {
		t.Error(f)
	}
}

func TestKeyThatCannotBeSent(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {})
	c := clientOf(t, model.Endpoint{BaseURL: url, Model: "m", APIKey: "first\nsecond"}, model.Options{})
	_, err := c.Chat(context.Background(), workerRequest("hi"))
	if f := failureOf(t, err); f.Kind != model.Fatal || strings.Contains(f.Error(), "second") {
		t.Errorf("%s %v", f.Kind, f)
	}
}

func TestConnectionIsKeptAndItsLossIsSurvived(t *testing.T) {
	var from []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		from = append(from, r.RemoteAddr)
		io.Copy(io.Discard, r.Body)
		io.WriteString(w, fine)
	}))
	defer s.Close()
	c := client(t, s.URL, model.Options{})
	for range 3 {
		if _, err := c.Chat(context.Background(), workerRequest("hi")); err != nil {
			t.Fatal(err)
		}
	}
	s.CloseClientConnections()
	// The client may or may not have noticed by now, but it must not try the dead connection twice.
	if _, err := c.Chat(context.Background(), workerRequest("hi")); err != nil {
		if f := failureOf(t, err); f.Kind != model.Network {
			t.Fatal(err)
		}
		if _, err := c.Chat(context.Background(), workerRequest("hi")); err != nil {
			t.Fatal(err)
		}
	}
	if from[0] != from[1] || from[1] != from[2] {
		t.Errorf("connections were not kept: %v", from)
	}
}

func TestUsageLimitOnTheWire(t *testing.T) {
	s := start(t, scripted.Script{Worker: []scripted.Step{
		{Status: 429, Error: json.RawMessage(`{"type":"usage_limit_reached","message":"the plan's limit","resets_at":1795276800}`)},
		{Error: json.RawMessage(`{"code":"insufficient_quota","message":"the plan's limit"}`), Headers: map[string]string{"Retry-After": "3600"}},
	}})
	c := client(t, s.URL, model.Options{Now: func() time.Time { return time.Unix(1795270000, 0) }})
	for _, want := range []time.Time{time.Unix(1795276800, 0), time.Unix(1795273600, 0)} {
		_, err := c.Chat(context.Background(), workerRequest("hi"))
		f := failureOf(t, err)
		if f.Kind != model.UsageLimit || !f.LimitReset.Equal(want) || f.Retryable() ||
			!strings.Contains(f.Error(), "the limit ends at 2026-11-2") {
			t.Errorf("%s %v: %v", f.Kind, f.LimitReset, f)
		}
	}
}
