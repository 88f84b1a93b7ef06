// Package loop runs the tasks of a session, one after the other, each through worker, validators and evaluator
// to a commit or a placeholder.
//
// The outer loop (Run) picks tasks and checks the session's caps between them. The inner loop (attempt) takes one
// task through its iterations. Everything that is decided here is on the record before or as it happens.
package loop

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/git-tilth/git-tilth/internal/config"
	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/judge"
	"github.com/git-tilth/git-tilth/internal/lifecycle"
	"github.com/git-tilth/git-tilth/internal/prompt"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
)

// Reasons for which a run stops, beside the caps of the session (config.AllCaps) and the reasons for which a task fails
// (lifecycle.TaskReasons).
const (
	AllDone     = "all_done"
	Interrupted = "interrupted"
	Errored     = "error"
	// UsageLimit is a provider's own limit on the user's plan. Nothing is wrong with the work; the stop
	// carries the time at which the limit resets.
	UsageLimit = "usage_limit"
)

// Reasons for which a task fails.
const (
	IterCap         = "iter_cap"
	EvaluatorCap    = "evaluator_cap"
	EmptyResponses  = "empty_responses"
	NoCase          = "no_case"
	ProviderFailure = "provider_failure"
)

// Stop is how a run ended.
type Stop struct {
	Reason string
	Task   string // of a task's reason, and of error
	Detail string
	Hint   string    // what to do before a resume, "" for nothing
	Reset  time.Time // of usage_limit, zero when unknown
	// Changed is what became of the user's repository during the run, but for the session's own branch.
	Changed []gitx.RepoChange
	Over    []config.Reached // totals that have reached their caps: a resume with the same ones stops at once
}

// stopError is a Stop on its way up.
type stopError struct {
	Stop
	err error
}

func (e *stopError) Error() string {
	if e.Detail != "" {
		return e.Reason + ": " + e.Detail
	}
	return e.Reason
}

func (e *stopError) Unwrap() error { return e.err }

// TaskFailed reports whether the reason is one for which a task fails.
func (s Stop) TaskFailed() bool { return slices.Contains(lifecycle.TaskReasons, s.Reason) }

// Options say how a session is run.
type Options struct {
	Caps       config.Caps
	Worker     Role
	Evaluator  Role
	Prompts    *prompt.Set
	Attempts   int // at one model call
	Validators []string
	KeepEnv    []string // variables that commands keep although they look like keys
	Judging    Judging
	MaxFile    int64 // bytes of the largest file that is committed; 0 for no limit
	Limits     Limits
	Wait       bool          // wait for a usage limit to reset
	MaxWait    time.Duration // the longest such wait
	Continue   bool          // builtin worker: take up its earlier conversation
	Fresh      bool          // agent program: begin a new conversation
	Resumed    bool          // the session ran before
	LastStop   string        // of that run, for the prompt of a resumed conversation
	JudgedTo   string        // the commit from which on the first task is judged, "" for where it begins
	First      string        // the task to begin with, whose partial work is in the worktree; "" for the first pending one
	// Refused is what a commit hook said when the tree that was accepted in that run was to be committed; nil for
	// nothing.
	Refused *lifecycle.HookRefusal
	Waiting func(until time.Time)
}

// Limits bound what a worker's children may take.
type Limits struct {
	Bash, Validator, Turn time.Duration
	Turns                 int
}

// run is one process's work on a session.
type run struct {
	*lifecycle.Handle
	o        Options
	started  time.Time
	tasks    []session.Task
	notified map[string]bool // build products named in the record so far
	hooks    hooks
	waited   time.Duration // for usage limits
	seed     *seedFacts    // nil until asked for
	place    *judge.Place  // where changes are judged; nil in the worktree
	watch    *gitx.RepoWatch
	objects  *gitx.Objects
	carried  carried
	judgedTo string // the commit from which on the next attempt is judged, "" for where it begins
	tip      string // where the branch is with nothing of a worker's on it, "" while a worker may have committed
}

// Run works on the session until it stops, and writes the stop. The error is non-nil only when the stop itself could
// not be written; everything else is in Stop.
func Run(ctx context.Context, h *lifecycle.Handle, o Options) (Stop, error) {
	r := &run{Handle: h, o: o, started: h.Now(), notified: map[string]bool{}, judgedTo: o.JudgedTo}
	r.objects = h.Git.NewObjects(h.Common, r.madeAt())
	stop := r.outer(ctx)
	if err := r.keepStatuses(); err != nil && stop.Reason == AllDone {
		stop = Stop{Reason: Errored, Detail: err.Error()}
	}
	if r.place != nil {
		r.place.Open()
	}
	stop.Changed = r.lastLook(ctx)
	stop.Over = o.Caps.Reached(Usage(h.Checkpoint.TokensUsed, h.Checkpoint.Usage.Cost(), 0))
	err := r.finish(stop)
	if tampered := (*record.TamperedError)(nil); errors.As(err, &tampered) {
		stop = Stop{Reason: Errored, Task: stop.Task, Detail: tampered.Error(), Over: stop.Over, Changed: stop.Changed}
		err = r.finish(stop)
	}
	if err != nil {
		return stop, fmt.Errorf("the end of the run (%s) could not be recorded: %w", stop.Reason, err)
	}
	r.hooks.postRun(ctx, stop)
	return stop, nil
}

func (r *run) outer(ctx context.Context) Stop {
	// A run that was killed while a program judged has left that program's own files.
	if err := os.RemoveAll(r.S.Path(session.AgentDir)); err != nil {
		return Stop{Reason: Errored, Detail: err.Error()}
	}
	wt, err := r.Worktree(ctx)
	if err != nil {
		return Stop{Reason: Errored, Detail: err.Error()}
	}
	if r.hooks, err = r.findHooks(ctx, wt); err != nil {
		return Stop{Reason: Errored, Detail: err.Error()}
	}
	if r.tasks, err = r.S.Tasks(); err != nil {
		return Stop{Reason: Errored, Detail: err.Error()}
	}
	for {
		// Before anything else: whoever interrupts the last task's hooks is not told that all went well, and resume is.
		if ctx.Err() != nil {
			return Stop{Reason: Interrupted}
		}
		i := r.next()
		if i < 0 {
			return Stop{Reason: AllDone}
		}
		if reason, detail := r.capReached(); reason != "" {
			return Stop{Reason: reason, Detail: detail}
		}
		if err := errors.Join(r.watchRepo(ctx), r.openPlace(ctx, wt)); err != nil {
			return stopOf(ctx, err, r.tasks[i].ID)
		}
		if err := r.task(ctx, i); err != nil {
			return stopOf(ctx, err, r.tasks[i].ID)
		}
	}
}

// stopOf turns what ended a task into the stop of the run.
func stopOf(ctx context.Context, err error, task string) Stop {
	var h *stopError
	switch {
	case errors.As(err, &h):
		h.Stop.Task = task
		return h.Stop
	case ctx.Err() != nil:
		return Stop{Reason: Interrupted, Task: task}
	}
	return Stop{Reason: Errored, Task: task, Detail: err.Error()}
}

// SetPending makes a run go on where a plan has brought the session to.
func (o *Options) SetPending(p lifecycle.Outcome) {
	o.Resumed, o.LastStop, o.First, o.Refused, o.JudgedTo = !p.Fresh, p.LastStop, "", p.Refused, p.JudgedTo
	if len(p.Pending) > 0 {
		o.First = p.Pending[0]
	}
}

// next is the index of the first pending task, -1 when there is none.
func (r *run) next() int {
	pending := func(t session.Task) bool { return t.Status != "done" && t.Status != "failed" }
	if i := slices.IndexFunc(r.tasks, func(t session.Task) bool { return t.ID == r.o.First && pending(t) }); i >= 0 {
		return i
	}
	return slices.IndexFunc(r.tasks, pending)
}

// keepStatuses puts back the statuses of tasks that somebody else wrote into prd.json while the run was at work. They
// would be taken for the harness's word by the next one.
func (r *run) keepStatuses() error {
	tasks, err := r.S.Tasks()
	if err != nil {
		return nil // the next command says what is wrong with it
	}
	var changed []string
	for i := range tasks {
		t := &tasks[i]
		status := session.TaskPending
		if own := slices.IndexFunc(r.tasks, func(o session.Task) bool { return o.ID == t.ID }); own >= 0 {
			status = r.tasks[own].Status
		}
		if t.Status == session.TaskDone && t.Status != status {
			t.Status, changed = status, append(changed, t.ID)
		}
	}
	if len(changed) == 0 {
		return nil
	}
	if err := r.S.SaveTasks(tasks); err != nil {
		return err
	}
	return r.Record.Append(&record.LogRepaired{
		What: "prd.json was changed during the run to call " + strings.Join(changed, ", ") + " done",
		Done: "put back",
	})
}

// finish writes the stop and what follows from it for the session.
func (r *run) finish(s Stop) error {
	stop := record.Stop{Reason: s.Reason, Detail: s.Detail, Tip: r.tip, Seconds: new(r.Now().Sub(r.started).Seconds())}
	stop.TaskID = s.Task
	if !s.Reset.IsZero() {
		stop.Reset = record.FormatTime(s.Reset)
	}
	return r.Stopped(statusAfter(s), stop)
}

// statusAfter is the session's status after a stop.
func statusAfter(s Stop) string {
	switch {
	case s.Reason == AllDone:
		return session.AllDone
	case s.Reason == Errored || s.TaskFailed():
		return session.Failed
	}
	return session.Running
}
