package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/git-tilth/git-tilth/internal/model"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/text"
)

// defaultAttempts is how often a request is made before its last failure counts.
const defaultAttempts = 8

// Calls makes the model calls of one role.
type Calls struct {
	// Chat makes one attempt, as a model.Client does.
	Chat     func(context.Context, model.Request) (*model.Reply, error)
	Attempts int          // bounds the attempts at one request; 0 is 8
	Allow    func() error // is asked before each attempt; its error ends them
	// Retrying is called with each failed attempt that will be followed by another, before the wait.
	Retrying func(f *model.Failure, wait time.Duration)
	Sleep    func(context.Context, time.Duration) error // replaces the wait
	// Record counts what an attempt took and writes its model_call, whose scope and total it fills in.
	Record func(*record.ModelCall, model.Usage) error
	Emit   func(record.Event) error // writes another event of the call
}

// Make makes one request until an answer is a turn, a failure cannot be mended, or the attempts are used up; the
// history is the same in each. Every attempt is on the record before the next one is made. The error is what Allow,
// Record or Emit returned, else the last *model.Failure. The end of a usage limit is not waited for.
func (c Calls) Make(ctx context.Context, req model.Request) (*model.Reply, error) {
	empties := 0
	for n := 1; ; n++ {
		if c.Allow != nil {
			if err := c.Allow(); err != nil {
				return nil, err
			}
		}
		reply, err := c.Chat(ctx, req)
		if err == nil {
			return reply, c.Record(replyCall(reply, n), reply.Usage)
		}
		var f *model.Failure
		if !errors.As(err, &f) || f.Kind == model.Canceled {
			return nil, err
		}
		last, wait := !f.Retryable() || n >= cmp.Or(c.Attempts, defaultAttempts), time.Duration(0)
		if !last {
			wait = waitAfter(n, f)
		}
		if err := c.Record(failureCall(f, n, wait), f.Usage); err != nil {
			return nil, err
		}
		if f.Kind == model.Empty {
			empties++
			if err := c.Emit(&record.EmptyModelResponse{Streak: empties, FinishReason: f.FinishReason}); err != nil {
				return nil, err
			}
		}
		if last {
			return nil, f
		}
		if c.Retrying != nil {
			c.Retrying(f, wait)
		}
		if err := c.sleep(ctx, wait); err != nil {
			return nil, fmt.Errorf("canceled while waiting to ask again after: %s: %w", f.Message, err)
		}
	}
}

// waitAfter doubles from a second to a minute; what the endpoint asks for outranks it.
func waitAfter(attempt int, f *model.Failure) time.Duration {
	if f.RetryAfter != nil {
		return *f.RetryAfter
	}
	return min(time.Second<<min(attempt-1, 6), time.Minute)
}

func (c Calls) sleep(ctx context.Context, d time.Duration) error {
	if c.Sleep != nil {
		return c.Sleep(ctx, d)
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return ctx.Err()
	}
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
	call.Skipped, call.OtherCost = o.Skipped, o.OtherCost
	if o.Cut {
		call.Health = record.HealthCut
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
