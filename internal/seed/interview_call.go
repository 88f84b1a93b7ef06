package seed

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/git-tilth/git-tilth/internal/model"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
)

// phase is the name of the interview in the events of the record.
const phase = "interview"

const (
	maxRecorded = 16000 // characters of a text that an event holds
	maxPreview  = 2000  // characters of a tool's output that an event holds
)

// call asks the model once, with retries, and records every attempt.
func (in *interview) call(ctx context.Context) (*model.Reply, error) {
	var recordErr error
	note := func(err error) {
		if recordErr == nil {
			recordErr = err
		}
	}
	empty := 0
	retry := in.Retry
	before := retry.Before
	retry.Before = func(attempt int, f *model.Failure, wait time.Duration) {
		note(in.failedCall(f, attempt, &empty))
		in.Frontend.Say(Warn, "the model endpoint gave no answer ("+string(f.Kind)+"), asking again in "+wait.Round(time.Second).String())
		if before != nil {
			before(attempt, f, wait)
		}
	}
	in.Frontend.Wait()
	reply, attempt, err := in.Model.ChatRetry(ctx, model.Request{Messages: in.history, Tools: in.tools, MaxTokens: in.MaxTokens}, retry)
	if err != nil {
		var f *model.Failure
		if errors.As(err, &f) {
			note(in.failedCall(f, attempt, &empty))
		}
		if ctx.Err() != nil {
			return nil, aborted(ctx)
		}
		return nil, errors.Join(recordErr, err)
	}
	note(in.goodCall(reply, attempt))
	return reply, recordErr
}

func (in *interview) goodCall(r *model.Reply, attempt int) error {
	in.spend(r.Usage)
	payload := in.callPayload(r.Usage, attempt, model.HealthOK, r.FinishReason)
	payload["content"] = capped(r.Content)
	if len(r.ReasoningDetails) > 0 && len(r.ReasoningDetails) <= maxRecorded {
		payload["reasoning_details"] = r.ReasoningDetails
	} else if r.Reasoning != "" {
		payload["reasoning"] = capped(r.Reasoning)
	}
	if err := in.Emit("model_call", payload); err != nil {
		return err
	}
	in.Frontend.Usage(in.usage.Total(), in.usage.Cost)
	return in.Spent(in.usage)
}

// failedCall records an attempt that was no turn. It may have been paid for all the same.
func (in *interview) failedCall(f *model.Failure, attempt int, empty *int) error {
	in.spend(f.Usage)
	payload := in.callPayload(f.Usage, attempt, string(f.Kind), f.FinishReason)
	payload["error"] = capped(f.Message)
	err := in.Emit("model_call", payload)
	if err == nil && f.Kind == model.Empty {
		*empty++
		err = in.Emit("empty_model_response", map[string]any{
			"phase": phase, "iter": in.iter, "streak": *empty, "finish_reason": f.FinishReason,
		})
	}
	if err == nil && f.Usage != (model.Usage{}) {
		err = in.Spent(in.usage)
	}
	return err
}

func (in *interview) spend(u model.Usage) {
	in.usage.Add(session.RoleUsage{Calls: 1, PromptTokens: u.Prompt, EvalTokens: u.Eval,
		CachedTokens: u.Cached, ReasoningTokens: u.Reasoning, Cost: u.Cost})
}

func (in *interview) callPayload(u model.Usage, attempt int, health, finish string) map[string]any {
	return map[string]any{
		"phase": phase, "iter": in.iter, "attempt": attempt, "health": health, "finish_reason": finish,
		"prompt_tokens": u.Prompt, "eval_tokens": u.Eval, "cached_tokens": u.Cached, "reasoning_tokens": u.Reasoning,
		"cost": u.Cost, "tokens_used_total": in.usage.Total(),
	}
}

// capped bounds a text in characters; what is cut is said.
func capped(s string) string { return text.Clip(s, maxRecorded) }

// encode renders JSON as it would be written by hand: no \u003c for <.
func encode(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}
