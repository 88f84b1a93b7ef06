package main

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/git-tilth/git-tilth/internal/fleet"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
)

func (p *process) workCommand() *cli.Command {
	return p.declare(traits{wish: "share", rare: true, starts: true, ends: true}, &cli.Command{
		Name:  "work",
		Usage: "run sessions of a remote, one after another",
		Description: "Looks for sessions to run or resume that no machine has claimed. Runs the oldest one, " +
			"pushes it, and continues with the next. If none is left, work waits for more, unless --once or " +
			"--drain is set. SIGTERM pushes the session and exits with 130.",
		Flags: append([]cli.Flag{
			remoteFlag(),
			&cli.BoolFlag{Name: "once", Usage: "exit after one session, with the exit code of its run"},
			&cli.BoolFlag{Name: "drain", Usage: "exit when no session is left to run"},
			&cli.IntFlag{Name: "jobs", Value: 1, Usage: "run `M` sessions at the same time, each with its own --lanes"},
		}, runFlags()...),
		Action: func(ctx *cli.Context) error {
			jobs := ctx.Int("jobs")
			once, drain := ctx.Bool("once"), ctx.Bool("drain")
			if jobs < 1 || once && (drain || jobs > 1) {
				return refuse("git tilth work -h",
					"--jobs must be at least 1, and --once cannot be combined with --drain or --jobs")
			}
			if p.dryRun {
				jobs = 1
			}
			shared := &workList{taken: map[string]bool{}, once: once, drain: drain}
			ends := make([]error, jobs)
			var all sync.WaitGroup
			for i := range jobs {
				all.Go(func() { ends[i] = p.worker(ctx, shared) })
			}
			all.Wait()
			return cmp.Or(append(ends, shared.left)...)
		},
	})
}

// workList is the state that the workers of one process share.
type workList struct {
	once, drain bool

	mu    sync.Mutex
	taken map[string]bool // by this process, now or before
	left  error           // why a session stopped before its end: a cap or an error
}

// choose returns an unclaimed session that can run. waiting reports whether another session is claimed and may become
// free.
func (l *workList) choose(claims []fleet.Claim, now time.Time, lost int) (c fleet.Claim, found, waiting bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c, found, waiting = fleet.Next(claims, now, lost, rand.IntN, func(id string) bool { return l.taken[id] })
	if found {
		l.taken[c.Session] = true
	}
	return c, found, waiting
}

// worker runs one session after another.
func (p *process) worker(ctx *cli.Context, l *workList) error {
	place, w, err := p.workPlace(ctx)
	if err != nil {
		return err
	}
	lease, lost := w.Config.Duration("tilth.lease"), 0 // races lost in a row
	idle := false
	for answered, away := false, false; ; {
		claims, err := place.Remotes(p.ctx)
		if err != nil && p.ctx.Err() == nil {
			if l.once || !answered {
				return fleetError(err, "")
			}
			if !away {
				p.warnf("git-tilth: the remote does not answer, retrying: %s\n", text.OneLine(err.Error()))
			}
		}
		away, answered = err != nil, answered || err == nil
		c, found, waiting := l.choose(claims, p.now(), lost)
		switch {
		case p.ctx.Err() != nil:
			return context.Canceled
		case found:
			idle = false
			end, over := p.workOn(ctx, l, c)
			if over || l.once && end != errNotTaken {
				return end
			}
			if lost++; end != errNotTaken || p.dryRun {
				lost = 0
				continue
			}
		case err == nil && (l.once || p.dryRun || l.drain && !waiting):
			return nil
		default:
			lost = 0
			if err == nil && !idle {
				idle = true
				p.warnf("%s has no session to run; waiting for one (Ctrl-C stops)\n", place.Shown())
			}
		}
		select {
		case <-p.ctx.Done():
		case <-time.After(fleet.Pause(lease, lost, rand.Float64())):
		}
	}
}

func (p *process) workPlace(ctx *cli.Context) (fleet.Remote, *repoContext, error) {
	w, err := p.enter("", givenSettings(ctx))
	if err != nil {
		return fleet.Remote{}, nil, err
	}
	place, err := w.remoteHere(ctx.String("remote"))
	return place, w, err
}

// errNotTaken means that another worker claimed the session first.
var errNotTaken = errors.New("not taken")

// workOn runs a session, or prints the plan of a run. over means that work must not run another session.
func (p *process) workOn(ctx *cli.Context, l *workList, c fleet.Claim) (end error, over bool) {
	place, w, err := p.workPlace(ctx)
	if err != nil {
		return err, true
	}
	s, err := place.Bring(p.ctx, c)
	if s != nil {
		if holder, busy := s.Holder(); busy {
			s, err = nil, holder
		}
	}
	switch {
	case err != nil:
		err = fleetError(err, c.Session)
	case p.dryRun:
		p.printf("session %s would be run\n", c.Session)
	default:
		p.printf("working on session %s\n", c.Session)
	}
	if s != nil {
		r := newRunRequest(ctx)
		r.verb, r.among, r.forRemote = "resume", ctx.Int("jobs") > 1, true
		err = w.proceed(s, r)
	}
	if err == nil {
		return nil, false
	}
	if p.ctx.Err() != nil {
		return err, true
	}
	code, msg, _ := p.exitFor(err)
	if errors.Is(err, fleet.ErrBehind) {
		code = exitBusy // another machine worked on it since the list was read
	}
	p.warnf("git-tilth: session %s: %s\n", c.Session, msg)
	l.mu.Lock()
	defer l.mu.Unlock()
	if code == exitBusy {
		if !p.dryRun {
			delete(l.taken, c.Session) // choose may return it again
		}
		return errNotTaken, false
	}
	if s == nil || s.Overview().Status != session.Failed {
		l.left = err
	}
	return err, false
}
