package main

import (
	"errors"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/session"
)

// stopPatience limits stop's wait for the run, because the run first finishes operations that a signal may not
// interrupt.
const stopPatience = 60 * time.Second

func (p *process) stopCommand() *cli.Command {
	return p.declare(traits{wish: "steer"}, &cli.Command{
		Name:        "stop",
		Usage:       "stop a running session, as Ctrl-C does",
		ArgsUsage:   "[<session>]",
		Description: "Signals the process that runs the session, and waits until the stop is recorded.",
		Action: p.onSession(func(ctx *cli.Context, w *repoContext, s *session.Session) error {
			if ctx.Args().First() == "" {
				var err error
				if s, err = w.running(s); err != nil {
					return err
				}
			}
			holder, busy := s.Holder()
			if !busy {
				p.printf("session %s is not running\n", s.ID)
				return nil
			}
			host, _ := os.Hostname()
			if holder.Host != host {
				return refuse("git tilth list --remote", "session %s runs on %s, not on this machine", s.ID,
					holder.Host)
			}
			// A parent process such as flock(1) may hold the lock file. The process ids 0 and -1 mean a whole group.
			if holder.PID <= 0 || slices.Contains(proc.Above(), holder.PID) {
				return refuse("", "%s; stop cannot end that process", holder)
			}
			if p.dryRun {
				p.printf("would run: kill -INT %d\n", holder.PID)
				return nil
			}
			// The holder of the lock wrote the process id, so the id is not of an earlier process.
			if err := syscall.Kill(holder.PID, syscall.SIGINT); err != nil && !errors.Is(err, syscall.ESRCH) {
				return fail("", err)
			}
			return w.awaitRelease(s, holder.PID)
		}),
	})
}

// running returns the session that stop without an argument stops: the current session if it is running, else the only
// running session of this repository.
func (w *repoContext) running(s *session.Session) (*session.Session, error) {
	if _, busy := s.Holder(); busy {
		return s, nil
	}
	all, err := w.overviews(!w.inRepo)
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, o := range all {
		if o.Busy != nil {
			ids = append(ids, o.ID)
		}
	}
	switch len(ids) {
	case 0:
		return s, nil
	case 1:
		return w.Store.Find(ids[0])
	}
	return nil, refuse("git tilth stop "+ids[0], "several sessions are running: %s", strings.Join(ids, ", "))
}

// awaitRelease waits until a process releases the session, even if another process locks it then.
func (w *repoContext) awaitRelease(s *session.Session, pid int) error {
	for end := time.Now().Add(stopPatience); ; {
		if holder, busy := s.Holder(); !busy || holder.PID != pid && holder.PID != 0 {
			w.p.printf("session %s is stopped\nnext: git tilth resume %s\n", s.ID, s.ID)
			return nil
		}
		if time.Now().After(end) {
			return &exitError{code: exitBusy, msg: "session " + s.ID + " is stopping, but is still running",
				hint: "git tilth stop " + s.ID}
		}
		select {
		case <-w.p.ctx.Done():
			return w.p.ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}
