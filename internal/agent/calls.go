package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/git-tilth/git-tilth/internal/model"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
)

// defaultAttempts is how often a request is made before its last failure counts.
const defaultAttempts = 8

// Calls makes the model calls of one role. An agent program may stand in the model's place: a turn of it is an answer.
type Calls struct {
	// Chat makes one attempt, as a model.Client does.
	Chat func(context.Context, model.Request) (*model.Reply, error)
	// Program, if set, plays the turn, with a prompt that Tell makes of the conversation's messages.
	Program *Program
	Tell    func(context.Context, []json.RawMessage) (Turn, error)
	// Heard gets the result of a turn after it is on record. again requests another turn without counting this one. An
	// error that is a *model.Failure is the attempt's; any other ends the attempts.
	Heard    func(context.Context, Outcome) (again bool, err error)
	Attempts int          // bounds the attempts at one request; 0 is 8
	Allow    func() error // is asked before each attempt; its error ends them
	// Retrying is called with each failed attempt that will be followed by another, before the wait.
	Retrying func(f *model.Failure, wait time.Duration)
	Sleep    func(context.Context, time.Duration) error // replaces the wait
	// Record counts an attempt's usage and writes its model_call with scope and total.
	Record func(*record.ModelCall, model.Usage) error
	Emit   func(record.Event) error // writes another event of the call
}

// Make makes one request until an answer is a turn, a failure cannot be mended, or the attempts are used up; the
// history is the same in each. Every attempt is on the record before the next one is made. The error is what Allow,
// Record or Emit returned, else the last *model.Failure. The end of a usage limit is not waited for.
func (c Calls) Make(ctx context.Context, req model.Request) (*model.Reply, error) {
	empties := 0
	for n := 1; ; n++ {
		reply, err := c.attempt(ctx, req, n)
		var f *model.Failure
		if !errors.As(err, &f) || f.Kind == model.Canceled {
			return reply, err
		}
		if f.Kind == model.Empty {
			empties++
			empty := record.EmptyModelResponse{Streak: empties, FinishReason: f.FinishReason,
				PromptTokens: f.Usage.Prompt, EvalTokens: f.Usage.Eval}
			if err := c.Emit(&empty); err != nil {
				return nil, err
			}
		}
		wait, again := c.waitAfter(n, f)
		if !again {
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

// attempt makes one request and records it.
func (c Calls) attempt(ctx context.Context, req model.Request, n int) (*model.Reply, error) {
	if c.Program != nil {
		return c.play(ctx, req, n)
	}
	if err := c.allow(); err != nil {
		return nil, err
	}
	reply, err := c.Chat(ctx, req)
	if err == nil {
		reply.Usage = reply.Usage.Bounded()
		return reply, c.Record(replyCall(reply, n), reply.Usage)
	}
	var f *model.Failure
	if errors.As(err, &f) && f.Kind != model.Canceled {
		f.Usage = f.Usage.Bounded()
		wait, _ := c.waitAfter(n, f)
		if err := c.Record(failureCall(f, n, wait), f.Usage); err != nil {
			return nil, err
		}
	}
	return nil, err
}

// play has the program answer.
func (c Calls) play(ctx context.Context, req model.Request, n int) (*model.Reply, error) {
	for {
		if err := c.allow(); err != nil {
			return nil, err
		}
		turn, err := c.Tell(ctx, req.Messages)
		if err != nil {
			return nil, err
		}
		out, err := c.Program.Run(ctx, turn)
		if err != nil {
			return nil, err
		}
		out.Usage = out.Usage.Bounded()
		call := out.Call()
		call.Attempt = n
		if err := c.Record(call, out.Usage); err != nil {
			return nil, err
		}
		again, err := c.Heard(ctx, out)
		if err := cmp.Or(err, ctx.Err()); err != nil {
			return nil, err
		}
		if again {
			continue
		}
		if f := c.Program.failure(out); f != nil {
			return nil, f
		}
		return &model.Reply{Message: Message("assistant", out.Text), Content: out.Text,
			FinishReason: string(out.How), Usage: out.Usage}, nil
	}
}

func (c Calls) allow() error {
	if c.Allow == nil {
		return nil
	}
	return c.Allow()
}

// failure returns the failure of a turn, or nil. The next attempt follows at once.
func (p *Program) failure(out Outcome) *model.Failure {
	f := &model.Failure{Kind: model.FinishError, Message: p.Name + ": " + out.Detail, Said: out.Detail,
		FinishReason: string(out.How), Usage: out.Usage, RetryAfter: new(time.Duration)}
	switch out.How {
	case Completed, TurnLimit:
		return nil
	case UsageLimit:
		f.Kind, f.LimitReset = model.UsageLimit, out.LimitReset
	case TimedOut:
		f.Kind = model.Timeout
	case Refused:
		f.Kind, f.Misset, f.Mend = model.Fatal, out.Misset, "check the key of "+p.Name+" and the name of its model"
		if p.Login != "" {
			f.Mend = fmt.Sprintf("log in (%s), or check %s's key and the name of its model", p.Login, p.Name)
		}
		f.Mend = cmp.Or(out.Hint, f.Mend)
	}
	return f
}

// waitAfter returns the wait after attempt n, if another one follows: it doubles from a second to a minute, and the
// endpoint's own request takes precedence.
func (c Calls) waitAfter(n int, f *model.Failure) (wait time.Duration, again bool) {
	switch {
	case !f.Retryable() || n >= cmp.Or(c.Attempts, defaultAttempts):
		return 0, false
	case f.RetryAfter != nil:
		return *f.RetryAfter, true
	}
	return min(time.Second<<min(n-1, 6), time.Minute), true
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
	call.Reasoning = r.Reasoning
	return call
}

// failureCall is an answer that was no turn. What it has cost counts like any other; most cost nothing.
func failureCall(f *model.Failure, attempt int, wait time.Duration) *record.ModelCall {
	call := spent(f.Usage)
	call.Attempt, call.FinishReason, call.Health = attempt, f.FinishReason, string(f.Kind)
	call.Error, call.Status, call.WaitSeconds = f.Message, &f.Status, new(wait.Seconds())
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
	call.Content, call.Chars, call.Truncated = said, &n, new(n > record.MaxText)
}

// RoleUsage converts the usage of a number of calls into a session's.
func RoleUsage(u model.Usage, calls int64) session.RoleUsage {
	return session.RoleUsage{Calls: calls, PromptTokens: u.Prompt, EvalTokens: u.Eval, CachedTokens: u.Cached,
		ReasoningTokens: u.Reasoning, Cost: u.Cost}
}
