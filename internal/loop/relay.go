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
)

// unable is the stop of who cannot go on for reasons that lie outside of the work, so that another one may: a usage
// limit, a lost login, failures in a row.
type unable struct{ Stop }

func (u unable) Unwrap() error { return u.Stop }

// outage is why somebody of a list cannot work at present.
type outage struct {
	stop Stop
	task string // in which it was seen: one without an end is forgotten with the next task
	seen time.Time
}

// all are those who take turns in a role, in the order in which they are asked.
func (r Role) all() []Role { return append([]Role{r}, r.Others...) }

// isFree reports whether somebody may be asked for the attempt's task in a role, "" for the worker's.
func (a *attempt) isFree(role string) func(Role) bool {
	return func(r Role) bool {
		out, is := a.run.outageOf(role, r)
		switch reset := out.stop.Reset; {
		case !is:
			return true
		case !reset.After(out.seen): // an end that had passed is none: they would be asked in turn without end
			return out.task != a.task.ID
		default:
			return !a.run.Now().Before(reset)
		}
	}
}

// outageOf is why somebody cannot work at present in a role. A limit is one in each; who fails in one, or gives no
// verdict, may do well in the other.
func (r *run) outageOf(role string, who Role) (outage, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	out, is := r.outages[who.Name()]
	if !is {
		out, is = r.outages[role+"/"+who.Name()]
	}
	return out, is
}

// first is the first of a list who may be asked, else the first of all, whose answer says what keeps it.
func (a *attempt) first(role string, all []Role) Role {
	return all[max(slices.IndexFunc(all, a.isFree(role)), 0)]
}

// relief is who goes on where an error says that who was at work cannot: the first of the list who is free, on record
// where that is another one. Any other error comes back.
func (a *attempt) relief(ctx context.Context, all []Role, who Role, role string, err error) (Role, error) {
	u, is := errors.AsType[unable](err)
	if !is || ctx.Err() != nil {
		return who, err
	}
	key := who.Name()
	if u.Reason != record.UsageLimit {
		key = role + "/" + key
	}
	a.run.mu.Lock()
	a.run.outages[key] = outage{u.Stop, a.task.ID, a.run.Now()}
	a.run.mu.Unlock()
	if !slices.ContainsFunc(all, a.isFree(role)) {
		if err := a.awaitOne(ctx, role, all, u); err != nil {
			return who, err
		}
	}
	next := a.first(role, all)
	if next.Name() == who.Name() {
		return next, nil
	}
	return next, a.emit(&record.AgentSession{Agent: next.Name(), How: agent.TookOver, Role: role,
		Why: cmp.Or(u.Detail, u.Reason)})
}

// awaitOne waits for the first limit of a list that ends, if that is asked for. The error is the end of the run: a
// limit, if anybody is at one.
func (a *attempt) awaitOne(ctx context.Context, role string, all []Role, u unable) error {
	select { // one waits for all lanes
	case a.run.limit <- struct{}{}:
		defer func() { <-a.run.limit }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if slices.ContainsFunc(all, a.isFree(role)) {
		return nil
	}
	end := u.Stop
	var reset time.Time
	for _, r := range all {
		out, _ := a.run.outageOf(role, r)
		stop := out.stop
		if stop.Reason != record.UsageLimit {
			continue
		}
		if end.Reason != record.UsageLimit {
			end = stop
		}
		if !stop.Reset.IsZero() && (reset.IsZero() || stop.Reset.Before(reset)) {
			reset = stop.Reset
		}
	}
	if end.Reason != record.UsageLimit {
		return end
	}
	if err := a.run.waitUntil(ctx, reset, end.Detail); err != nil {
		return err
	}
	a.run.mu.Lock()
	defer a.run.mu.Unlock()
	for _, r := range all {
		if o, is := a.run.outages[r.Name()]; is && !o.stop.Reset.IsZero() && !o.stop.Reset.After(reset) {
			delete(a.run.outages, r.Name())
		}
	}
	return nil
}

// startWorker has the first of the role who is free work. What is handed over later is the tree and the ledger.
func (a *attempt) startWorker(ctx context.Context, wt gitx.Worktree) (err error) {
	a.worker, err = a.openWorker(ctx, wt, a.first("", a.run.o.Worker.all()))
	return err
}

// answer sends feedback on the case that was submitted last, or asks a silent worker to go on.
func (a *attempt) answer(text string) error {
	a.said = text
	return a.worker.Answer(text)
}

// iterate has the worker do one iteration, and where it cannot go on, the next one of its role.
func (a *attempt) iterate(ctx context.Context) (turn, error) {
	for {
		if err := a.joinOthers(ctx); err != nil {
			return turn{}, err
		}
		t, err := a.worker.iterate(ctx)
		if err == nil {
			a.said = ""
			return t, nil
		}
		who := a.worker.who
		next, err := a.relief(ctx, a.run.o.Worker.all(), who, "", err)
		if err == nil && next.Name() != who.Name() {
			err = a.handOver(ctx, next)
		}
		if err != nil {
			return t, err
		}
	}
}

// joinOthers has a lane do what one that met the limit of its worker before does: another one goes on, or it waits.
func (a *attempt) joinOthers(ctx context.Context) error {
	all, who := a.run.o.Worker.all(), a.worker.who
	out, is := a.run.outageOf("", who)
	if !is || out.task == a.task.ID || out.stop.Reason != record.UsageLimit || a.isFree("")(who) {
		return nil
	}
	next, err := a.relief(ctx, all, who, "", unable{out.stop})
	if err == nil && next.Name() != who.Name() {
		err = a.handOver(ctx, next)
	}
	return err
}

// handOver lets the next one begin where the one before ended.
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
	if a.worker = w; a.said == "" {
		return nil
	}
	return w.Answer(a.said)
}
