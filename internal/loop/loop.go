// Package loop runs the tasks of a session, one after another. Each goes through worker, validators and evaluator to a
// commit, or to a work in progress commit.
//
// The outer loop (Run) picks tasks and checks the session's caps between them. The inner loop (attempt) takes one task
// through its iterations. Every decision is recorded before it takes effect, or as it does.
package loop

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/git-tilth/git-tilth/internal/config"
	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/lifecycle"
	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/sandbox"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
)

// Stop is the end of a run.
type Stop struct {
	Reason string
	Task   string // task of the reason, also for error
	Detail string
	// Objection is the last objection to a change that reached a cap, in one line.
	Objection string
	Hint      string           // the fix before a resume, or ""
	Reset     time.Time        // end of a usage limit; zero if unknown
	Flags     []string         // flags that the next command needs
	Away      bool             // the worker or reviewer does not answer
	Over      []config.Reached // caps reached; a resume with the same caps stops at once
	Problems  []Problem        // unfinished tasks (tasks_failed), or findings (preflight)
	failed    map[string]string
}

// Problem is a task that the run did not complete, or a finding of the preflight (no Task), with a suggested command.
type Problem struct{ Task, Why, Hint string }

// Error makes a Stop an error, so that functions can return it.
func (s Stop) Error() string { return strings.TrimSuffix(s.Reason+": "+s.Detail, ": ") }

// TaskFailed reports whether the reason is a failure of a task.
func (s Stop) TaskFailed() bool { return record.ReasonOf(s.Reason).Task }

// Failed reports whether a task failed while the run continued. A resume then has work to do.
func (s Stop) Failed() bool { return len(s.failed) > 0 }

// failsTask reports whether a stop of an attempt fails its task.
func (o Options) failsTask(s Stop) bool {
	return s.TaskFailed() || o.KeepGoing && (s.Reason == record.CommitRefused || s.Reason == record.ReviewerFailed)
}

// Options are the settings of a run.
type Options struct {
	Caps        config.Caps
	Worker      Role
	Evaluator   Role
	Prompts     *text.Prompts
	Attempts    int           // at one model call; 0 is no limit
	MaxOutage   time.Duration // longest time of failures in a row
	Validators  []string
	KeepEnv     []string     // variables that commands keep although they look like keys
	Sandbox     *sandbox.Box // rights of the worker's processes; nil is no sandbox
	MinFree     int64        // free bytes required on each disk; 0 is no limit
	AllowBinary []string     // patterns of files that may have code for a loader
	MaxFile     int64        // largest file to commit, in bytes; 0 is no limit
	Limits      Limits
	Wait        bool          // wait for a usage limit to reset, if the reset is known
	MaxWait     time.Duration // longest such wait
	Continue    bool          // builtin worker: continue its earlier conversation
	Fresh       bool          // agent program: start a new conversation
	KeepGoing   bool          // continue with the next task after a failure
	Lanes       int           // number of parallel tasks
	// Given are the command's flags as --name=value.
	Given []string
	// From is the session's state after its plan was executed.
	From        lifecycle.Outcome
	Awake       func(bool)                   // keeps the machine awake, or lets it sleep; may be nil
	Validating  func(task, validator string) // called before each validator runs; may be nil
	Lease       Lease                        // claim of a session with a remote, or nil
	NoPreflight bool
	Checked     *Checked // preflight that passed before the session existed, or nil
	// KnownFailures lets a run continue if validators fail before any work. These failures are ignored until their
	// tests pass.
	KnownFailures bool
	// Ready checks agents and everything else outside the session before the first model call.
	Ready func(context.Context) ([]record.Check, error)
	// ValidatorConfig is the git config command of the file that sets tilth.validator.
	ValidatorConfig string
	RedFirst        string // tilth.redFirst
	RetryTests      int    // tilth.retryTests
}

// Lease is the session's claim on a remote. Its loss ends the run's context.
type Lease interface {
	Check(context.Context) // checks the claim before costly steps
	Progress(context.Context)
	Lost() bool
}

// Limits are the resource limits of a worker's children.
type Limits struct {
	Bash, Validator, Turn time.Duration
	Linger                time.Duration // idle time after an agent program's result that ends its turn
	Turns                 int
}

// run is one process's work on a session. All attempts share its state.
type run struct {
	*held.Handle
	o       Options
	started time.Time
	mu      sync.Mutex    // guards the fields below and the checkpoint, which lanes share
	turn    chan struct{} // held by the lane that commits
	limit   chan struct{} // held by the lane that waits for a usage limit
	// validating is read-locked while a lane's validators run, and locked to run validators alone.
	validating sync.RWMutex
	// testing is the number of lanes whose validators run. tested counts starts of validators.
	testing, tested atomic.Int64
	notAlone        sync.Once // prints the note that validators disturb each other
	tasks           []session.Task
	waited          time.Duration // for usage limits since the last answer; limited by tilth.maxWait
	waitEnded       time.Time     // end of the last such wait
	waiting         int           // lanes that wait for an endpoint or agent program
	idleSince       time.Time     // last change of waiting
	idle            time.Duration // total time with waiting lanes, until idleSince
	seed            *seedFacts
	steps           []record.Step // commits to repeat on a new base
	ahead           *Ahead        // a session that does not exist yet, or nil
	branch          branch
	uncounted       map[string]bool   // agents that report no usage
	outages         map[string]outage // current outages by name, or by role and name
	callTools       sync.Map          // agents that have called a tool, by name
	ending          *Stop             // the stop after which no turn starts; nil while the run continues
}

// branch has facts about the session's branch, where each attempt starts and ends.
type branch struct {
	judgedTo string // start of the range that the next attempt judges; "" is the attempt's start
	checked  bool   // the validators can run on the base
	linked   bool   // a file that affects the preflight is a link
}

func newRun(h *held.Handle, o Options) *run {
	var steps []record.Step
	if o.From.Record != nil {
		steps = o.From.Record.Steps
	}
	return &run{Handle: h, o: o, started: h.Now(), outages: map[string]outage{}, uncounted: map[string]bool{},
		steps:  steps,
		branch: branch{judgedTo: o.From.JudgedTo},
		turn:   make(chan struct{}, 1), limit: make(chan struct{}, 1)}
}

// Run works on the session until it stops, and records the stop. The error is non-nil only if the stop could not be
// written; every other failure is in Stop.
func Run(ctx context.Context, h *held.Handle, o Options) (Stop, error) {
	r := newRun(h, o)
	g := r.sessionWorkspace()
	defer func() { g.removeTemp() }()
	if o.Awake != nil {
		o.Awake(true)
		defer o.Awake(false)
	}
	stop := r.outer(ctx, g)
	if stop.Reason == record.Errored {
		stop = r.fullAfter(stop)
	}
	if stop.Reason == record.Interrupted && o.Lease != nil && o.Lease.Lost() {
		stop = Stop{Reason: record.ClaimLost, Task: stop.Task, Detail: "another machine works on the session"}
	}
	g.leave()
	if o.Lease != nil { // the lanes' work moves with the session
		if err := held.StashLanes(proc.IgnoreFirstSignal(ctx), h); err != nil && stop.Detail == "" {
			stop.Detail = err.Error()
		}
	}
	stop.Over = o.Caps.Reached(Usage(h.Checkpoint.TokensUsed, h.Checkpoint.Usage.Sum().Cost, 0))
	if err := r.finish(stop); err != nil {
		return stop, fmt.Errorf("the end of the run (%s) could not be recorded: %w", stop.Reason, err)
	}
	g.runLastHook(ctx, stop)
	return stop, nil
}

func (r *run) outer(ctx context.Context, g *workspace) Stop {
	// A killed run may have left private files of an evaluator program.
	err := os.RemoveAll(r.S.Path(session.AgentDir))
	opening := r.open(ctx, g)
	if err = cmp.Or(err, opening, r.holdLimits(), r.clearLayers()); err == nil {
		err = g.enclose()
	}
	if err != nil {
		return stopOf(ctx, err, "")
	}
	for {
		// An interrupt of the last task's hooks must not look like success. The next resume reports success.
		if ctx.Err() != nil {
			return Stop{Reason: record.Interrupted}
		}
		if r.sideBySide() {
			if stop := r.runLanes(ctx, g); stop != nil {
				return *stop
			}
			continue
		}
		i := r.next()
		if i < 0 || r.tasks[i].ID != r.o.From.Begun {
			step, err := r.nextStep(ctx)
			if err != nil {
				return stopOf(ctx, err, "")
			}
			if step >= 0 {
				i = step
			}
		}
		if i < 0 {
			return r.nothingLeft()
		}
		if held.HasLane(r.S, r.tasks[i].ID) { // unreviewed commits are below it and are reviewed with it
			if err := held.StashLanes(ctx, r.Handle); err != nil {
				return stopOf(ctx, err, r.tasks[i].ID)
			}
		}
		if err := r.mayAsk(); err != nil {
			return stopOf(ctx, err, "")
		}
		if f := r.o.From.Refused; f != nil && f.Again && f.Verdict.TaskID == r.tasks[i].ID && !r.o.KeepGoing {
			// A new attempt would forget the verdict.
			return stopOf(ctx, g.commitRefused(ctx, r.tasks[i], f.Verdict.Summary, f.Output), r.tasks[i].ID)
		}
		if err := r.preflight(ctx, g, i); err != nil {
			return stopOf(ctx, err, "")
		}
		err := r.task(ctx, g, i)
		if r.o.Lease != nil && ctx.Err() == nil {
			r.o.Lease.Progress(ctx)
		}
		if err != nil && (!r.o.KeepGoing || r.tasks[i].Status != session.TaskFailed) {
			return stopOf(ctx, err, r.tasks[i].ID)
		}
	}
}

// open reads the tasks and the seed, and opens the workspace.
func (r *run) open(ctx context.Context, g *workspace) error {
	wt, err := r.Worktree(ctx)
	if err != nil {
		return err
	}
	if err = cmp.Or(g.findHooks(ctx, wt), r.readSeed(ctx)); err == nil {
		r.tasks, err = r.S.Tasks()
	}
	return err
}

// stopOf turns a task's end into the run's stop.
func stopOf(ctx context.Context, err error, task string) Stop {
	var stop Stop
	switch {
	case errors.As(err, &stop):
		stop.Task = task
		return stop
	case ctx.Err() != nil:
		return Stop{Reason: record.Interrupted, Task: task}
	}
	return Stop{Reason: record.Errored, Task: task, Detail: err.Error()}
}

// next returns the index of the first pending task whose dependencies are finished, or -1. A started task comes first,
// then a task that waits for a review.
func (r *run) next() int {
	begun := func(t session.Task) bool { return t.ID == r.o.From.Begun && !hasEnded(t) }
	if i := slices.IndexFunc(r.tasks, begun); i >= 0 {
		return i
	}
	free := func(t session.Task) bool { return !hasEnded(t) && len(t.WaitsFor(r.tasks)) == 0 }
	awaits := func(t session.Task) bool { return free(t) && r.o.From.Record.AwaitsReview(t.ID) != nil }
	if i := slices.IndexFunc(r.tasks, awaits); i >= 0 {
		return i
	}
	return slices.IndexFunc(r.tasks, free)
}

func hasEnded(t session.Task) bool {
	return slices.Contains([]string{session.TaskDone, session.TaskFailed, session.TaskSkipped}, t.Status)
}

// nothingLeft returns the stop of a run that has no other task to start.
func (r *run) nothingLeft() Stop {
	s := Stop{Reason: record.AllDone, failed: map[string]string{}}
	state, err := r.S.State()
	var said []string
	for _, t := range r.tasks {
		why, hint := "", ""
		switch t.Status {
		case session.TaskFailed:
			why = "failed"
			if err == nil && state.Tasks[t.ID].Failure != nil { // the user may have set the status to failed
				was := state.Tasks[t.ID].Failure
				why, hint = why+": "+was.Why(), was.Hint
			}
			s.failed[t.ID] = strings.TrimSuffix(why, ".")
		case session.TaskDone, session.TaskSkipped:
			continue
		default:
			why = "is pending"
			if waits := t.WaitsFor(r.tasks); len(waits) > 0 {
				why = "waits for " + strings.Join(waits, ", ")
			}
		}
		s.Problems = append(s.Problems, Problem{t.ID, why, hint})
		said = append(said, t.ID+" "+strings.TrimSuffix(why, "."))
	}
	if len(s.Problems) > 0 {
		s.Reason, s.Detail = record.TasksFailed, strings.Join(said, "; ")
	}
	if len(s.Problems) > 0 && !s.Failed() { // a resume alone would stop the same way
		s.Hint = "git tilth plan " + r.S.ID
	}
	return s
}

// finish records the stop and updates the session's files.
func (r *run) finish(s Stop) error {
	flags, given := s.Flags, func(o config.Reached) bool {
		is := func(flag string) bool { return strings.HasPrefix(flag, "--"+o.Setting.Flag+"=") }
		return slices.ContainsFunc(r.o.Given, is)
	}
	if (len(flags) > 0 || slices.ContainsFunc(s.Over, given)) && !record.ReasonOf(s.Reason).Last &&
		(s.Hint == "" || text.IsCommand(s.Hint)) { // later commands do not know this run's flags
		s.Hint = strings.TrimPrefix(s.Hint+" && "+Resume(r.S.ID, s.Over, flags...), " && ")
	}
	stop := record.Stop{Reason: s.Reason, Detail: s.Detail, Hint: s.Hint, Failed: s.failed,
		Seconds: new(r.Now().Sub(r.started).Seconds())}
	stop.TaskID = s.Task
	if !s.Reset.IsZero() {
		stop.Reset = record.FormatTime(s.Reset)
	}
	return lifecycle.Stopped(r.Handle, record.ReasonOf(s.Reason).Status, stop)
}

// Save writes the checkpoint that lanes share. Unlike the end of a run it does not sync the directory, so after a
// power cut the checkpoint may be seconds old. The record has the totals and statuses, and agent programs do not sync
// their conversations either.
func (r *run) Save() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.S.SaveCheckpoint(r.Checkpoint)
}
