package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"syscall"

	"github.com/git-tilth/git-tilth/internal/config"
	"github.com/git-tilth/git-tilth/internal/lifecycle"
	"github.com/git-tilth/git-tilth/internal/loop"
	"github.com/git-tilth/git-tilth/internal/seed"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
	"github.com/git-tilth/git-tilth/internal/validator"
)

// The exit codes, one table for all commands.
const (
	exitOK          = 0
	exitNo          = 1   // a task failed, or the person said no
	exitRefused     = 2   // refused before anything was changed
	exitFailed      = 3   // git, the filesystem or the model endpoint failed
	exitBusy        = 4   // the session is in use by another process
	exitCap         = 5   // stopped at a session-level cap, resumable
	exitInterrupted = 130 // interrupted
)

// exitError is an error with its exit code and the command to run next.
type exitError struct {
	code int
	msg  string
	hint string
	err  error
}

func (e *exitError) Error() string { return e.msg }
func (e *exitError) Unwrap() error { return e.err }

// refuse is an error of what was asked for; nothing has been changed.
func refuse(hint, format string, args ...any) error {
	return &exitError{code: exitRefused, hint: hint, msg: fmt.Sprintf(format, args...)}
}

// fail is an error of the world.
func fail(hint string, err error) error {
	return &exitError{code: exitFailed, hint: hint, msg: err.Error(), err: err}
}

// exitCode reports an error and returns its code. It is the only place in which errors become exit codes.
func (p *process) exitCode(err error) (code int) {
	if err == nil && !p.runs {
		err = p.stdout.failed()
	}
	if err != nil && !errors.Is(err, syscall.EPIPE) { // else the reader has seen enough
		var msg, hint string
		code, msg, hint = p.interruptedOr(err)
		if msg != "" {
			p.warnf("git-tilth: %s\n", strings.TrimSpace(msg))
		}
		if hint != "" {
			p.warnf("hint: %s\n", hint)
		}
	}
	if p.twice.Load() {
		return exitInterrupted // whatever else the second signal made fail
	}
	return code
}

// interruptedOr is judge, but for what a signal made fail: a git command that it ended, and a refusal for want of that
// command's answer.
func (p *process) interruptedOr(err error) (code int, msg, hint string) {
	code, msg, hint = p.judge(err)
	switch {
	case !p.interrupted():
	case code == exitRefused:
		return exitInterrupted, "interrupted", ""
	case code == exitFailed && errors.Is(err, context.Canceled):
		return exitInterrupted, "interrupted", hint
	}
	return code, msg, hint
}

func (p *process) judge(err error) (code int, msg, hint string) {
	var own *exitError
	var refused *lifecycle.RefusedError
	var unknown *session.RefusedError
	var setting *config.Error
	var busy *session.BusyError
	var step *lifecycle.StepError
	var imported *seed.ImportError
	var lock interface{ Remedy() string }
	switch {
	case errors.As(err, &own):
		return own.code, own.msg, own.hint
	case errors.As(err, &refused):
		return exitRefused, err.Error(), refused.Hint
	case errors.As(err, &unknown):
		return exitRefused, err.Error(), "git tilth list --all"
	case errors.As(err, &setting):
		return exitRefused, err.Error(), setting.Hint
	case errors.As(err, &imported):
		return exitRefused, err.Error(), imported.Fix
	case errors.As(err, &busy):
		return exitBusy, err.Error(), strings.TrimSpace("git tilth stop " + busy.Session)
	case errors.As(err, &step):
		return exitFailed, err.Error(), step.Hint
	case errors.As(err, &lock):
		return exitFailed, err.Error(), lock.Remedy()
	}
	return exitFailed, err.Error(), ""
}

// executionError is why a session could not be brought to where its loop begins. What was reached is kept, so that
// the way on is always a resume; a cause that says more about it has the word.
func (p *process) executionError(err error, sessionID string) error {
	resume := "git tilth resume " + sessionID
	switch {
	case errors.As(err, new(*lifecycle.RefusedError)), errors.As(err, new(*lifecycle.StepError)):
		return err
	case p.interrupted() && errors.Is(err, context.Canceled):
		return &exitError{code: exitInterrupted, msg: "interrupted", hint: resume, err: err}
	case errors.As(err, new(*validator.SetupError)):
		return fail("correct tilth.setup, then "+resume, err)
	}
	return fail(resume, err)
}

// outcome is a run's stop as the command's result. A signal that came after the stop was written, to a tilth-post-run
// hook, is no part of the run, whose end is on record; but a command that was interrupted never reports success.
// strict says that a flag made the run's caps hold to the call.
func (p *process) outcome(s loop.Stop, sessionID string, strict bool) error {
	resume := resumeCommand(sessionID, s.Over, strict)
	err := stopError(s, sessionID, resume)
	if !p.interrupted() || s.Reason == loop.Interrupted {
		return err
	}
	if err == nil {
		return &exitError{code: exitInterrupted, msg: "interrupted after the run: all tasks are done"}
	}
	return &exitError{code: exitInterrupted, msg: "interrupted after the run: " + err.Error(),
		hint: resume, err: err}
}

// stopError is a run's stop as the command's result; nil for all_done. resume is the command that goes on.
func stopError(s loop.Stop, sessionID, resume string) error {
	e := &exitError{hint: resume}
	switch {
	case s.Reason == loop.PreflightFailed && s.Hint != "":
		e.hint = s.Hint + " && " + e.hint // to be copied as one line
	case s.Reason == loop.PreflightFailed:
		e.hint = "git tilth resume --no-preflight " + sessionID
	case s.Hint != "":
		e.hint = s.Hint + ", then " + e.hint
	}
	detail := ""
	if s.Detail != "" {
		detail = " (" + s.Detail + ")"
	}
	if s.Objection != "" {
		detail += ": " + s.Objection
	}
	switch s.Reason {
	case loop.AllDone:
		return nil
	case loop.Interrupted:
		e.code, e.msg = exitInterrupted, "interrupted"
	case loop.PreflightFailed:
		e.code, e.msg = exitRefused, "stopped: "+s.Detail
	case loop.UsageLimit:
		e.code, e.msg = exitCap, "stopped: usage limit"+detail
		if !s.Reset.IsZero() {
			e.msg += ", resets at " + s.Reset.Local().Format("2006-01-02 15:04")
		}
	case loop.DiskFull:
		e.code, e.msg = exitCap, "stopped: disk full"+detail
	case loop.ClaimLost:
		e.code, e.msg, e.hint = exitBusy, "claim_lost"+detail, "git tilth list --remote"
	case loop.TasksFailed:
		e.code, e.msg = exitNo, "some tasks are not done: "+s.Detail
	case loop.CommitRefused:
		e.code, e.msg = exitNo, s.Task+" is accepted, and a commit hook refuses it: "+
			cmp.Or(text.FailingLine(s.Detail), "it says nothing")
	case loop.EmptyResponses, loop.ProviderFailure:
		e.code, e.msg = exitFailed, s.Task+" failed: "+s.Reason+detail
	case loop.Errored:
		e.code, e.msg = exitFailed, "stopped: error"+detail
		if s.Task != "" {
			e.msg = s.Task + " stopped: error" + detail
		}
	default:
		e.code, e.msg = exitNo, s.Task+" failed: "+s.Reason+detail
		if config.IsCapStop(s.Reason) {
			e.code, e.msg = exitCap, "stopped: "+s.Reason+detail
		}
	}
	return e
}

// resumeCommand is the command that goes on with a session, with higher caps where it would stop at once without.
// These hold to the call where a flag said so.
func resumeCommand(id string, over []config.Reached, strict bool) string {
	cmd := "git tilth resume "
	if strict && len(over) > 0 {
		cmd += "--strict-caps "
	}
	for _, o := range over {
		cmd += "--" + o.Setting.Flag + " " + raised(o) + " "
	}
	return cmd + id
}

// resumeOf is the command that goes on with a session that is not at hand, by the caps that hold here.
func (w *repoContext) resumeOf(o session.Overview) string {
	return resumeCommand(o.ID, w.config.Caps().Reached(loop.Usage(o.TokensUsed, o.Cost, 0)), false)
}

// raised is a multiple of a cap with room for at least half of it above what was used.
func raised(o config.Reached) string {
	limit := o.Limit * math.Ceil(o.Used/o.Limit+0.5)
	if limit == math.Trunc(limit) {
		return strconv.FormatFloat(limit, 'f', 0, 64)
	}
	return strconv.FormatFloat(limit, 'g', 6, 64)
}
