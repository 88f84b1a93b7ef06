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
	if t.Conversation.ID != "" && !t.Conversation.Resume && t.OnConversation != nil {
		if err := t.OnConversation(t.Conversation.ID); err != nil {
			return Outcome{}, err
		}
	}
	if ctx.Err() != nil {
		return Outcome{How: Interrupted, Conversation: t.Conversation.ID, Total: t.PriorTotal, Detail: "ended before it began"}, nil
	}
	return p.play(ctx, &t, cmd)
}

// refuse answers for the program where it would misunderstand the id.
func (p *Program) refuse(id string) (Outcome, bool) {
	switch {
	case !p.CanResume:
		return Outcome{How: NotFound, Detail: p.Name + " cannot resume a conversation"}, false
	case id == "" || (p.ValidID != nil && !p.ValidID.MatchString(id)):
		return Outcome{How: NotFound, Detail: fmt.Sprintf("%q is not an id of %s", id, p.Name)}, false
	}
	return Outcome{}, true
}

// play starts the program and follows it to its end.
func (p *Program) play(ctx context.Context, t *Turn, cmd *command) (Outcome, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s := &stream{program: p, turn: t, steps: map[string]Usage{}, began: time.Now()}
	var refused error
	known := t.Conversation.ID // what OnConversation has been told, or told us
	s.stop = func(how How, why string) { cancel(&ended{how, why}) }
	s.onID = func(id string) {
		if t.Conversation.Resume && p.KeepsID && id != t.Conversation.ID {
			s.stop(NotFound, "it began another conversation instead of resuming "+t.Conversation.ID)
			return
		}
		if id == known || t.OnConversation == nil {
			return
		}
		known = id
		if err := t.OnConversation(id); err != nil {
			refused = err
			s.stop(Failed, "the conversation could not be recorded")
		}
	}
	var last lingerer
	defer last.end()
	var mu sync.Mutex
	res, err := startChild(ctx, t, cmd, func(line []byte) {
		mu.Lock()
		defer mu.Unlock()
		p.read(s, line)
		if s.success || s.how != "" {
			last.begin(func() { cancel(&ended{"", "did not exit after its last event"}) })
		}
	}, func(line []byte) {
		mu.Lock()
		defer mu.Unlock()
		if p.watch != nil {
			p.watch(s, line)
		}
	})
	switch {
	case refused != nil:
		return Outcome{}, refused
	case err != nil:
		return Outcome{}, fmt.Errorf("%s could not be run: %w", p.Name, err)
	}
	if p.finish != nil {
		p.finish(s, &history{program: p, env: cmd.env, dir: realPath(cmd.dir), id: s.conversation})
	}
	var cause *ended
	errors.As(context.Cause(ctx), &cause)
	return p.judge(s, t, res, cause), nil
}

// lingerer calls back once, some time after it was first told to begin.
type lingerer struct {
	mu    sync.Mutex
	timer *time.Timer
}

func (l *lingerer) begin(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.timer == nil {
		l.timer = time.AfterFunc(linger, f)
	}
}

func (l *lingerer) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.timer != nil {
		l.timer.Stop()
	}
}

// result is how the process ended.
type result struct {
	exit     int
	signal   string
	timedOut bool
	canceled bool
	stderr   string // its first and last lines
}

// judge decides what the events, the exit and the standard error together mean.
func (p *Program) judge(s *stream, t *Turn, res result, cause *ended) Outcome {
	out := Outcome{Conversation: s.conversation, Text: s.text, Turns: s.turns, CostKnown: s.costKnown,
		Denied: s.denied, ExitCode: res.exit}
	if out.Conversation == "" {
		out.Conversation = t.Conversation.ID
	}
	out.Usage, out.Total = s.usage, t.PriorTotal.plus(s.usage)
	if s.totalKnown {
		out.Usage, out.Total = s.total.since(t.PriorTotal), s.total
	}
	if s.spent.Prompt > s.total.Prompt {
		out.Usage = s.spent.since(t.PriorTotal)
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
		return TimedOut, fmt.Sprintf("did not end within %s", t.Timeout)
	}
	if s.how != "" && s.how != Failed {
		return s.how, s.why
	}
	if how, text, ok := p.match(s, t, res); ok {
		return how, text
	}
	switch {
	case s.how == Failed:
		return Failed, s.why
	case res.signal != "" || res.exit == 130 || res.exit == 143:
		return Interrupted, "ended by a signal"
	case s.success:
		return Failed, fmt.Sprintf("said that it was done, then ended with exit status %d: %s", res.exit, lastLine(res.stderr))
	}
	return Failed, p.unfinished(s, res)
}

// unfinished says what is missing.
func (p *Program) unfinished(s *stream, res result) string {
	what := fmt.Sprintf("ended with exit status %d without %s", res.exit, p.Terminal)
	if n := len(s.errors); n > 0 {
		return what + ": " + s.errors[n-1]
	}
	if line := lastLine(res.stderr); line != "" {
		return what + ": " + line
	}
	return what
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
		for _, text := range texts {
			if rule.Text.MatchString(text) {
				return rule.How, text, true
			}
		}
	}
	return "", "", false
}

// oneLine keeps the first line of a text, shortened.
func oneLine(s string) string {
	s = strings.TrimSpace(s)
	if i := strings.IndexAny(s, "\r\n"); i >= 0 {
		s = s[:i]
	}
	return text.HeadBytes(s, 300)
}

func lastLine(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}
