package loop

import (
	"context"

	"github.com/git-tilth/git-tilth/internal/agent"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
)

// programJudge is an agent program as evaluator: a fresh conversation for each review, read-only.
type programJudge struct {
	a      *attempt
	judged *judged
	role   Role
	env    []string
	system string
	prompt string
	id     string
}

func newProgramJudge(ctx context.Context, a *attempt, j *judged, r Role, system, user string) (evaluatorConn, error) {
	ending, err := a.o.Prompts.Render("evaluator_agent", nil)
	if err != nil {
		return nil, err
	}
	return &programJudge{
		a: a, judged: j, role: r, env: a.programEnv(ctx, r.Program, j.dir), system: system + "\n" + ending,
		prompt: user,
	}, nil
}

func (j *programJudge) ask(ctx context.Context) (string, any, error) {
	for try := 1; ; try++ {
		ref := agent.Ref{ID: j.role.Program.NewID()}
		out, err := j.role.Program.Run(ctx, agent.Turn{
			Prompt: j.prompt, System: j.system, Dir: j.judged.dir, Model: j.role.Model, Conversation: ref,
			ReadOnly: true,
			MaxTurns: j.a.o.Limits.Turns, Timeout: j.a.o.Limits.Turn, Env: j.env,
			Box:    j.a.box.Reading(j.judged.dir, j.judged.wt.Path),
			GitDir: j.judged.gitDir, CommonDir: j.judged.gitDir, Private: j.a.S.Path(session.AgentDir),
			Emit: j.emit,
			OnConversation: func(id string) error {
				if id == j.id {
					return nil
				}
				j.id = id
				return j.a.emit(&record.AgentSession{
					Agent: j.role.Program.Name, Conversation: id, How: "fresh", Why: "a review",
					Role: record.RoleEvaluator,
				})
			},
		})
		if err != nil {
			return "", nil, err
		}
		if ctx.Err() != nil {
			return "", nil, ctx.Err()
		}
		call := out.Call()
		call.Attempt = try
		if err := j.a.caller(record.RoleEvaluator, j.role).recordCall(call, out.Usage); err != nil {
			return "", nil, err
		}
		switch {
		case out.How == agent.Refused:
			return "", nil, j.role.refused(out)
		case out.How == agent.Completed || out.How == agent.TurnLimit:
			return verdictIn(out.Text), clip(out.Text, promptCap), nil
		case out.How == agent.UsageLimit:
			if err := j.a.waitUntil(ctx, out.LimitReset, out.Detail); err != nil {
				return "", nil, err
			}
		case try >= programFailures:
			detail := j.role.Program.Name + " as evaluator: " + out.Detail
			return "", nil, Stop{Reason: ProviderFailure, Detail: detail}
		}
	}
}

// emit writes down that the program waits: an evaluator's tools are not on the record.
func (j *programJudge) emit(e record.Event) error {
	if _, waits := e.(*record.AgentWaits); waits {
		return j.a.emit(e)
	}
	return nil
}

func (j *programJudge) correct(text string) error {
	j.prompt += "\n\n" + text
	return nil
}

func (j *programJudge) close() error { return nil }
