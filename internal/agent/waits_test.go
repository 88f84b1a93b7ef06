package agent

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/git-tilth/git-tilth/internal/model"
	"github.com/git-tilth/git-tilth/internal/record"
)

// A resumed conversation is recorded when the program names it, not at the end of its turn, so that a kill in between
// does not lose it.
func TestResumedConversationIsToldAtOnce(t *testing.T) {
	eachProgram(t, func(t *testing.T, p *Program) {
		f := newFake(t, fakeStep{}, fakeStep{"hang": true})
		one := f.run(p, f.turn("x", Ref{ID: p.NewID()}))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		turn := f.turn("go on", Ref{ID: one.Conversation, Resume: true})
		told := ""
		turn.OnConversation = func(id string) error {
			told = id
			cancel() // ends it; no other event would
			return nil
		}
		out, err := p.Run(ctx, turn)
		if err != nil || out.How != Interrupted || told != one.Conversation {
			t.Errorf("%+v %v, told %q", out, err, told)
		}
	})
}

func TestRefusedCredentials(t *testing.T) {
	eachProgram(t, func(t *testing.T, p *Program) {
		f := newFake(t, fakeStep{"end": "refused"})
		out := f.run(p, f.turn("x", Ref{ID: p.NewID()}))
		if out.How != Refused || out.Detail == "" || strings.Contains(out.Detail, "Reconnecting") || p.Login == "" {
			t.Errorf("%+v", out)
		}
	})
}

// A login does not help against a request that the API refuses for another reason than its key.
func TestLoginIsOfferedForRefusedKeysOnly(t *testing.T) {
	eachProgram(t, func(t *testing.T, p *Program) {
		for detail, offered := range map[string]bool{
			"API Error: 400 tools.3: invalid schema":  false,
			"unexpected status 404 Not Found":         false,
			"API Error: 401 invalid x-api-key":        true,
			"unexpected status 403 Forbidden: no key": true,
			"Invalid API key":                         true,
		} {
			fix := p.failure(Outcome{How: Refused, Detail: detail}).Hint()
			if strings.Contains(fix, p.Login) != offered || fix == "" {
				t.Errorf("%s: %s", detail, fix)
			}
		}
	})
}

// A program whose API asks for hours would wait for hours.
func TestLongWaitIsALimit(t *testing.T) {
	eachProgram(t, func(t *testing.T, p *Program) {
		f := newFake(t, fakeStep{"wait": 12600})
		turn := f.turn("x", Ref{ID: p.NewID()})
		out := f.run(p, turn)
		failure := p.failure(out)
		if failure == nil || failure.RetryAfter == nil || *failure.RetryAfter < 3*time.Hour {
			t.Fatalf("%+v", out)
		}
		_, again := (Calls{Program: p}).next(&streak{}, failure)
		if again || failure.Kind != model.UsageLimit || out.Detail == "" {
			t.Errorf("%+v", failure)
		}
		if left := time.Until(failure.LimitReset); left < 3*time.Hour || left > 4*time.Hour {
			t.Errorf("reset at %s", failure.LimitReset)
		}
	})
}

// Short pauses between two calls are normal, and so is a wait that has ended.
func TestShortWaitsAreNone(t *testing.T) {
	for name, c := range map[string]struct{ program, stdout, stderr, waits string }{
		"codex": {"codex", `{"type":"error","message":"Reconnecting... 1/5 (last status: 429 Too Many Requests)"}`,
			"WARN codex_core::responses_retry: retrying sampling request (1/5 in 1.9s)... x=1 sampling_error=last " +
				"status: 429",
			"last status: 429 Too Many Requests"},
		"claude": {"claude", `{"type":"system","subtype":"api_retry","retry_delay_ms":900,"error_status":529,"error":"overloaded"}`, "",
			"the API answers with status 529 (overloaded)"},
	} {
		p, _ := byName(c.program)
		s, stopped := feed(p, &Turn{}, c.stdout, c.stderr)
		if stopped != nil || s.waits != c.waits {
			t.Errorf("%s: stopped %v, waits %q", name, stopped, s.waits)
		}
	}
}

func TestSilenceIsTold(t *testing.T) {
	eachProgram(t, func(t *testing.T, p *Program) {
		f := newFake(t, fakeStep{"hang": true})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		turn := f.turn("x", Ref{ID: p.NewID()})
		turn.Patience = 10 * time.Millisecond
		var quiet []*record.AgentWaits
		turn.Emit = func(e record.Event) error {
			if a, ok := e.(*record.AgentWaits); ok {
				quiet = append(quiet, a)
				cancel()
			}
			return nil
		}
		if out, err := p.Run(ctx, turn); err != nil || out.How != Interrupted {
			t.Fatalf("%+v %v", out, err)
		}
		if len(quiet) == 0 || quiet[0].Detail == "" {
			t.Errorf("told %+v", quiet)
		}
	})
}

// A program's output is shown on terminals and in messages.
func TestDetailIsOneVisibleLine(t *testing.T) {
	eachProgram(t, func(t *testing.T, p *Program) {
		f := newFake(t, fakeStep{"stderr": "first\n\x1b]0;x\x07\x1b[2Jboom\n    at main (x.js)\n", "end": "none",
			"exit": 1})
		out := f.run(p, f.turn("x", Ref{ID: p.NewID()}))
		if out.How != Failed || strings.ContainsFunc(out.Detail, func(r rune) bool { return r < ' ' }) {
			t.Errorf("%q", out.Detail)
		}
		want := "boom (it exited with status 1 without " + p.Terminal + ")"
		if !strings.HasSuffix(out.Detail, want) || strings.Count(out.Detail, "without") != 1 {
			t.Errorf("%q, want ...%q", out.Detail, want)
		}
	})
}
