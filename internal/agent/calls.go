package agent

import (
	"context"
	"errors"
	"time"
	"unicode/utf8"

	"github.com/git-tilth/git-tilth/internal/model"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/text"
)

// Chatter is a model, as internal/model's Client is one.
type Chatter interface {
	ChatRetry(ctx context.Context, r model.Request, retry model.Retry) (*model.Reply, int, error)
}

// Calls makes the model calls of one role.
type Calls struct {
	Client Chatter
	Retry  model.Retry
	// Record counts what an attempt took and writes its model_call, whose scope and total it fills in.
	Record func(*record.ModelCall, model.Usage) error
	Emit   func(record.Event) error // writes another event of the call
}

// Make makes one request until an answer is a turn. Every attempt is on the record before the next one is made. The
// error is what Record or Emit returned, else a *model.Failure.
func (c Calls) Make(ctx context.Context, req model.Request) (*model.Reply, error) {
	made, empties := 0, 0
	var recording error
	failed := func(n int, f *model.Failure, wait time.Duration) {
		made = n
		err := c.Record(failureCall(f, n, wait), f.Usage)
		if f.Kind == model.Empty {
			empties++
			err = errors.Join(err, c.Emit(&record.EmptyModelResponse{Streak: empties, FinishReason: f.FinishReason}))
		}
		if recording == nil {
			recording = err
		}
	}
	retry := c.Retry
	retry.Before = func(n int, f *model.Failure, wait time.Duration) {
		failed(n, f, wait)
		if c.Retry.Before != nil {
			c.Retry.Before(n, f, wait)
		}
	}
	reply, n, err := c.Client.ChatRetry(ctx, req, retry)
	var f *model.Failure
	switch {
	case recording != nil:
	case err == nil:
		recording = c.Record(replyCall(reply, n), reply.Usage)
	case errors.As(err, &f) && f.Kind != model.Canceled && ctx.Err() == nil && n > made:
		failed(n, f, 0)
	}
	if recording != nil {
		return nil, recording
	}
	return reply, err
}

// replyCall is a healthy answer of a model as a model_call; its caller knows the phase and the session's total.
func replyCall(r *model.Reply, attempt int) *record.ModelCall {
	call := spent(r.Usage)
	call.Attempt, call.FinishReason, call.Health = attempt, r.FinishReason, model.HealthOK
	setContent(call, r.Content)
	if len(r.ReasoningDetails) <= record.MaxText {
		call.ReasoningDetails = r.ReasoningDetails
	}
	call.Reasoning = text.Clip(r.Reasoning, record.MaxText)
	return call
}

// failureCall is an answer that was no turn. What it has cost counts like any other; most cost nothing.
func failureCall(f *model.Failure, attempt int, wait time.Duration) *record.ModelCall {
	call := spent(f.Usage)
	call.Attempt, call.FinishReason, call.Health = attempt, f.FinishReason, string(f.Kind)
	call.Error, call.Status, call.WaitSeconds = text.Clip(f.Message, 2000), &f.Status, new(wait.Seconds())
	return call
}

// Call is a turn of a program as a model_call.
func (o Outcome) Call() *record.ModelCall {
	call := spent(o.Usage)
	call.Attempt, call.FinishReason, call.Health = 1, string(o.How), model.HealthOK
	call.Turns, call.Conversation, call.Denied = &o.Turns, &o.Conversation, o.Denied
	if o.How != Completed {
		call.Health, call.Error = string(o.How), o.Detail
	}
	setContent(call, o.Text)
	return call
}

func spent(u model.Usage) *record.ModelCall {
	call := &record.ModelCall{
		PromptTokens: u.Prompt, EvalTokens: u.Eval, CachedTokens: u.Cached, ReasoningTokens: u.Reasoning,
	}
	if u.CostKnown {
		call.Cost = &u.Cost
	}
	return call
}

func setContent(call *record.ModelCall, said string) {
	n := utf8.RuneCountInString(said)
	call.Content, call.Chars, call.Truncated = text.Head(said, record.MaxText), &n, new(n > record.MaxText)
}
