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
}

// all are those who take turns in a role, in the order in which they are asked.
func (r Role) all() []Role { return append([]Role{r}, r.Others...) }

// isFree reports whether somebody may be asked to work at the attempt's task.
func (a *attempt) isFree(r Role) bool {
	out, is := a.outages[r.Name()]
	switch reset := out.stop.Reset; {
	case !is:
		return true
	case reset.IsZero():
		return out.task != a.task.ID
	default:
		return !a.Now().Before(reset)
	}
}

// firstFree is the first of a list who may be asked.
func (a *attempt) firstFree(all []Role) (Role, bool) {
	if i := slices.IndexFunc(all, a.isFree); i >= 0 {
		return all[i], true
	}
	return Role{}, false
}

// out notes that somebody cannot go on, and returns who goes on instead: the first of the list who is free. Where
// nobody is, that is after a wait for the first limit that ends, if that is asked for. The error is the end of the run:
// a limit, if anybody is at one.
func (a *attempt) out(ctx context.Context, all []Role, who Role, u unable) (Role, error) {
	a.outages[who.Name()] = outage{u.Stop, a.task.ID}
	if next, ok := a.firstFree(all); ok {
		return next, nil
	}
	end := u.Stop
	var reset time.Time
	for _, r := range all {
		stop := a.outages[r.Name()].stop
		if stop.Reason != UsageLimit {
			continue
		}
		if end.Reason != UsageLimit {
			end = stop
		}
		if !stop.Reset.IsZero() && (reset.IsZero() || stop.Reset.Before(reset)) {
			reset = stop.Reset
		}
	}
	if end.Reason != UsageLimit {
		return who, end
	}
	if err := a.waitUntil(ctx, reset, end.Detail); err != nil {
		return who, err
	}
	for _, r := range all {
		if o, is := a.outages[r.Name()]; is && !o.stop.Reset.IsZero() && !o.stop.Reset.After(reset) {
			delete(a.outages, r.Name())
		}
	}
	next, _ := a.firstFree(all)
	return next, nil
}

// relay is a worker of several, each of which goes on where the one before cannot. What is handed over is the tree and
// the ledger.
type relay struct {
	worker // at work
	a      *attempt
	wt     gitx.Worktree
	who    Role
	said   string // to whom worked, since its last turn
}

// openWorker makes the worker of an attempt: the first of its role who is free.
func (a *attempt) openWorker(ctx context.Context, wt gitx.Worktree) (worker, error) {
	all := a.o.Worker.all()
	first, ok := a.firstFree(all)
	if !ok {
		first = all[0] // whose answer says what keeps it
	}
	w, err := first.open(ctx, a, wt)
	return &relay{worker: w, a: a, wt: wt, who: first}, err
}

func (r *relay) answer(text string) error {
	r.said = text
	return r.worker.answer(text)
}

func (r *relay) iterate(ctx context.Context) (turn, error) {
	for {
		t, err := r.worker.iterate(ctx)
		u, is := errors.AsType[unable](err)
		if !is || ctx.Err() != nil {
			if err == nil {
				r.said = ""
			}
			return t, err
		}
		next, err := r.a.out(ctx, r.a.o.Worker.all(), r.who, u)
		if err != nil {
			return t, err
		}
		if next.Name() == r.who.Name() {
			continue // after a wait
		}
		if err := r.handOver(ctx, next, u.Stop); err != nil {
			return t, err
		}
	}
}

// handOver lets the next one begin where the one before ended.
func (r *relay) handOver(ctx context.Context, next Role, why Stop) error {
	over := record.AgentSession{Agent: next.Name(), How: agent.TookOver, Why: cmp.Or(why.Detail, why.Reason)}
	if err := r.a.emit(&over); err != nil {
		return err
	}
	if err := r.worker.close(); err != nil {
		return err
	}
	w, err := next.open(ctx, r.a, r.wt)
	if err != nil {
		return err
	}
	r.worker, r.who = w, next
	if r.a.context, err = r.a.loadContext(ctx, r.wt); err != nil {
		return err
	}
	if err := w.begin(ctx); err != nil || r.said == "" {
		return err
	}
	return w.answer(r.said)
}
