package model_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/git-tilth/git-tilth/internal/model"
	"github.com/git-tilth/git-tilth/internal/scripttest/scripted"
)

// recorder is a Retry that does not wait and notes what it would have waited, and for what.
type recorder struct {
	waits []time.Duration
	kinds []model.Kind
}

func (r *recorder) retry(attempts int) model.Retry {
	return model.Retry{
		Attempts: attempts,
		Before:   func(_ int, f *model.Failure, _ time.Duration) { r.kinds = append(r.kinds, f.Kind) },
		Sleep: func(_ context.Context, d time.Duration) error {
			r.waits = append(r.waits, d)
			return nil
		},
	}
}

func TestRetryWaits(t *testing.T) {
	s := start(t, scripted.Script{Worker: []scripted.Step{{Status: 503, Repeat: -1}}})
	var r recorder
	_, attempts, err := client(t, s.URL, model.Options{}).ChatRetry(context.Background(), workerRequest("hi"),
		r.retry(0))
	if f := failureOf(t, err); f.Kind != model.HTTP || f.Status != 503 || attempts != model.DefaultAttempts {
		t.Errorf("%v after %d attempts", err, attempts)
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
	s := start(t, scripted.Script{Worker: []scripted.Step{
		{Status: 429, Headers: zero}, {Status: 429, Headers: map[string]string{"Retry-After": "7"}}, {Empty: true},
		{Error: json.RawMessage(`{"message":"m"}`)}, {FinishReason: "error", Content: "poison"}, {Drop: true}, {Raw: &html},
		{Content: "done"},
	}})
	var r recorder
	reply, attempts, err := client(t, s.URL, model.Options{}).ChatRetry(context.Background(), workerRequest("hi"),
		r.retry(8))
	if err != nil || reply.Content != "done" || attempts != 8 {
		t.Fatal(reply, attempts, err)
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
		s := start(t, scripted.Script{Worker: []scripted.Step{{Status: status, Repeat: -1}}})
		var r recorder
		_, attempts, err := client(t, s.URL, model.Options{}).ChatRetry(context.Background(), workerRequest("hi"),
			r.retry(8))
		if err == nil || attempts != 1 || len(r.waits) != 0 {
			t.Errorf("%d: %v after %d attempts", status, err, attempts)
		}
	}
}

func TestCancelWhileWaiting(t *testing.T) {
	s := start(t, scripted.Script{Worker: []scripted.Step{{Status: 503, Repeat: -1}}})
	ctx, cancel := context.WithCancel(context.Background())
	_, attempts, err := client(t, s.URL, model.Options{}).ChatRetry(ctx, workerRequest("hi"), model.Retry{
		Before: func(int, *model.Failure, time.Duration) { cancel() },
	})
	if f := failureOf(t, err); f.Kind != model.Canceled || !errors.Is(err, context.Canceled) || attempts != 1 {
		t.Errorf("%v after %d attempts", err, attempts)
	}
}
