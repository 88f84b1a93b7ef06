package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/git-tilth/git-tilth/internal/agent"
)

func apiError(s *scene) error {
	out, err := s.run("x", agent.Ref{ID: s.program.NewID()}, nil, func(int, string) answer {
		return answer{status: 400, body: `{"type":"error","error":{"type":"invalid_request_error","message":"no such thing"}}`}
	})
	return want(out, err, agent.Failed)
}

func refused(s *scene) error {
	began := time.Now()
	for status, body := range map[int]string{
		401: `{"type":"error","error":{"type":"authentication_error","message":"invalid key","code":401}}`,
		403: `{"type":"error","error":{"type":"permission_error","message":"forbidden for you","code":403}}`,
	} {
		out, err := s.run("x", agent.Ref{ID: s.program.NewID()}, nil, func(int, string) answer {
			return answer{status: status, body: body}
		})
		if err := want(out, err, agent.Refused); err != nil {
			return fmt.Errorf("status %d: %w", status, err)
		}
	}
	if took := time.Since(began); took > 40*time.Second {
		return fmt.Errorf("it took %s", took)
	}
	return nil
}

// longWait makes the API ask for three and a half hours, which Codex would wait.
func longWait(s *scene) error {
	args := s.program.Args
	defer func() { s.program.Args = args }()
	if s.program.Name == "codex" {
		s.program.Args = []string{"-c", "model_providers.stub.stream_max_retries=5"}
	}
	out, err := s.run("x", agent.Ref{ID: s.program.NewID()}, nil, func(int, string) answer {
		return answer{status: 429, headers: map[string]string{"retry-after": "12600"},
			body: `{"type":"error","error":{"type":"rate_limit_error","message":"Rate limit reached","code":429,"status":"RESOURCE_EXHAUSTED",` +
				`"details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"12600s"}]}}`}
	})
	if err := want(out, err, agent.UsageLimit); err != nil {
		return err
	}
	if left := time.Until(out.LimitReset); s.program.Name == "codex" && (left < 3*time.Hour || left > 4*time.Hour) {
		return fmt.Errorf("reset at %s", out.LimitReset)
	}
	return nil
}

// price returns the tokens of one answer of the stub: prompt and answer.
func (s *scene) price() (int64, int64) {
	if s.program.Name == "claude" {
		return 110, 20 // cached tokens are not part of the input
	}
	return 100, 20
}

// tokens ends runs of one conversation while a tool runs, before the first answer, and not at all.
func tokens(s *scene) error {
	ref, total, given := agent.Ref{ID: s.program.NewID()}, agent.Usage{}, int64(0)
	var booked agent.Usage
	for _, moment := range []string{"while a tool runs", "before the first answer", "after the last answer",
		"before the first answer"} {
		ctx, cancel := context.WithCancel(s.ctx)
		s.stub.play(func(n int, _ string) answer {
			switch {
			case moment == "before the first answer":
				cancel()
				return answer{hang: true}
			case moment == "while a tool runs" && n == 1:
				time.AfterFunc(6*time.Second, cancel)
				return answer{shell: "tail -f /dev/null"}
			}
			return answer{text: "done"}
		})
		out, err := s.program.Run(ctx, agent.Turn{
			Prompt: "work", Dir: s.dir, Model: s.model, Conversation: ref, Timeout: 2 * time.Minute, Env: s.env,
			GitDir: s.git[0], CommonDir: s.git[1], PriorTotal: total, Box: s.box.With(s.dir).Reading(s.git[1]),
		})
		cancel()
		if err != nil {
			return err
		}
		given += s.stub.answered()
		booked.Prompt, booked.Eval = booked.Prompt+out.Usage.Prompt, booked.Eval+out.Usage.Eval
		prompt, eval := s.price()
		if booked.Prompt != given*prompt || booked.Eval != given*eval {
			return fmt.Errorf("%d answers were given, %+v was booked after a run that ended %s", given, booked, moment)
		}
		ref, total = agent.Ref{ID: out.Conversation, Resume: true}, out.Total
	}
	return nil
}

func usageLimit(s *scene) error {
	reset := time.Now().Add(3 * time.Hour).Truncate(time.Second)
	limit := setups[s.program.Name].limit
	// Claude Code reports the end of a subscription's limit, but not of an API key's.
	subscription := func(t *agent.Turn) {
		t.Env = append([]string{"CLAUDE_CODE_OAUTH_TOKEN=stub-token"},
			slices.DeleteFunc(slices.Clone(t.Env), func(kv string) bool {
				return strings.HasPrefix(kv, "ANTHROPIC_API_KEY=")
			})...)
	}
	out, err := s.run("x", agent.Ref{ID: s.program.NewID()}, subscription,
		func(int, string) answer { return limit(reset) })
	if err := want(out, err, agent.UsageLimit); err != nil {
		return err
	}
	if out.LimitReset.Before(reset.Add(-2*time.Minute)) || out.LimitReset.After(reset.Add(2*time.Minute)) {
		return fmt.Errorf("reset at %s, not %s", out.LimitReset, reset)
	}
	return nil
}
