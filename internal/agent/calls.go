package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/git-tilth/git-tilth/internal/model"
	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
)

// Retries of failures in a row.
const (
	maxEmpty     = 8  // empty answers
	maxWithOther = 3  // failures while another agent is free
	maxAtOnce    = 10 // immediate retries that an endpoint may ask for; later ones wait
	longestWait  = 5 * time.Minute
	endpointWait = time.Second // first wait; it doubles
	programWait  = 5 * time.Second
)

// DefaultOutage is the default of tilth.maxOutage: the time for which failures in a row are retried.
const DefaultOutage = time.Hour

// Calls makes the model calls of one role. An agent program may replace the model; each of its turns is an answer.
type Calls struct {
	// Chat makes one attempt, like a model.Client.
	Chat func(context.Context, model.Request) (*model.Reply, error)
	// Program, if set, plays the turn. MakeTurn makes its prompt from the conversation's messages.
	Program  *Program
	MakeTurn func(context.Context, []json.RawMessage) (Turn, error)
	// AfterTurn gets the result of a recorded turn. again requests another turn without counting this one. A
	// *model.Failure is a failure of the attempt; any other error ends the attempts.
	AfterTurn func(context.Context, Outcome) (again bool, err error)
	Attempts  int           // limits the attempts at one request; 0 is no limit
	MaxOutage time.Duration // limits the time of transient failures in a row; 0 is DefaultOutage
	Allow     func() error  // called before each attempt; its error ends the attempts
	OtherFree func() bool   // reports whether another agent is free; nil is never
	// Wait waits before the next attempt; nil sleeps.
	Wait func(context.Context, *model.Failure, Pause) error
	// Record counts an attempt's usage and writes its model_call, with scope and total.
	Record func(*record.ModelCall, model.Usage) error
	Emit   func(record.Event) error // writes another event of the call
}

// Pause is a wait between two attempts at one request.
type Pause struct {
	Attempt int // the failed attempt
	Wait    time.Duration
}

// streak counts the failures in a row of one request.
type streak struct {
	failures, empties int
	began             time.Time // time of the first transient failure
}

// Make repeats one request until it gets a turn, a retry cannot help, or no retry is left. Every attempt sends the
// same history, and is recorded before the next one. The error comes from Allow, Record, Wait or Emit, or is the last
// *model.Failure. Make does not wait for the end of a usage limit.
func (c Calls) Make(ctx context.Context, req model.Request) (*model.Reply, error) {
	var row streak
	for n := 1; ; n++ {
		reply, err := c.attempt(ctx, req, n)
		var f *model.Failure
		if !errors.As(err, &f) || f.Kind == model.Canceled {
			return reply, err
		}
		pause, again := c.next(&row, f)
		pause.Attempt = n
		if c.Program == nil {
			f.Usage = f.Usage.Bounded()
			if err := c.Record(failureCall(f, n, pause.Wait), f.Usage); err != nil {
				return nil, err
			}
		}
		if f.Kind.Empty() {
			e := record.EmptyModelResponse{Streak: row.empties, FinishReason: f.FinishReason,
				PromptTokens: f.Usage.Prompt, EvalTokens: f.Usage.Eval}
			if err := c.Emit(&e); err != nil {
				return nil, err
			}
		}
		if !again {
			return nil, f
		}
		if err := c.wait(ctx, f, pause); err != nil {
			return nil, fmt.Errorf("canceled while waiting to ask again after: %s: %w", f.Message, err)
		}
	}
}

// next adds a failure to the streak and returns the wait before the next attempt, if there is one. The wait doubles up
// to five minutes. The endpoint's own request takes precedence, and the last wait ends at the longest outage.
func (c Calls) next(row *streak, f *model.Failure) (p Pause, again bool) {
	now, most := proc.Now(), cmp.Or(c.MaxOutage, DefaultOutage)
	if f.Status == http.StatusTooManyRequests && f.Kind.Transient() && f.RetryAfter != nil && *f.RetryAfter > most {
		f.Kind, f.LimitReset = model.UsageLimit, now.Add(*f.RetryAfter)
	}
	row.failures++
	first := endpointWait
	if c.Program != nil {
		first = programWait
	}
	p.Wait = min(first<<min(row.failures-1, 16), longestWait)
	if f.RetryAfter != nil {
		p.Wait = *f.RetryAfter
		if row.failures > maxAtOnce {
			p.Wait = max(p.Wait, min(first<<min(row.failures-maxAtOnce, 16), longestWait))
		}
	}
	switch {
	case f.Kind.Empty():
		row.empties++
		again = row.empties < maxEmpty
	case f.Kind.Transient():
		if row.began.IsZero() {
			row.began = now
		}
		left := row.began.Add(most).Sub(now)
		p.Wait = min(p.Wait, left)
		again = left > 0 && (row.failures < maxWithOther || c.OtherFree == nil || !c.OtherFree())
	}
	if again = again && (c.Attempts == 0 || row.failures < c.Attempts); !again {
		p.Wait = 0
	}
	return p, again
}

// attempt makes one request and records its answer.
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
	return nil, err
}

// play gets an answer from the program.
func (c Calls) play(ctx context.Context, req model.Request, n int) (*model.Reply, error) {
	for {
		if err := c.allow(); err != nil {
			return nil, err
		}
		turn, err := c.MakeTurn(ctx, req.Messages)
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
		again, err := c.AfterTurn(ctx, out)
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

// failure returns a turn's failure, or nil.
func (p *Program) failure(out Outcome) *model.Failure {
	f := &model.Failure{Kind: model.Ended, Message: p.Name + ": " + out.Detail, Said: out.Detail,
		FinishReason: string(out.How), Usage: out.Usage, RetryAfter: out.RetryAfter}
	if status429().MatchString(out.Detail) {
		f.Status = http.StatusTooManyRequests
	}
	switch out.How {
	case Completed, TurnLimit, Unfinished:
		return nil
	case UsageLimit:
		f.Kind, f.LimitReset = model.UsageLimit, out.LimitReset
	case Overflow:
		f.Kind = model.Overflow
	case TimedOut:
		f.Kind = model.Timeout
	case Refused:
		f.Kind, f.Misset, f.Fix = model.Fatal, out.Misset, "check the key of "+p.Name+" and the name of its model"
		switch m := apiStatus().FindStringSubmatch(out.Detail); {
		case m != nil && m[1] != "401" && m[1] != "403": // the key was accepted
			f.Fix = "check the name of " + p.Name + "'s model"
		case p.Login != "":
			f.Fix = fmt.Sprintf("log in (%s), or check %s's key and the name of its model", p.Login, p.Name)
		}
		f.Fix = cmp.Or(out.Hint, f.Fix)
	}
	return f
}

func (c Calls) wait(ctx context.Context, f *model.Failure, p Pause) error {
	if c.Wait != nil {
		return c.Wait(ctx, f, p)
	}
	return proc.Sleep(ctx, p.Wait)
}

// replyCall returns a model's healthy answer as a model_call. The caller adds the phase and the session's total.
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

// failureCall returns the record of a failed call, with its cost; most failures cost nothing.
func failureCall(f *model.Failure, attempt int, wait time.Duration) *record.ModelCall {
	call := spent(f.Usage)
	call.Attempt, call.FinishReason, call.Health = attempt, f.FinishReason, string(f.Kind)
	call.Error, call.Status, call.WaitSeconds = f.Message, &f.Status, new(wait.Seconds())
	return call
}

// Call returns a turn of a program as a model_call.
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

// RoleUsage converts the usage of calls into a session's usage.
func RoleUsage(u model.Usage, calls int64) session.RoleUsage {
	return session.RoleUsage{Calls: calls, PromptTokens: u.Prompt, EvalTokens: u.Eval, CachedTokens: u.Cached,
		ReasoningTokens: u.Reasoning, Cost: u.Cost}
}
