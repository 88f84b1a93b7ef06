package loop

import (
	"context"
	"fmt"

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
	word   string // drawn for this review: only its prompt has it
}

func newProgramJudge(ctx context.Context, a *attempt, j *judged, r Role, system, user string) (evaluatorConn, error) {
	word := randomHex(8)
	ending, err := a.o.Prompts.Render("evaluator_agent", map[string]any{"Word": word})
	if err != nil {
		return nil, err
	}
	return &programJudge{
		a: a, judged: j, role: r, env: a.programEnv(ctx, r.Program, j.dir), system: system + "\n" + ending,
		prompt: user, word: word,
	}, nil
}

func (j *programJudge) ask(ctx context.Context) (said answer, err error) {
	stopped := false // a refusal ended its turn
	for try := 1; ; try++ {
		if err := j.a.mayGoOn(); err != nil {
			return said, err
		}
		ref := agent.Ref{ID: j.role.Program.NewID()}
		out, err := j.role.Program.Run(ctx, agent.Turn{
			Prompt: j.prompt, System: j.system, Dir: j.judged.dir, Model: j.role.Model, Conversation: ref,
			ReadOnly: true,
			MaxTurns: j.a.o.Limits.Turns, Timeout: j.a.turnTime(),
			Linger: j.a.o.Limits.Linger, Env: j.env,
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
			return said, err
		}
		if ctx.Err() != nil {
			return said, ctx.Err()
		}
		call := out.Call()
		call.Attempt = try
		if err := j.a.caller(record.RoleEvaluator, j.role).recordCall(call, out.Usage); err != nil {
			return said, err
		}
		j.a.noteUncounted(j.role, out)
		switch {
		case out.How == agent.Unfinished && len(out.Denied) > 0 && !stopped:
			stopped = true
			j.prompt += agent.OnlyReading
		case out.How == agent.Refused:
			return said, unable{j.a.refused(j.role, out)}
		case out.How == agent.Completed || out.How == agent.TurnLimit:
			said.raw = clip(out.Text, promptCap)
			said.args, said.problem = verdictOf(out.Text, j.word)
			return said, nil
		case out.How == agent.UsageLimit:
			return said, unable{Stop{Reason: UsageLimit, Detail: j.role.Program.Name + ": " + out.Detail,
				Reset: out.LimitReset}}
		case try >= programFailures:
			return said, unable{j.a.programFails(j.role, j.role.Program.Name+" as evaluator", out)}
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

func (j *programJudge) correct(problem error) error {
	j.prompt += fmt.Sprintf("\n\nThis was asked before, and the verdict could not be read: %v. End with one JSON "+
		`object that has "review": %q, and nothing after it.`, problem, j.word)
	return nil
}

func (j *programJudge) close() error { return nil }
