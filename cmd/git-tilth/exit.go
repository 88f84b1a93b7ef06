package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"github.com/git-tilth/git-tilth/internal/config"
	"github.com/git-tilth/git-tilth/internal/equip"
	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/loop"
	"github.com/git-tilth/git-tilth/internal/pattern"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/seed"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
)

// The exit codes of all commands.
const (
	exitOK          = 0
	exitNo          = 1   // a task failed, or the user answered no
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

// refuse returns an error of usage or state; nothing has been changed.
func refuse(hint, format string, args ...any) error {
	return &exitError{code: exitRefused, hint: hint, msg: fmt.Sprintf(format, args...)}
}

// fail returns an error of git, the file system or an endpoint.
func fail(hint string, err error) error {
	return &exitError{code: exitFailed, hint: hint, msg: err.Error(), err: err}
}

// exitCode reports an error and returns its code. It is the only place in which errors become exit codes.
func (p *process) exitCode(err error) (code int) {
	if err == nil && !p.runs {
		err = p.stdout.failed()
	}
	if err != nil && !errors.Is(err, syscall.EPIPE) { // EPIPE: the reader closed the pipe
		var msg, hint string
		code, msg, hint = p.interruptedOr(err)
		if msg != "" {
			msg = "git-tilth: " + strings.TrimSpace(msg)
			if !strings.Contains(msg, "\n") { // a hint of several lines has commands to paste
				msg = p.shownOn(p.stderr).Fold(msg)
			}
			p.warnf("%s\n", msg)
		}
		if at := new(os.PathError); code == exitFailed && errors.Is(err, jsonl.ErrIrregular) && errors.As(err, &at) {
			fix := "mv " + text.ShellQuote(at.Path) + " " + text.ShellQuote(at.Path+".aside")
			hint = strings.TrimSuffix(fix+" && "+hint, " && ")
		} else if hint == "" && code == exitFailed {
			hint = worldHint(err)
		}
		p.warnf("%s", hinted(hint))
	}
	if p.twice.Load() {
		return exitInterrupted // even if the second signal caused an error
	}
	return code
}

// hinted formats a hint. Each line is a command to paste; an indented line explains one.
func hinted(hint string) string {
	var b strings.Builder
	for line := range strings.Lines(hint) {
		if !strings.HasPrefix(line, " ") {
			b.WriteString("hint: ")
		}
		b.WriteString(strings.TrimSuffix(line, "\n") + "\n")
	}
	return b.String()
}

// interruptedOr is exitFor, except for failures caused by a signal: an interrupted git command, and a refusal that
// follows from it.
func (p *process) interruptedOr(err error) (code int, msg, hint string) {
	code, msg, hint = p.exitFor(err)
	switch {
	case !p.interrupted():
	case code == exitRefused:
		return exitInterrupted, "interrupted", ""
	case code == exitFailed && errors.Is(err, context.Canceled):
		return exitInterrupted, "interrupted", hint
	}
	return code, msg, hint
}

func (p *process) exitFor(err error) (code int, msg, hint string) {
	var own *exitError
	var refused *held.RefusedError
	var unknown *session.RefusedError
	var setting *config.Error
	var busy *session.BusyError
	var step *held.StepError
	var imported *seed.ImportError
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
		hint = "git tilth prep-feature -h"
		if fi, err := os.Stat(imported.File); err == nil && fi.Mode().IsRegular() {
			hint = "${EDITOR:-vi} " + text.ShellQuote(imported.File)
		}
		return exitRefused, err.Error() + "; " + imported.Fix, hint
	case errors.As(err, &busy):
		return exitBusy, err.Error(), strings.TrimSpace("git tilth stop " + busy.Session)
	case errors.As(err, &step):
		return exitFailed, err.Error(), step.Hint
	}
	return exitFailed, err.Error(), ""
}

var dubious = pattern.New(`dubious ownership in repository at '(.*?)'(?:[;\s]|$)`)

// worldHint returns the fix for a problem of the environment: a repository that git does not trust because another
// user owns it, or a sessions root that is not writable. It returns "" for any other error.
func worldHint(err error) string {
	said := err.Error()
	if m := dubious().FindStringSubmatch(said); m != nil {
		return "git config --global --add safe.directory " + text.ShellQuote(m[1])
	}
	if !strings.Contains(said, "sessions root") && !strings.Contains(said, "the session could not be created") {
		return ""
	}
	for _, no := range []error{syscall.EROFS, syscall.EACCES, syscall.EPERM, syscall.ENOTDIR} {
		if errors.Is(err, no) {
			return equip.AnyRoot()
		}
	}
	return ""
}

// executionError returns the error of a session that failed before its loop. The hint is a resume, unless the cause
// has a better one, because the session's state is kept.
func (p *process) executionError(err error, sessionID string) error {
	resume := "git tilth resume " + sessionID
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return &exitError{code: exitCap, msg: "stopped: disk full (" + err.Error() + "); free some space", hint: resume,
			err: err}
	case errors.As(err, new(*held.RefusedError)), errors.As(err, new(*held.StepError)):
		return err
	case p.interrupted() && errors.Is(err, context.Canceled):
		return &exitError{code: exitInterrupted, msg: "interrupted", hint: resume, err: err}
	case errors.As(err, new(*held.SetupError)):
		return fail("git config --edit && "+resume, err)
	}
	return fail(resume, err)
}

// outcome returns the command's result for a run's stop. A signal after the recorded stop, for example during a
// tilth-post-run hook, does not change the stop; but an interrupted command never reports success.
func (p *process) outcome(s loop.Stop) error {
	err := stopError(s)
	if !p.interrupted() || s.Reason == record.Interrupted {
		return err
	}
	says := "all tasks are done"
	if err != nil {
		says = err.Error()
	}
	return &exitError{code: exitInterrupted, msg: "interrupted after the run: " + says, err: err}
}

// stopError returns a run's stop as an error without a hint; nil for all_done.
func stopError(s loop.Stop) error {
	why := record.ReasonOf(s.Reason)
	e := &exitError{code: why.Exit}
	advice := ""
	if first := cmp.Or(s.Hint, why.Hint); first != "" && !text.IsCommand(first) {
		advice = "; " + first
	}
	if s.Away {
		e.code = exitFailed
	}
	detail := ""
	if s.Detail != "" {
		detail = " (" + s.Detail + ")"
	}
	if s.Objection != "" {
		detail += ": " + s.Objection
	}
	switch s.Reason {
	case record.AllDone:
		return nil
	case record.Interrupted:
		e.msg = "interrupted"
	case record.PreflightFailed:
		e.msg = "stopped: " + s.Detail
	case record.UsageLimit:
		e.msg = "stopped: usage limit" + detail
		if !s.Reset.IsZero() {
			e.msg += ", resets at " + s.Reset.Local().Format("2006-01-02 15:04")
		}
	case record.DiskFull:
		e.msg = "stopped: disk full" + detail
	case record.ClaimLost:
		e.msg = "claim_lost" + detail
	case record.TasksFailed:
		e.msg = "some tasks are not done: " + s.Detail
	case record.CommitRefused:
		e.msg = s.Task + " was accepted, but "
		if !gitx.SaysUnsigned(s.Detail) {
			e.msg += "a commit hook rejects it: "
		}
		e.msg += cmp.Or(text.FailingLine(s.Detail), "the hook printed nothing")
	case record.ReviewerFailed:
		e.msg = s.Task + " waits for its review: " + s.Reason + detail
	default:
		e.msg = "stopped: " + s.Reason + detail
		switch {
		case why.Task:
			e.msg = s.Task + " failed: " + s.Reason + detail
		case s.Reason == record.Errored && s.Task != "":
			e.msg = s.Task + " " + e.msg
		}
	}
	e.msg += advice
	return e
}

// resumeOf returns the command that resumes another session, with this repository's caps.
func (w *repoContext) resumeOf(o session.Overview) string {
	return loop.Resume(o.ID, w.Config.Caps().Reached(loop.Usage(o.TokensUsed, o.Cost, 0)))
}
