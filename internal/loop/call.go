package loop

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/git-tilth/git-tilth/internal/agent"
	"github.com/git-tilth/git-tilth/internal/config"
	"github.com/git-tilth/git-tilth/internal/model"
	"github.com/git-tilth/git-tilth/internal/record"
)

// caller makes one role's model calls. It retries, counts and records them.
type caller struct {
	*attempt
	role string // record.RoleWorker and so on
	who  Role
	// For an agent program: the prompts of its turns and the handlers of their results (agent.Calls).
	makeTurn  func(context.Context, []json.RawMessage) (agent.Turn, error)
	afterTurn func(context.Context, agent.Outcome) (again bool, err error)
}

func (a *attempt) caller(role string, who Role) caller {
	return caller{attempt: a, role: role, who: who}
}

// ask repeats a request until an answer is a turn. Its error is a Stop that ends the task or the run.
func (c caller) ask(ctx context.Context, req model.Request) (*model.Reply, error) {
	reply, err := c.make(ctx, req, c.run.o.Attempts)
	var f *model.Failure
	if !errors.As(err, &f) || f.Kind == model.Canceled || ctx.Err() != nil {
		return reply, err
	}
	stop, p := stopFor(f), c.who.Program
	if c.makeTurn != nil && (stop.Reason == record.ProviderFailure || stop.Reason == record.Errored) {
		stop.Hint = cmp.Or(p.Misses(f.Said, c.run.Environ, c.run.o.KeepEnv), stop.Hint)
	}
	if c.role == record.RoleEvaluator && slices.Contains([]string{record.ProviderFailure, record.ContextOverflow},
		stop.Reason) {
		stop.Detail = "reviewer: " + f.Message
	}
	if f.Misset {
		return nil, stop
	}
	return nil, unable{stop}
}

// stopFor returns the stop for a failure that remains after all retries.
func stopFor(f *model.Failure) Stop {
	stop := Stop{Reason: record.ProviderFailure, Detail: f.Message, Hint: f.Hint()}
	switch {
	case f.Kind == model.UsageLimit:
		stop = Stop{Reason: record.UsageLimit, Detail: f.Message, Reset: f.LimitReset}
	case f.Kind.Empty():
		stop.Reason = record.EmptyResponses
	case f.Kind == model.Overflow:
		stop.Reason = record.ContextOverflow
	case !f.Retryable():
		stop.Reason = record.Errored
	}
	return stop
}

// asksAgain returns the time of the next request to an agent at a usage limit. reset is zero if it is unknown. After
// the reset, or after a wait, the agent is asked once a minute.
func (r *run) asksAgain(reset time.Time) time.Time {
	now := r.Now()
	if reset.IsZero() || reset.After(now) && now.Sub(r.waitEnded) >= time.Minute {
		return reset
	}
	pause := now.Add(min(time.Minute, r.o.MaxWait-r.waited))
	if reset.After(pause) {
		return reset
	}
	return pause
}

// waitUntil waits until a usage limit resets, or stops the run if the reset is unknown or too far away. Waits without
// an answer in between count as one.
func (a *attempt) waitUntil(ctx context.Context, who string, reset time.Time, stop Stop) error {
	r := a.run
	wait := max(reset.Sub(r.Now()), time.Second)
	if !r.o.Wait || reset.IsZero() || r.waited+wait > r.o.MaxWait {
		switch {
		case r.o.Wait && reset.IsZero():
			stop.Hint = "the time of its reset is unknown: wait, then resume"
		case r.o.Wait:
			stop.Hint = "that is longer than tilth.maxWait: raise it, or wait"
		}
		return stop
	}
	r.mu.Lock()
	r.waited += wait
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.waitEnded = r.Now()
	}()
	return r.hold(ctx, a.emit, record.AgentWaits{Who: who, Reason: record.UsageLimit, Detail: stop.Detail, Attempt: 1},
		wait)
}

// make makes one request, with retries, and checks the session's caps before each attempt.
func (c caller) make(ctx context.Context, req model.Request, attempts int) (*model.Reply, error) {
	calls := agent.Calls{Chat: c.who.Client.Chat, Attempts: attempts, Record: c.recordCall, Emit: c.emitPhase,
		MaxOutage: c.run.o.MaxOutage, Allow: c.run.mayAsk, Wait: c.wait, OtherFree: c.otherFree}
	if c.makeTurn != nil {
		calls.Program, calls.MakeTurn, calls.AfterTurn = c.who.Program, c.makeTurn, c.afterTurn
	}
	return calls.Make(ctx, req)
}

// checkLease ends the run if the session's claim is lost.
func (r *run) checkLease(ctx context.Context) error {
	if r.o.Lease != nil {
		r.o.Lease.Check(ctx)
	}
	return ctx.Err()
}

// recordCall counts an attempt and writes its model_call.
func (c caller) recordCall(call *record.ModelCall, u model.Usage) error {
	if len(c.run.o.Worker.Others)+len(c.run.o.Evaluator.Others) > 0 {
		who := c.who
		if c.makeTurn == nil { // a call of the endpoint, which an agent program's role may make too
			who.Program = nil
		}
		call.Agent = who.Name()
	}
	if c.makeTurn == nil {
		c.run.noteCost(c.who.Model, u, false, " (git config "+config.PriceKey(c.who.Model)+" '3 15' sets its price)")
	}
	call.TokensUsedTotal = c.run.count(c.role, u)
	if call.Health == model.HealthOK {
		c.run.mu.Lock()
		c.run.waited = 0
		c.run.mu.Unlock()
	}
	return c.emitPhase(call)
}

// emitPhase writes an event of the role. The worker's events have no phase.
func (c caller) emitPhase(e record.Event) error {
	if c.role != record.RoleWorker {
		e.Common().Phase = c.role
	}
	return c.emit(e)
}

// count adds an answer's usage to the session's totals. The checkpoint is saved at each task's end; the record has the
// totals after every call.
func (r *run) count(role string, u model.Usage) (total int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Checkpoint.TokensUsed += u.Counted()
	r.Checkpoint.Usage.Role(role).Add(agent.RoleUsage(u, 1))
	return r.Checkpoint.TokensUsed
}
