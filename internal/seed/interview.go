package seed

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/git-tilth/git-tilth/internal/model"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/tool"
)

// What an interview may take.
const (
	DefaultIterations = 60
	maxTextTurns      = 3 // turns in a row without a tool call, then it ends
	closingTurns      = 5 // so many turns before the end the model is told to come to one
)

// Ends of an interview without a seed. None of them has written anything.
var (
	// ErrAborted: the person ended it (Ctrl-C, Ctrl-D) or the context ended.
	ErrAborted = errors.New("the interview was ended before there was a seed")
	// ErrIterations: the model used up its turns.
	ErrIterations = errors.New("the interview came to no seed")
	// ErrGaveUp: the model neither asked nor wrote, three turns in a row.
	ErrGaveUp = errors.New("the model stopped using its tools")
	// ErrAnswers: the answers from a pipe or file ran out.
	ErrAnswers = errors.New("the answers ran out")
)

// Chatter is the model, as internal/model's Client is one.
type Chatter interface {
	ChatRetry(ctx context.Context, r model.Request, retry model.Retry) (*model.Reply, int, error)
}

// Reader is the read-only tool box over the source tree.
type Reader interface {
	Specs() json.RawMessage
	Call(ctx context.Context, name, args string) tool.Result
}

// Sink is where a bundle goes. Propose judges it and, if it is sound, puts it in
// place: nil and nil mean that the seed is made. Violations go back to the
// model; an error ends the interview.
type Sink interface {
	Propose(ctx context.Context, b *Bundle) ([]Violation, error)
}

// Deps is everything that an interview touches.
type Deps struct {
	Brief string
	// Context is the project's own guidance (AGENTS.md and the like), or "".
	Context string
	// Source is the directory that the model reads: the user's tree, with what
	// is not committed.
	Source string
	// Files are some paths of the source tree for orientation, or nil.
	Files []string

	Model Chatter
	// ModelName goes into seed-meta.json.
	ModelName string
	Retry     model.Retry
	MaxTokens int // bound of one answer, 0 for the endpoint's own

	Tools    Reader
	Frontend Frontend
	Sink     Sink

	// Transcript takes every message of the conversation, verbatim, as it is sent or received.
	Transcript func(message json.RawMessage) error
	// Emit writes an event of the record.
	Emit func(record.Event) error
	// Spent is called after every model call with what the interview has taken so
	// far, before anything else happens; it may be nil.
	Spent func(u session.RoleUsage) error

	PromptDir     string // replaces built-in prompts, or ""
	MaxIterations int    // 0 means DefaultIterations
	Now           func() time.Time
}

// Interview lets the model read the source and ask, until it hands in a bundle
// that the sink takes. It returns that bundle, or why there is none: ErrAborted,
// ErrIterations, ErrGaveUp, ErrAnswers, a *model.Failure, or what Transcript,
// Emit, Spent or the sink returned. Several of these can be told with errors.Is and errors.As.
func Interview(ctx context.Context, d Deps) (*Bundle, error) {
	in, err := newInterview(d)
	if err != nil {
		return nil, err
	}
	if err := in.open(); err != nil {
		return nil, err
	}
	for in.iter = 1; in.iter <= in.MaxIterations; in.iter++ {
		if err := in.turn(ctx); err != nil {
			return nil, err
		}
		if in.accepted != nil {
			in.Frontend.Done(in.accepted)
			return in.accepted, nil
		}
	}
	return nil, fmt.Errorf("%w in %d turns of the model", ErrIterations, in.MaxIterations)
}

type interview struct {
	Deps
	prompts  *prompts
	started  time.Time
	tools    json.RawMessage
	history  []json.RawMessage
	usage    session.RoleUsage
	iter     int
	silent   int  // text-only turns in a row
	garbled  bool // the answer at hand held bytes that are no UTF-8
	accepted *Bundle
}

func newInterview(d Deps) (*interview, error) {
	p, err := loadPrompts(d.PromptDir)
	if err != nil {
		return nil, err
	}
	if d.MaxIterations <= 0 {
		d.MaxIterations = DefaultIterations
	}
	if d.Now == nil {
		d.Now = time.Now
	}
	if d.Spent == nil {
		d.Spent = func(session.RoleUsage) error { return nil }
	}
	in := &interview{Deps: d, prompts: p, started: d.Now()}
	in.tools, err = withInterviewTools(d.Tools.Specs())
	return in, err
}

// open puts the prompts at the start of the history.
func (in *interview) open() error {
	system, err := in.prompts.render("interview", nil)
	if err != nil {
		return err
	}
	specs := namedSpecs(in.Source, in.Brief)
	for _, s := range specs {
		in.Frontend.Say(Step, "read "+s.Path+", which the brief names")
	}
	user, err := in.prompts.render("interview_task", map[string]any{
		"Brief": in.Brief, "Context": in.Context, "Specs": specs, "Files": fileList(in.Files),
	})
	if err != nil {
		return err
	}
	if err := in.say("system", system); err != nil {
		return err
	}
	return in.say("user", user)
}

// say adds a message of ours to the history and the transcript.
func (in *interview) say(role, content string) error {
	return in.record(map[string]any{"role": role, "content": content})
}

func (in *interview) record(message any) error {
	raw, err := encode(message)
	if err != nil {
		return err
	}
	return in.keep(raw)
}

func (in *interview) keep(raw json.RawMessage) error {
	in.history = append(in.history, raw)
	return in.Transcript(raw)
}

// turn is one answer of the model and everything that it asked for.
func (in *interview) turn(ctx context.Context) error {
	reply, err := in.call(ctx)
	if err != nil {
		return err
	}
	// Decoding has replaced bytes that are no UTF-8 by then; sent back as they came they would be refused.
	in.garbled = !utf8.Valid(reply.Message)
	if err := in.keep(bytes.ToValidUTF8(reply.Message, []byte("\uFFFD"))); err != nil {
		return err
	}
	if text := printable(reply.Content); text != "" {
		in.Frontend.Say(Note, text)
	}
	if len(reply.ToolCalls) == 0 {
		return in.nudge()
	}
	in.silent = 0
	if err := in.answerAll(ctx, reply.ToolCalls); err != nil {
		return err
	}
	return in.closing()
}

// nudge answers a turn without a tool call; the third in a row ends the interview.
func (in *interview) nudge() error {
	in.silent++
	if in.silent >= maxTextTurns {
		return fmt.Errorf("%w: %d turns in a row were text only", ErrGaveUp, in.silent)
	}
	text, err := in.prompts.render("interview_nudge", nil)
	if err != nil {
		return err
	}
	return in.push("no_tool_call", in.silent, text)
}

// closing tells the model that its turns are nearly used up.
func (in *interview) closing() error {
	left := in.MaxIterations - in.iter
	if in.accepted != nil || left != closingTurns {
		return nil
	}
	text, err := in.prompts.render("interview_closing", map[string]any{"Left": left})
	if err != nil {
		return err
	}
	return in.push("turns_left", 1, text)
}

func (in *interview) push(kind string, streak int, text string) error {
	err := in.Emit(&record.Nudge{Scope: in.scope(), Kind: kind, Streak: streak, Content: text})
	if err != nil {
		return err
	}
	return in.say("user", text)
}
