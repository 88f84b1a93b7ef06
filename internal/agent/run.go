package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/git-tilth/git-tilth/internal/model"
	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/text"
)

const (
	// linger is the idle time after a result that ends a turn while the program is still running.
	linger = 20 * time.Second
	// grace is the time between SIGTERM and SIGKILL, in which a program can save its conversation.
	grace = 5 * time.Second
	// patience is the time without output after which the run reports that a program waits for its API.
	patience = 5 * time.Minute
	// outputKept limits the kept output and the kept standard error of a program, in bytes each.
	outputKept = 64 << 10
)

// ending is an end of a turn without the program's terminal event.
type ending struct {
	how       How // "" if git-tilth ends a program that does not exit by itself
	why, hint string
	misset    bool // a setting has a value that the ACP agent does not offer
}

func (e *ending) Error() string { return e.why }

// stoppable returns the context of a turn, which stop cancels.
func (s *stream) stoppable(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	s.stop = func(how How, why string) { cancel(&ending{how: how, why: why}) }
	return ctx, cancel
}

// Run plays one turn and returns its outcome. The error is non-nil only if the program could not start or its actions
// could not be recorded. Every failure of the program itself is an Outcome.
func (p *Program) Run(ctx context.Context, t Turn) (out Outcome, err error) {
	id, resume := t.Conversation.ID, t.Conversation.Resume
	switch {
	case !resume:
		t.PriorTotal = Usage{}
	case !p.CanResume:
		return Outcome{How: NotFound, Detail: p.Name + " cannot resume a conversation"}, nil
	case id == "" || !p.valid(id): // the program would misread it
		return Outcome{How: NotFound, Detail: fmt.Sprintf("%q is not an id of %s", id, p.Name)}, nil
	}
	if info, err := os.Stat(t.Dir); err != nil || !info.IsDir() {
		return Outcome{}, fmt.Errorf("%s: no such directory (the working directory of %s)", t.Dir, p.Name)
	}
	cmd, remove, err := p.build(&t)
	if err != nil {
		return Outcome{}, err
	}
	defer func() {
		if out.Unkept = remove(); err != nil && out.Unkept != nil {
			err = errors.Join(err, out.Unkept)
		}
	}()
	s := newStream(p, &t)
	// A resumed conversation is known to exist when the program has named it. The user's own shell commands need not
	// name it.
	if id != "" && p.acp == nil && (!resume || p.shellCommands) {
		if err := s.tell(id); err != nil {
			return Outcome{}, err
		}
	}
	if ctx.Err() != nil {
		return Outcome{How: Interrupted, Conversation: id, Total: t.PriorTotal, Detail: "it did not start"}, nil
	}
	if p.acp != nil {
		return s.playACP(ctx, cmd)
	}
	return s.play(ctx, cmd)
}

// play starts the program and follows it to its end. Some programs report only on standard error which conversation
// they began, or that they will wait for hours.
func (s *stream) play(ctx context.Context, cmd proc.Cmd) (Outcome, error) {
	p, t := s.program, s.turn
	ctx, cancel := s.stoppable(ctx)
	defer cancel(nil)
	s.onID = func(id string) {
		if t.Conversation.Resume && p.keepsID && id != t.Conversation.ID {
			s.stop(NotFound, "it began another conversation instead of resuming "+t.Conversation.ID)
		} else if s.tell(id) != nil {
			s.stop(Failed, "the conversation could not be recorded")
		}
	}
	s.lingered = func() { cancel(&ending{why: "did not exit after its last event"}) }
	cmd.Timeout, cmd.Grace, cmd.OutputCap = t.Timeout, grace, outputKept
	cmd.OnLine = func(line []byte) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.lastOutput, s.quiet, s.waits = time.Now(), false, ""
		p.read(s, t.Redact.Line(line))
		s.settle(s.quietTime(), s.lingered)
	}
	cmd.OnErrLine = func(line []byte) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if p.watch != nil {
			p.watch(s, t.Redact.Line(line))
		}
	}
	go s.watchSilence(ctx)
	res, err := proc.Run(ctx, cmd)
	res.Stderr = []byte(t.Redact.String(string(res.Stderr)))
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.ended(err); err != nil {
		return Outcome{}, err
	}
	if p.finish != nil {
		p.finish(s, &history{program: p, env: cmd.Env, dir: proc.RealPath(cmd.Dir), id: s.conversation})
	}
	var cause *ending
	errors.As(context.Cause(ctx), &cause)
	return s.outcome(res, cause), nil
}

// ended handles the end of the process. The error is the reason why the turn has no result.
func (s *stream) ended(err error) error {
	if s.last != nil {
		s.last.Stop()
	}
	s.quiet, s.waits = true, "" // a check of the silence may be running
	if s.refusal == nil && err != nil {
		return fmt.Errorf("%s could not be run: %w", s.program.Name, err)
	}
	return s.refusal
}

// watchSilence regularly checks how long the program has been silent.
func (s *stream) watchSilence(ctx context.Context) {
	limit := cmp.Or(s.turn.Patience, patience)
	ticker := time.NewTicker(max(limit/10, time.Millisecond))
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			s.mu.Lock()
			s.silence(time.Now(), limit)
			s.mu.Unlock()
		}
	}
}

// outcome combines the events, the exit status and the standard error.
func (s *stream) outcome(res proc.Outcome, cause *ending) Outcome {
	out := Outcome{Conversation: s.conversation, Text: s.text, Turns: s.turns, Denied: s.denied,
		Usage: s.usage, Total: plus(s.turn.PriorTotal, s.usage, 1), RetryAfter: s.retryAfter}
	if s.totalKnown {
		out.Usage, out.Total = addedSince(s.turn.PriorTotal, s.total), s.total
	}
	out.How, out.Detail = s.verdict(res, cause)
	out.Cut = s.reported && out.How != Completed && (res.TimedOut || res.Canceled)
	if out.How == UsageLimit {
		if out.LimitReset = s.reset; s.reset.IsZero() {
			out.LimitReset = model.ResetIn(out.Detail, proc.Now()).UTC()
		}
	}
	out.Detail = oneLine(out.Detail)
	switch {
	case out.How == Completed:
		out.Stopped = s.background
	case out.How == NotFound:
		out.Conversation = ""
	}
	if out.Conversation == "" && out.How != NotFound {
		out.Conversation = s.turn.Conversation.ID
	}
	return out
}

// verdict applies the rules in order of trust: an end by git-tilth, the program's terminal event, its error messages,
// and its exit status.
func (s *stream) verdict(res proc.Outcome, cause *ending) (How, string) {
	// A program that reported success while git-tilth stopped it has succeeded.
	done := s.success && s.how == "" && (len(s.under) == 0 || !res.TimedOut && !res.Canceled)
	switch {
	case cause != nil && cause.how != "" && !(done && cause.how == TurnLimit):
		return cause.how, cause.why
	case done && (res.ExitCode == 0 || res.TimedOut || res.Canceled):
		return Completed, s.program.Terminal
	case res.Canceled && cause == nil:
		return Interrupted, "interrupted"
	case res.TimedOut:
		return TimedOut, "the turn took longer than " + s.turn.Timeout.String()
	case s.how != "" && s.how != Failed:
		return s.how, s.why
	}
	if how, said := s.match(res); how != "" {
		return how, said
	}
	switch {
	case s.how == Failed:
		return meaning(0, s.why), s.why
	case res.Signal != "" || res.ExitCode == 130 || res.ExitCode == 143:
		return Interrupted, "ended by a signal"
	case s.success, len(s.errors)+len(res.Stderr) == 0: // only a message, which does not tell the kind of failure
		return Failed, s.unfinished(res)
	}
	said := s.unfinished(res)
	return meaning(0, said), said
}

// unfinished returns the program's own words, its exit status and the missing event.
func (s *stream) unfinished(res proc.Outcome) string {
	missing := fmt.Sprintf("it exited with status %d without %s", res.ExitCode, s.program.Terminal)
	if s.success {
		missing = strings.Replace(missing, "without", "after", 1)
	}
	said := cmp.Or(lastLine(string(res.Stderr)), lastLine(string(s.partial)))
	if n := len(s.errors); n > 0 {
		said = s.errors[n-1]
	}
	if said == "" {
		return missing
	}
	return oneLine(said) + " (" + missing + ")"
}

// match returns the kind of failure in the error events and on standard error, or "".
func (s *stream) match(res proc.Outcome) (How, string) {
	texts := slices.Concat(s.errors, strings.Split(strings.TrimSpace(string(res.Stderr)), "\n"))
	own := len(texts)
	if res.ExitCode != 0 { // all output of a program without events is its message
		texts = append(texts, strings.Split(string(s.partial), "\n")...)
	}
	for _, rule := range s.program.rules {
		if rule.how == NotFound {
			if !s.turn.Conversation.Resume { // only a resume can fail because of an unknown conversation
				continue
			}
			texts = texts[:own]
		}
		if i := slices.IndexFunc(texts, rule.text().MatchString); i >= 0 {
			return rule.how, texts[i]
		}
	}
	return "", ""
}

// oneLine returns the first line of a text, shortened, with visible control characters.
func oneLine(s string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return text.HeadBytes(text.VisibleLine(strings.TrimSpace(first)), 300)
}

// lastLine returns the last line of a text that is not part of a stack trace.
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
