package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/git-tilth/git-tilth/internal/model"
	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/scripttest/clock"
	"github.com/git-tilth/git-tilth/internal/scripttest/scripted"
)

// recorder makes calls without waiting, and collects their waits with the reasons, and the recorded events.
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
		Wait: func(_ context.Context, f *model.Failure, p Pause) error {
			r.kinds, r.waits = append(r.kinds, f.Kind), append(r.waits, p.Wait)
			return proc.Sleep(t.Context(), p.Wait)
		},
		Record: func(c *record.ModelCall, _ model.Usage) error { r.attempts = c.Attempt; return nil },
		Emit:   func(record.Event) error { return nil },
	}, s
}

func hi() model.Request {
	return model.Request{Messages: []json.RawMessage{json.RawMessage(`{"role":"user","content":"hi"}`)},
		Tools: json.RawMessage(`[{"type":"function","function":{"name":"submit_case"}}]`)}
}

// skipTime makes waits end at once until the test ends.
func skipTime(t *testing.T) {
	now, sleep := proc.Now, proc.Sleep
	t.Cleanup(func() { proc.Now, proc.Sleep = now, sleep })
	clock.Advance(new(atomic.Int64), func() {})
}

// Waits double up to five minutes, and the last one ends with the longest outage.
func TestRetryWaits(t *testing.T) {
	skipTime(t)
	for _, c := range []struct {
		most time.Duration
		want []int // seconds
	}{{0, []int{1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300, 300, 300, 300, 300, 300, 300, 300, 89}},
		{10 * time.Second, []int{1, 2, 4, 3}}} {
		var r recorder
		calls, _ := r.calls(t, 0, scripted.Step{Status: 503, Repeat: -1})
		calls.MaxOutage = c.most
		began := proc.Now()
		_, err := calls.Make(t.Context(), hi())
		f, ok := errors.AsType[*model.Failure](err)
		if !ok || f.Kind != model.HTTP || f.Status != 503 || r.attempts != len(c.want)+1 {
			t.Errorf("%v after %d attempts", err, r.attempts)
		}
		for i, wait := range r.waits {
			if got := int(wait.Seconds() + 0.5); i < len(c.want) && got != c.want[i] {
				t.Errorf("wait %d is %s, want %d s", i, wait, c.want[i])
			}
		}
		if took := proc.Now().Sub(began); took > cmp.Or(c.most, DefaultOutage)+time.Second {
			t.Errorf("the outage took %s", took)
		}
	}
}

// A free agent takes over after three failures in a row, and a Retry-After beyond the outage is a limit.
func TestHowFailuresInARowEnd(t *testing.T) {
	skipTime(t)
	long := map[string]string{"Retry-After": "7200"}
	for name, c := range map[string]struct {
		step     scripted.Step
		beside   bool
		kind     model.Kind
		attempts int
	}{
		"another is free":      {scripted.Step{Status: 503}, true, model.HTTP, 3},
		"empty":                {scripted.Step{Empty: true}, false, model.Empty, 8},
		"error object":         {scripted.Step{Error: json.RawMessage(`{"message":"m"}`)}, false, model.ErrorObject, 8},
		"not so fast for long": {scripted.Step{Status: 429, Headers: long}, false, model.UsageLimit, 1},
		"unavailable for long": {scripted.Step{Status: 503, Headers: long}, false, model.HTTP, 2},
		"full":                 {scripted.Step{Status: 400, Error: json.RawMessage(`{"code":"context_length_exceeded"}`)}, false, model.Overflow, 1},
		"not your usage limit": {scripted.Step{Status: 429, Error: json.RawMessage(`{"message":"limiting requests (not your usage limit)"}`)}, true, model.HTTP, 3},
		"the quota is used up": {scripted.Step{Status: 429, Error: json.RawMessage(`{"message":"You exceeded your current quota"}`)}, false, model.UsageLimit, 1},
	} {
		var r recorder
		c.step.Repeat = -1
		calls, _ := r.calls(t, 0, c.step)
		calls.OtherFree = func() bool { return c.beside }
		_, err := calls.Make(t.Context(), hi())
		f, ok := errors.AsType[*model.Failure](err)
		if !ok || f.Kind != c.kind || r.attempts != c.attempts {
			t.Errorf("%s: %v after %d attempts", name, err, r.attempts)
		}
	}
}

func TestRetryGoesOnWithTheSameHistory(t *testing.T) {
	skipTime(t)
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
		32 * time.Second, 64 * time.Second}
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
	calls.Wait = func(ctx context.Context, _ *model.Failure, _ Pause) error {
		cancel()
		return ctx.Err()
	}
	_, err := calls.Make(ctx, hi())
	if !errors.Is(err, context.Canceled) || r.attempts != 1 {
		t.Errorf("%v after %d attempts", err, r.attempts)
	}
}

// A call that cannot be recorded is not retried: every attempt is recorded before the next one.
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
