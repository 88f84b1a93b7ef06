package seed

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/git-tilth/git-tilth/internal/agent"
	"github.com/git-tilth/git-tilth/internal/model"
	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
)

//go:embed prompts
var builtinPrompts embed.FS

// LoadPrompts reads the interview's prompts, with replacements from dir ("" for none).
func LoadPrompts(dir string) (*text.Prompts, error) { return text.LoadPrompts(builtinPrompts, dir) }

// Limits of an interview.
const (
	maxIterations = 60
	maxTextTurns  = 3   // turns in a row without a tool call, then it ends
	maxFiles      = 200 // files of the source tree listed in the prompt
)

// Ends of an interview without a seed. None of them has written anything.
var (
	// ErrAborted means that the user (Ctrl-C, Ctrl-D) or the context ended the interview.
	ErrAborted = errors.New("the interview was ended before there was a seed")
	// ErrIterations: the model used up its turns.
	ErrIterations = errors.New("the interview ended without a seed")
	// ErrGaveUp: the model neither asked nor wrote, three turns in a row.
	ErrGaveUp = errors.New("the model stopped using its tools")
	// ErrAnswers: the answers from a pipe or file ran out.
	ErrAnswers = errors.New("the answers ran out")
)

// Deps is the environment of an interview.
type Deps struct {
	Brief   string
	Context string   // the project's own guidance (AGENTS.md and the like), or ""
	Source  string   // the directory that the model reads: the user's tree, with uncommitted changes
	Files   []string // some paths of the source tree for orientation, or nil

	Calls     agent.Calls    // makes the model's calls; the interview records them
	Program   *agent.Program // replaces the model, or nil
	Turn      agent.Turn     // common to all turns of Program
	ModelName string         // for seed-meta.json

	Tools    *agent.BuiltinTools // read the source tree
	Terminal *Terminal
	// Propose checks a bundle and installs a valid one: nil and nil mean that the seed exists. Violations go back to
	// the model; an error ends the interview.
	Propose func(ctx context.Context, b *Bundle) ([]Violation, error)

	// Transcript gets every message of the conversation, verbatim, when it is sent or received.
	Transcript func(message json.RawMessage) error
	Emit       func(record.Event) error // writes an event of the record
	// Spent is called after every model call with the interview's usage so far, before anything else happens.
	Spent func(u session.RoleUsage) error

	History []json.RawMessage // messages of an interrupted interview in interview.jsonl; Prior is its usage
	Prior   session.RoleUsage

	Prompts *text.Prompts
	Now     func() time.Time
}

// Interview lets the model read the source and ask, until it hands in a bundle that Propose accepts. It returns that
// bundle, or ErrAborted, ErrIterations, ErrGaveUp, ErrAnswers, a *RefusedError, a *model.Failure, or an error of
// Transcript, Emit, Spent or Propose. An error may match several of these with errors.Is and errors.As.
func Interview(ctx context.Context, d Deps) (*Bundle, error) {
	var own []json.RawMessage
	if err := json.Unmarshal(interviewTools, &own); err != nil {
		return nil, err
	}
	in := &interview{Deps: d, started: d.Now(), usage: d.Prior}
	if d.Program != nil {
		ending, err := d.Prompts.Render("interview_program", nil)
		if err != nil {
			return nil, err
		}
		in.ending = ending
		in.Calls.Program, in.Calls.MakeTurn, in.Calls.AfterTurn = d.Program, in.makeTurn, in.turnEnded
	}
	in.Calls.Record, in.Calls.Emit, in.Calls.Wait = in.recordCall, in.emit, in.wait
	in.worker = &agent.Worker{
		Ask: in.ask, Tools: d.Tools.Specs(own...), Box: in, Emit: in.emit, Transcript: d.Transcript,
	}
	defer d.Terminal.printf("") // removes the live line
	in.iter = 1
	if len(d.History) == 0 {
		if err := in.open(); err != nil {
			return nil, err
		}
	}
	for ; in.iter <= maxIterations; in.iter++ {
		if err := in.turn(ctx); err != nil {
			return nil, err
		}
		if in.accepted != nil {
			if !in.Terminal.approved { // otherwise it was just shown
				in.Terminal.summary(in.accepted)
			}
			return in.accepted, nil
		}
	}
	return nil, fmt.Errorf("%w in %d turns of the model", ErrIterations, maxIterations)
}

// interview is a worker with two special tools and a user to talk to.
type interview struct {
	Deps
	worker   *agent.Worker
	ending   string // end of a program's system prompt
	started  time.Time
	usage    session.RoleUsage
	iter     int
	silent   int  // text-only turns in a row
	asked    bool // a question was asked or a seed was checked in this turn
	accepted *Bundle
	draft    string // the seed that was handed in last
	refusal  string // the rules that it broke, and how often in a row they were the same
	refusals int
}

// sameRefusals is the number of times in a row that a seed may break the same rules.
const sameRefusals = 3

// RefusedError ends an interview whose seed was refused three times for the same reason. Draft is the last seed.
type RefusedError struct{ Rule, Draft string }

func (e *RefusedError) Error() string {
	return fmt.Sprintf("the seed was refused %d times in a row for the same reason: %s", sameRefusals, e.Rule)
}

// open puts the prompts at the start of the history.
func (in *interview) open() error {
	system, err := in.Prompts.Render("interview", nil)
	if err != nil {
		return err
	}
	files := strings.Join(in.Files[:min(len(in.Files), maxFiles)], "\n")
	user, err := in.Prompts.Render("interview_task", map[string]any{
		"Brief": in.Brief, "Context": in.Context, "Files": files,
	})
	if err != nil {
		return err
	}
	err = in.emit(&record.MemoryLoad{
		Role: record.RoleInterview, UserPromptChars: utf8.RuneCountInString(user), Channels: map[string]record.Channel{
			"brief": record.NewChannel(in.Brief, math.MaxInt), "project": record.NewChannel(in.Context, math.MaxInt),
			"files": record.NewChannel(files, math.MaxInt),
		}})
	if err != nil {
		return err
	}
	if err := in.emit(record.NewPrompt(record.RoleInterview, system+in.ending, user)); err != nil {
		return err
	}
	return in.worker.Start(system, user)
}

// turn handles one answer of the model with its tool calls, or first the unanswered question of an interrupted
// interview. The third turn in a row without a tool call ends the interview.
func (in *interview) turn(ctx context.Context) (err error) {
	in.asked = false
	var turn agent.Said
	if history := in.History; len(history) > 0 {
		in.History = nil
		err = in.worker.Reopen(ctx, history)
	} else {
		turn, err = in.worker.Turn(ctx)
	}
	switch in.silent++; {
	case ctx.Err() != nil && !errors.Is(err, ErrAborted):
		return aborted(ctx)
	case err != nil:
		return err
	case len(turn.RawCalls) == 0 && in.silent >= maxTextTurns:
		return fmt.Errorf("%w: %d turns in a row were text only", ErrGaveUp, in.silent)
	case len(turn.RawCalls) == 0:
		return in.nudge()
	}
	in.silent = 0
	return nil
}

// nudge tells a model without a tool call to use its tools.
func (in *interview) nudge() error {
	said, err := in.Prompts.Render("interview_nudge", nil)
	if err != nil {
		return err
	}
	if err := in.emit(&record.Nudge{Kind: "no_tool_call", Streak: in.silent, Content: said}); err != nil {
		return err
	}
	return in.worker.Say(said)
}

// ask makes one model call. It replaces invalid UTF-8, because the endpoint would refuse it in the next request.
func (in *interview) ask(ctx context.Context, r model.Request) (*model.Reply, error) {
	in.Terminal.wait()
	got, err := in.Calls.Make(ctx, r)
	if err != nil {
		return nil, err
	}
	if in.Program != nil {
		asCall(got, len(r.Messages))
	}
	got.Message = bytes.ToValidUTF8(got.Message, []byte("\uFFFD"))
	in.Terminal.say(got.Content)
	return got, nil
}

// wait prints a note and waits before the next request to the model or agent program.
func (in *interview) wait(ctx context.Context, f *model.Failure, p agent.Pause) error {
	w := record.AgentWaits{Who: in.ModelName, Reason: record.Outage, Detail: f.Message, Attempt: p.Attempt,
		Until: record.FormatTime(proc.Now().Add(p.Wait))}
	if in.Program != nil {
		w.Who = in.Program.Name
	}
	in.Terminal.warn(fmt.Sprintf("%s gave no answer (%s), asking again in %s", w.Who, f.Kind,
		p.Wait.Round(time.Second)))
	if err := in.emit(&w); err != nil {
		return err
	}
	return proc.Sleep(ctx, p.Wait)
}

// recordCall counts and records an attempt. A failed attempt may cost too.
func (in *interview) recordCall(call *record.ModelCall, u model.Usage) error {
	in.usage.Add(agent.RoleUsage(u, 1))
	call.TokensUsedTotal = in.usage.Total()
	if err := in.emit(call); err != nil || call.Health != model.HealthOK && u == (model.Usage{}) {
		return err
	}
	in.Terminal.usage(in.usage.Total(), in.usage.Cost)
	return in.Spent(in.usage)
}

// emit writes an event of the interview, which belongs to no task. The transcript has the full text of calls that are
// too large for an event, such as a seed.
func (in *interview) emit(e record.Event) error {
	scope := e.Common()
	scope.Phase, scope.Iter = record.RoleInterview, in.iter
	if call, ok := e.(*record.ToolCall); ok && len(call.Args) > record.MaxText {
		call.Args = record.JSON(text.Clip(in.Turn.Redact.String(string(call.Args)), record.MaxText))
	}
	return in.Emit(e)
}

// aborted is ErrAborted for a context that has ended.
func aborted(ctx context.Context) error { return fmt.Errorf("%w: %w", ErrAborted, ctx.Err()) }
