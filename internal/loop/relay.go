package loop

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/git-tilth/git-tilth/internal/agent"
	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
)

// unable is an agent's failure that another agent can avoid: a usage limit, a lost login, failures in a row.
type unable struct{ Stop }

func (u unable) Unwrap() error { return u.Stop }

// outage is the reason why an agent of a list is unavailable.
type outage struct {
	stop  Stop
	task  string    // task that met it; an outage without a known end ends with that task
	until time.Time // time of the next request to the agent; zero if unknown
}

// all returns a role's agents in order of preference.
func (r Role) all() []Role { return append([]Role{r}, r.Others...) }

// isFree reports whether an agent is available for the attempt's task in a role ("" for the worker).
func (a *attempt) isFree(role string) func(Role) bool {
	return func(r Role) bool {
		out, is := a.run.outageOf(role, r)
		switch {
		case !is:
			return true
		case out.until.IsZero():
			return out.task != a.task.ID
		default:
			return !a.run.Now().Before(out.until)
		}
	}
}

// outageOf returns the reason why an agent is unavailable in a role. A limit applies to all roles; failures and
// missing verdicts apply to one role.
func (r *run) outageOf(role string, who Role) (outage, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	out, is := r.outages[who.Name()]
	if !is {
		out, is = r.outages[role+"/"+who.Name()]
	}
	return out, is
}

// first returns the first available agent of a list, or the first agent, which then reports its problem.
func (a *attempt) first(role string, all []Role) Role {
	return all[max(slices.IndexFunc(all, a.isFree(role)), 0)]
}

// nextAgent returns the agent that takes over after an unable error, the first available one of the list. It records a
// change of agent. It returns any other error unchanged.
func (a *attempt) nextAgent(ctx context.Context, all []Role, who Role, role string, err error) (Role, error) {
	u, is := errors.AsType[unable](err)
	if !is || ctx.Err() != nil {
		return who, err
	}
	key := who.Name()
	if u.Reason != record.UsageLimit {
		key = role + "/" + key
	}
	a.run.mu.Lock()
	a.run.outages[key] = outage{u.Stop, a.task.ID, a.run.asksAgain(u.Reset)}
	a.run.mu.Unlock()
	return a.takeOver(ctx, all, who, role, u)
}

// takeOver returns the first free agent of a list, or waits for one. It records a change of agent.
func (a *attempt) takeOver(ctx context.Context, all []Role, who Role, role string, u unable) (Role, error) {
	if !slices.ContainsFunc(all, a.isFree(role)) {
		if err := a.awaitOne(ctx, role, all, u); err != nil {
			return who, err
		}
	}
	next := a.first(role, all)
	if next.Name() == who.Name() {
		return next, nil
	}
	took := record.AgentSession{Agent: next.Name(), How: agent.TookOver, Role: role, Why: cmp.Or(u.Detail, u.Reason)}
	if u.Hint != "" {
		took.Why += "; " + u.Hint
	}
	if u.Reason == record.UsageLimit && u.Reset.After(a.run.Now()) {
		took.From, took.Until = who.Name(), record.FormatTime(u.Reset)
	}
	return next, a.emit(&took)
}

// awaitOne waits for the agent of a list whose limit ends first. Its error ends the run. If any agent is at a limit,
// the error is that limit.
func (a *attempt) awaitOne(ctx context.Context, role string, all []Role, u unable) error {
	select { // one lane waits for all
	case a.run.limit <- struct{}{}:
		defer func() { <-a.run.limit }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if slices.ContainsFunc(all, a.isFree(role)) {
		return nil
	}
	end, who := u.Stop, ""
	var until time.Time
	for _, r := range all {
		out, _ := a.run.outageOf(role, r)
		stop := out.stop
		if stop.Reason != record.UsageLimit {
			continue
		}
		if end.Reason != record.UsageLimit {
			end = stop
		}
		if !out.until.IsZero() && (until.IsZero() || out.until.Before(until)) {
			until, who = out.until, r.who()
		}
	}
	if end.Reason != record.UsageLimit {
		return end
	}
	if err := a.waitUntil(ctx, who, until, end); err != nil {
		return err
	}
	a.run.mu.Lock()
	defer a.run.mu.Unlock()
	for _, r := range all {
		if o, is := a.run.outages[r.Name()]; is && !o.until.IsZero() && !o.until.After(until) {
			delete(a.run.outages, r.Name())
		}
	}
	return nil
}

// startWorker starts the agent of the task's stored conversation if it is free, else the first free agent.
func (a *attempt) startWorker(ctx context.Context, wt gitx.Worktree) (err error) {
	all := a.run.o.Worker.all()
	stored := a.conversation()
	if stored != nil && !stored.Over && !a.run.o.Fresh {
		if i := slices.IndexFunc(all, func(r Role) bool { return r.Name() == stored.Agent }); i > 0 {
			inUse := all[i]
			all = slices.Insert(slices.Delete(all, i, i+1), 0, inUse)
		}
	}
	a.worker, err = a.openWorker(ctx, wt, a.first("", all))
	return err
}

// conversation returns the task's stored conversation, or nil.
func (a *attempt) conversation() *session.Conversation {
	a.run.mu.Lock()
	defer a.run.mu.Unlock()
	return a.run.Checkpoint.Conversation(a.task.ID)
}

// holdLimits restores the recorded usage limits that have not ended.
func (r *run) holdLimits() error {
	state, err := r.S.State()
	if err != nil {
		return err
	}
	for name, end := range state.Limits {
		if until := record.ParseTime(end); until.After(r.Now()) {
			stop := Stop{Reason: record.UsageLimit, Detail: name + " is at its usage limit", Reset: until}
			r.outages[name] = outage{stop: stop, until: until}
		}
	}
	return nil
}

// answer returns feedback on the last hand-in, or asks a silent worker to continue.
func (a *attempt) answer(text string) error {
	a.lastFeedback = text
	return a.worker.Answer(text)
}

// iterate runs one iteration of the worker. If the worker is unavailable, the next agent of its role takes over.
func (a *attempt) iterate(ctx context.Context) (turn, error) {
	for {
		if err := a.joinOthers(ctx); err != nil {
			return turn{}, err
		}
		t, err := a.worker.iterate(ctx)
		if err == nil {
			a.lastFeedback = ""
			return t, nil
		}
		who := a.worker.who
		if stop, is := errors.AsType[Stop](err); is && stop.Reason == record.ContextOverflow {
			if a.full {
				return t, stop
			}
			if err := a.beginAgain(ctx); err != nil {
				return t, err
			}
			continue
		}
		next, err := a.nextAgent(ctx, a.run.o.Worker.all(), who, "", err)
		if err == nil && next.Name() != who.Name() {
			err = a.handOver(ctx, next)
		}
		if err != nil {
			return t, err
		}
	}
}

const conversationFull = "the conversation is too long for the model"

// beginAgain gives the worker one new conversation, with the ledger and its work in place.
func (a *attempt) beginAgain(ctx context.Context) error {
	a.full = true
	fresh := record.AgentSession{Agent: a.worker.who.Name(), How: agent.Replaced, Why: conversationFull}
	if c := a.conversation(); c != nil {
		fresh.Conversation = c.ID
	}
	if err := a.emit(&fresh); err != nil {
		return err
	}
	return a.handOver(ctx, a.worker.who)
}

// joinOthers applies a usage limit that another lane has met with the same worker: another agent takes over, or the
// lane waits.
func (a *attempt) joinOthers(ctx context.Context) error {
	all, who := a.run.o.Worker.all(), a.worker.who
	out, is := a.run.outageOf("", who)
	if !is || out.task == a.task.ID || out.stop.Reason != record.UsageLimit || a.isFree("")(who) {
		return nil
	}
	next, err := a.takeOver(ctx, all, who, "", unable{out.stop})
	if err == nil && next.Name() != who.Name() {
		err = a.handOver(ctx, next)
	}
	return err
}

// handOver starts the next agent with the state of the last one.
func (a *attempt) handOver(ctx context.Context, next Role) error {
	before := a.worker
	if err := before.close(); err != nil {
		return err
	}
	var err error
	if a.context, err = a.loadContext(ctx, before.wt); err != nil {
		return err
	}
	w, err := a.openWorker(ctx, before.wt, next)
	if err != nil {
		return err
	}
	if a.worker = w; a.lastFeedback == "" {
		return nil
	}
	return w.Answer(a.lastFeedback)
}
