package agent

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/git-tilth/git-tilth/internal/model"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/scripttest/scripted"
)

// recorder makes calls that do not wait, and notes their waits with the reasons, and the recorded events.
type recorder struct {
	waits    []time.Duration
	kinds    []model.Kind
	attempts int
}

func (r *recorder) calls(t *testing.T, attempts int, steps ...scripted.Step) (Calls, *scripted.Server) {
	t.Helper()
	s, err := scripted.Start(&scripted.Script{Worker: steps})
	if err != nil {
		t.Fatal(err)
	}
	c, err := model.New(model.Endpoint{BaseURL: s.URL, Model: "test-model"}, model.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); s.Close() })
	return Calls{
		Chat: c.Chat, Attempts: attempts,
		Retrying: func(f *model.Failure, _ time.Duration) { r.kinds = append(r.kinds, f.Kind) },
		Sleep: func(_ context.Context, d time.Duration) error {
			r.waits = append(r.waits, d)
			return nil
		},
		Record: func(c *record.ModelCall, _ model.Usage) error { r.attempts = c.Attempt; return nil },
		Emit:   func(record.Event) error { return nil },
	}, s
}

func hi() model.Request {
	return model.Request{Messages: []json.RawMessage{json.RawMessage(`{"role":"user","content":"hi"}`)},
		Tools: json.RawMessage(`[{"type":"function","function":{"name":"submit_case"}}]`)}
}

func TestRetryWaits(t *testing.T) {
	var r recorder
	calls, _ := r.calls(t, 0, scripted.Step{Status: 503, Repeat: -1})
	_, err := calls.Make(t.Context(), hi())
	f, ok := errors.AsType[*model.Failure](err)
	if !ok || f.Kind != model.HTTP || f.Status != 503 || r.attempts != defaultAttempts {
		t.Errorf("%v after %d attempts", err, r.attempts)
	}
	want := []time.Duration{1, 2, 4, 8, 16, 32, 60}
	for i := range want {
		want[i] *= time.Second
	}
	if !slices.Equal(r.waits, want) {
		t.Errorf("waits %v, want %v", r.waits, want)
	}
}

func TestRetryGoesOnWithTheSameHistory(t *testing.T) {
	html := "<html>"
	zero := map[string]string{"Retry-After": "0"}
	var r recorder
	calls, s := r.calls(t, 8, []scripted.Step{
		{Status: 429, Headers: zero}, {Status: 429, Headers: map[string]string{"Retry-After": "7"}}, {Empty: true},
		{Error: json.RawMessage(`{"message":"m"}`)}, {FinishReason: "error", Content: "poison"}, {Drop: true}, {Raw: &html},
		{Content: "done"},
	}...)
	reply, err := calls.Make(t.Context(), hi())
	if err != nil || reply.Content != "done" || r.attempts != 8 {
		t.Fatal(reply, r.attempts, err)
	}
	wantKinds := []model.Kind{model.HTTP, model.HTTP, model.Empty, model.ErrorObject, model.FinishError, model.Network,
		model.Malformed}
	wantWaits := []time.Duration{0, 7 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second,
		32 * time.Second, time.Minute}
	if !slices.Equal(r.kinds, wantKinds) || !slices.Equal(r.waits, wantWaits) {
		t.Errorf("%v %v", r.kinds, r.waits)
	}
	requests := s.Requests()
	for _, q := range requests {
		if string(q.Body) != string(requests[0].Body) {
			t.Errorf("request %d differs: %s", q.N, q.Body)
		}
	}
}

func TestWhatNoRetryMends(t *testing.T) {
	for _, status := range []int{400, 401, 402, 403, 404, 301} {
		var r recorder
		calls, _ := r.calls(t, 8, scripted.Step{Status: status, Repeat: -1})
		_, err := calls.Make(t.Context(), hi())
		if err == nil || r.attempts != 1 || len(r.waits) != 0 {
			t.Errorf("%d: %v after %d attempts", status, err, r.attempts)
		}
	}
}

func TestCancelWhileWaiting(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var r recorder
	calls, _ := r.calls(t, 0, scripted.Step{Status: 503, Repeat: -1})
	calls.Sleep, calls.Retrying = nil, func(*model.Failure, time.Duration) { cancel() }
	_, err := calls.Make(ctx, hi())
	if !errors.Is(err, context.Canceled) || r.attempts != 1 {
		t.Errorf("%v after %d attempts", err, r.attempts)
	}
}

// What cannot be written down is not tried again: every attempt is on the record before the next one.
func TestCallThatCannotBeRecorded(t *testing.T) {
	var r recorder
	calls, s := r.calls(t, 8, scripted.Step{Status: 503, Repeat: -1})
	full := errors.New("the disk is full")
	calls.Record = func(*record.ModelCall, model.Usage) error { return full }
	if _, err := calls.Make(t.Context(), hi()); err != full || len(s.Requests()) != 1 {
		t.Errorf("%v after %d requests", err, len(s.Requests()))
	}
}

// Numbers that no call can have are recorded as unknown.
func TestNumbersOfACallAreBounded(t *testing.T) {
	for _, c := range []struct {
		cost   float64
		tokens int64
		known  bool
	}{{1e308, 1e9 + 1, false}, {math.Inf(1), math.MaxInt64, false}, {math.NaN(), -1, false}, {-1, math.MinInt64, false},
		{10_000, 1e9, true}} {
		var call *record.ModelCall
		calls := Calls{
			Chat: func(context.Context, model.Request) (*model.Reply, error) {
				used := model.Usage{Prompt: c.tokens, Eval: c.tokens, Cost: c.cost, CostKnown: true}
				return &model.Reply{Usage: used}, nil
			},
			Record: func(c *record.ModelCall, _ model.Usage) error { call = c; return nil },
		}
		reply, err := calls.Make(t.Context(), hi())
		known := call.Cost != nil && call.PromptTokens > 0 && call.EvalTokens > 0
		if err != nil || known != c.known || (call.PromptTokens != 0) != c.known || reply.Usage.CostKnown != c.known {
			t.Errorf("%g dollars and %d tokens: %+v, %v", c.cost, c.tokens, call, err)
		}
	}
	for _, result := range []string{`{"total_cost_usd":-1}`, `{"total_cost_usd":1e308}`,
		`{"model_usage_since_last_result":{"m":{"costUSD":1},"n":{"costUSD":1e308}}}`} {
		s := newStream(claude(), &Turn{})
		if s.claudeSum(gjson.Parse(result)); s.usage.CostKnown {
			t.Errorf("%s: a cost of %g is known", result, s.usage.Cost)
		}
	}
}

func TestNestedTooDeeply(t *testing.T) {
	deep := `{"a":` + strings.Repeat("[", 1001) + strings.Repeat("]", 1001) + `}`
	if _, ok := event([]byte(deep)); ok {
		t.Error("taken for an event")
	}
	if got, ok := FinalJSON(deep + ` {"b":1}`); ok {
		t.Errorf("found %.20s", got)
	}
}
