package seed

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/git-tilth/git-tilth/internal/agent"
	"github.com/git-tilth/git-tilth/internal/model"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
)

const maxPreview = 2000 // characters of a tool's output that an event holds

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
		note(in.failedCall(f, attempt, wait, &empty))
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
			note(in.failedCall(f, attempt, 0, &empty))
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
	if err := in.emitCall(agent.ReplyCall(r, attempt)); err != nil {
		return err
	}
	in.Frontend.Usage(in.usage.Total(), in.usage.Cost)
	return in.Spent(in.usage)
}

// failedCall records an attempt that was no turn. It may have been paid for all the same.
func (in *interview) failedCall(f *model.Failure, attempt int, wait time.Duration, empty *int) error {
	in.spend(f.Usage)
	err := in.emitCall(agent.FailureCall(f, attempt, wait))
	if err == nil && f.Kind == model.Empty {
		*empty++
		err = in.Emit(&record.EmptyModelResponse{Scope: in.scope(), Streak: *empty, FinishReason: f.FinishReason})
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

func (in *interview) emitCall(call *record.ModelCall) error {
	call.Scope, call.TokensUsedTotal = in.scope(), in.usage.Total()
	return in.Emit(call)
}

// scope is where the events of an interview belong: to no task.
func (in *interview) scope() record.Scope {
	return record.Scope{Phase: session.RoleInterview, Iter: in.iter}
}

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
