package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/git-tilth/git-tilth/internal/text"
)

const (
	// linger is how long a program may take to exit after its terminal event. Then the turn is over all the same.
	linger = 20 * time.Second
	// grace is the time between SIGTERM and SIGKILL: time for a program to write its conversation down.
	grace = 5 * time.Second
	// patience is how long a program may wait for its API by itself, and how long it may say nothing without being named.
	patience = 5 * time.Minute
)

// ended is the cause with which a program is ended from outside.
type ended struct {
	how How
	why string
}

func (e *ended) Error() string { return e.why }

// Run plays one turn and returns what became of it. The error is non-nil only if the program could not be
// started or OnConversation refused; everything that the program itself does wrong is an Outcome.
func (p *Program) Run(ctx context.Context, t Turn) (Outcome, error) {
	if t.Conversation.Resume {
		if out, ok := p.refuse(t.Conversation.ID); !ok {
			return out, nil
		}
	} else {
		t.PriorTotal = Usage{}
	}
	if info, err := os.Stat(t.Dir); err != nil || !info.IsDir() {
		return Outcome{}, fmt.Errorf("the directory %s for %s is not there", t.Dir, p.Name)
	}
	cmd, err := p.build(&t)
	if err != nil {
		return Outcome{}, err
	}
	defer cmd.remove()
	r := &running{turn: &t}
	// A conversation that is resumed is known to be there when the program has named it; the user's own shell
	// commands need not do that.
	if t.Conversation.ID != "" && (!t.Conversation.Resume || p.shellCommands) {
		if err := r.tell(t.Conversation.ID); err != nil {
			return Outcome{}, err
		}
	}
	if ctx.Err() != nil {
		return Outcome{
			How: Interrupted, Conversation: t.Conversation.ID, Total: t.PriorTotal, Detail: "ended before it began",
		}, nil
	}
	return p.play(ctx, r, cmd)
}

// refuse answers for the program where it would misunderstand the id.
func (p *Program) refuse(id string) (Outcome, bool) {
	switch {
	case !p.CanResume:
		return Outcome{How: NotFound, Detail: p.Name + " cannot resume a conversation"}, false
	case id == "" || !p.valid(id):
		return Outcome{How: NotFound, Detail: fmt.Sprintf("%q is not an id of %s", id, p.Name)}, false
	}
	return Outcome{}, true
}

// running is what a turn in progress has handed on.
type running struct {
	turn    *Turn
	told    string // the conversation that OnConversation was last called with
	refusal error  // its error
}

// tell hands the conversation's id on, once.
func (r *running) tell(id string) error {
	if id == r.told || r.turn.OnConversation == nil {
		return nil
	}
	r.told = id
	r.refusal = r.turn.OnConversation(id)
	return r.refusal
}

// play starts the program and follows it to its end.
func (p *Program) play(ctx context.Context, r *running, cmd *command) (Outcome, error) {
	t := r.turn
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s := &stream{program: p, turn: t, steps: map[string]Usage{}, counted: map[string]bool{}, heard: time.Now()}
	s.began = s.heard
	s.stop = func(how How, why string) { cancel(&ended{how, why}) }
	s.onID = func(id string) {
		if t.Conversation.Resume && p.KeepsID && id != t.Conversation.ID {
			s.stop(NotFound, "it began another conversation instead of resuming "+t.Conversation.ID)
		} else if r.tell(id) != nil {
			s.stop(Failed, "the conversation could not be recorded")
		}
	}
	var last *time.Timer
	var mu sync.Mutex
	quiet := watchSilence(s, &mu)
	res, err := startChild(ctx, t, cmd, func(line []byte) {
		mu.Lock()
		defer mu.Unlock()
		s.hear()
		p.read(s, line)
		if last == nil && (s.success || s.how != "") {
			last = time.AfterFunc(linger, func() { cancel(&ended{"", "did not exit after its last event"}) })
		}
	}, func(line []byte) {
		mu.Lock()
		defer mu.Unlock()
		if p.watch != nil {
			p.watch(s, line)
		}
	})
	close(quiet)
	if last != nil {
		last.Stop()
	}
	switch {
	case r.refusal != nil:
		return Outcome{}, r.refusal
	case err != nil:
		return Outcome{}, fmt.Errorf("%s could not be run: %w", p.Name, err)
	}
	mu.Lock()
	defer mu.Unlock()
	s.quiet, s.waits = true, "" // a look at the silence may be under way
	if p.finish != nil {
		p.finish(s, &history{program: p, env: cmd.env, dir: realPath(cmd.dir), id: s.conversation})
	}
	var cause *ended
	errors.As(context.Cause(ctx), &cause)
	return p.outcome(s, t, res, cause), nil
}

// watchSilence looks from time to time how long the program has said nothing, until the channel is closed.
func watchSilence(s *stream, mu *sync.Mutex) chan struct{} {
	limit := s.turn.Patience
	if limit == 0 {
		limit = patience
	}
	over := make(chan struct{})
	ticker := time.NewTicker(max(limit/10, time.Millisecond))
	go func() {
		defer ticker.Stop()
		for {
			select {
			case <-over:
				return
			case <-ticker.C:
				mu.Lock()
				s.silence(time.Now(), limit)
				mu.Unlock()
			}
		}
	}()
	return over
}

// result is how the process ended.
type result struct {
	exit     int
	signal   string
	timedOut bool
	canceled bool
	stderr   string // its first and last lines
}

// outcome is what the events, the exit and the standard error together mean.
func (p *Program) outcome(s *stream, t *Turn, res result, cause *ended) Outcome {
	out := Outcome{Conversation: s.conversation, Text: s.text, Turns: s.turns, Denied: s.denied}
	if out.Conversation == "" {
		out.Conversation = t.Conversation.ID
	}
	out.Usage, out.Total = s.usage, plus(t.PriorTotal, s.usage, 1)
	if s.totalKnown {
		out.Usage, out.Total = addedSince(t.PriorTotal, s.total), s.total
	}
	out.How, out.Detail = p.verdict(s, t, res, cause)
	if out.How == UsageLimit {
		out.LimitReset = s.reset
	}
	if out.How == NotFound {
		out.Conversation = ""
	}
	out.Detail = oneLine(out.Detail)
	return out
}

// verdict applies the rules in the order of what can be trusted: our own doing, the program's terminal event, its
// words for failures, and its exit last.
func (p *Program) verdict(s *stream, t *Turn, res result, cause *ended) (How, string) {
	// A program that was done while it was being told to stop was done.
	done := s.success && s.how == ""
	if cause != nil && cause.how != "" && !(done && cause.how == TurnLimit) {
		return cause.how, cause.why
	}
	if done && (res.exit == 0 || res.timedOut || res.canceled) {
		return Completed, p.Terminal
	}
	switch {
	case res.canceled && cause == nil:
		return Interrupted, "interrupted"
	case res.timedOut:
		return TimedOut, "the turn took longer than " + t.Timeout.String()
	}
	if s.how != "" && s.how != Failed {
		return s.how, s.why
	}
	if how, said, ok := p.match(s, t, res); ok {
		return how, said
	}
	switch {
	case s.how == Failed:
		return Failed, s.why
	case res.signal != "" || res.exit == 130 || res.exit == 143:
		return Interrupted, "ended by a signal"
	case s.success:
		return Failed, fmt.Sprintf("it said that it was done and then ended with exit status %d", res.exit)
	}
	return Failed, p.unfinished(s, res)
}

// unfinished is the program's own words, and the event that is missing.
func (p *Program) unfinished(s *stream, res result) string {
	missing := fmt.Sprintf("it ended with exit status %d and without %s", res.exit, p.Terminal)
	said := lastLine(res.stderr)
	if n := len(s.errors); n > 0 {
		said = s.errors[n-1]
	}
	if said == "" {
		return missing
	}
	return oneLine(said) + " (" + missing + ")"
}

// match looks for the row's ways to fail in the error events and on standard error.
func (p *Program) match(s *stream, t *Turn, res result) (How, string, bool) {
	texts := append(append([]string{}, s.errors...), strings.Split(res.stderr, "\n")...)
	for _, rule := range p.Rules {
		if rule.Exit != 0 && rule.Exit != res.exit {
			continue
		}
		// Only who asked for a conversation can be told that there is none.
		if rule.How == NotFound && !t.Conversation.Resume {
			continue
		}
		if rule.Text == nil {
			return rule.How, p.unfinished(s, res), true
		}
		for _, said := range texts {
			if rule.Text.MatchString(said) {
				return rule.How, said, true
			}
		}
	}
	return "", "", false
}

// oneLine is the first line of a text, shortened, with its control characters made visible.
func oneLine(s string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return text.HeadBytes(text.VisibleLine(strings.TrimSpace(first)), 300)
}

// lastLine is the last line of a text that is not a part of a stack trace.
func lastLine(s string) string {
	last := ""
	for line := range strings.Lines(s) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "at ") {
			last = line
		}
	}
	return last
}
