package loop

import (
	"context"
	"errors"
	"time"
	"unicode/utf8"

	"github.com/git-tilth/git-tilth/internal/model"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
)

// caller makes one role's model calls: retried, counted and on the record.
type caller struct {
	*attempt
	role   string // session.RoleWorker and so on
	client *model.Client
}

// ask makes one request until an answer is a turn. What it cannot get is a *halt with the reason for which the
// task or the run ends.
func (c caller) ask(ctx context.Context, req model.Request) (*model.Reply, error) {
	for {
		made := 0
		empties := 0
		failed := func(n int, f *model.Failure, wait time.Duration) error {
			made = n
			if f.Kind == model.Empty {
				empties++
			}
			return c.recordFailure(n, empties, f, wait)
		}
		var recording error
		reply, n, err := c.client.ChatRetry(ctx, req, model.Retry{
			Attempts: c.o.Attempts,
			Before: func(n int, f *model.Failure, wait time.Duration) {
				if err := failed(n, f, wait); err != nil {
					recording = err
				}
			},
		})
		if recording != nil {
			return nil, recording
		}
		if err == nil {
			return reply, c.recordReply(n, reply)
		}
		var f *model.Failure
		if !errors.As(err, &f) || f.Kind == model.Canceled || ctx.Err() != nil {
			return nil, err
		}
		if n > made {
			if err := failed(n, f, 0); err != nil {
				return nil, err
			}
		}
		if f.Kind != model.UsageLimit {
			return nil, haltFor(f)
		}
		if err := c.waitForLimit(ctx, f); err != nil {
			return nil, err
		}
	}
}

// haltFor says what a failure that outlived its retries means for the task.
func haltFor(f *model.Failure) error {
	h := &halt{Stop: Stop{Reason: ProviderFailure, Detail: f.Message}, err: f}
	switch {
	case f.Kind == model.Empty:
		h.Reason = EmptyResponses
	case !f.Retryable():
		h.Reason = Errored
	}
	return h
}

// waitForLimit waits until a usage limit resets, where the user asked for that and it is near enough; else it stops the run.
func (r *run) waitForLimit(ctx context.Context, f *model.Failure) error {
	return r.waitUntil(ctx, f.LimitReset, f.Message)
}

func (r *run) waitUntil(ctx context.Context, reset time.Time, detail string) error {
	// A limit that names a moment just ahead again and again would be asked for ever; each wait takes at least a minute
	// off what may be waited for in all.
	wait := max(reset.Sub(r.Now()), time.Minute)
	if !r.o.Wait || reset.IsZero() || r.waited+wait > r.o.MaxWait {
		return &halt{Stop: Stop{Reason: UsageLimit, Detail: detail, Reset: reset}}
	}
	r.waited += wait
	if r.o.Waiting != nil {
		r.o.Waiting(reset)
	}
	timer := time.NewTimer(max(reset.Sub(r.Now()), time.Second))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// phase is how a model_call names its role: the worker's carries none.
func (c caller) phase(payload map[string]any) map[string]any {
	if c.role != session.RoleWorker {
		payload["phase"] = c.role
	}
	return payload
}

// recordReply counts an answer and writes its model_call.
func (c caller) recordReply(n int, r *model.Reply) error {
	c.count(c.role, r.Usage)
	payload := map[string]any{
		"prompt_tokens": r.Usage.Prompt, "eval_tokens": r.Usage.Eval, "cached_tokens": r.Usage.Cached,
		"reasoning_tokens": r.Usage.Reasoning, "cost": costOf(r.Usage), "tokens_used_total": c.Checkpoint.TokensUsed,
		"attempt": n, "finish_reason": r.FinishReason, "health": model.HealthOK,
	}
	putCapped(payload, "content", r.Content)
	if len(r.ReasoningDetails) > 0 && len(r.ReasoningDetails) <= promptCap {
		payload["reasoning_details"] = r.ReasoningDetails
	}
	if r.Reasoning != "" {
		payload["reasoning"] = clip(r.Reasoning, promptCap)
	}
	return c.emit("model_call", c.phase(payload))
}

// recordFailure writes an answer that was no turn.
func (c caller) recordFailure(n, empties int, f *model.Failure, wait time.Duration) error {
	// What a failed call has cost counts like any other; most cost nothing.
	c.count(c.role, f.Usage)
	err := c.emit("model_call", c.phase(map[string]any{
		"prompt_tokens": f.Usage.Prompt, "eval_tokens": f.Usage.Eval, "cached_tokens": f.Usage.Cached,
		"reasoning_tokens": f.Usage.Reasoning, "cost": costOf(f.Usage),
		"tokens_used_total": c.Checkpoint.TokensUsed, "attempt": n, "finish_reason": f.FinishReason, "content": "",
		"health": string(f.Kind), "status": f.Status, "error": clip(f.Message, 2000), "wait_seconds": wait.Seconds(),
	}))
	if err != nil || f.Kind != model.Empty {
		return err
	}
	return c.emit("empty_model_response", c.phase(map[string]any{"streak": empties, "finish_reason": f.FinishReason}))
}

// count adds an answer's usage to the session's totals. They go to disk with the checkpoint at each task's end; the
// record has them after every call.
func (r *run) count(role string, u model.Usage) {
	r.Checkpoint.TokensUsed += u.Prompt + u.Eval
	r.Checkpoint.Usage.Role(role).Add(session.RoleUsage{
		Calls: 1, PromptTokens: u.Prompt, EvalTokens: u.Eval, CachedTokens: u.Cached, ReasoningTokens: u.Reasoning, Cost: u.Cost,
	})
}

func costOf(u model.Usage) any {
	if !u.CostKnown {
		return nil
	}
	return u.Cost
}

// putCapped adds a text with its length, cut to what a line of the record may hold.
func putCapped(payload map[string]any, key, said string) {
	n := utf8.RuneCountInString(said)
	payload[key], payload["chars"], payload["truncated"] = text.Head(said, promptCap), n, n > promptCap
}
