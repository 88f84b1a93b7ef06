package loop

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/git-tilth/git-tilth/internal/agent"
	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/model"
	"github.com/git-tilth/git-tilth/internal/record"
)

// worker does a task with one answer per iteration: a model at an endpoint, or an agent program.
type worker struct {
	*agent.Worker
	a            *attempt
	wt           gitx.Worktree
	who          Role
	conversation conversation // for a program
	stopped      []string     // Outcome.Stopped of the last turn
	shut         []func() error
}

// openWorker starts the worker of an attempt with its prompts.
func (a *attempt) openWorker(ctx context.Context, wt gitx.Worktree, who Role) (w *worker, err error) {
	w = &worker{a: a, wt: wt, who: who}
	calls := a.caller(record.RoleWorker, who)
	if who.Program != nil {
		w.conversation = conversation{env: a.programEnv(ctx, who.Program, wt.Path)}
		calls.makeTurn, calls.afterTurn = w.makeTurn, w.turnEnded
		w.Worker = &agent.Worker{Ask: calls.ask}
	} else if w.Worker, err = w.builtin(ctx, calls); err != nil {
		return nil, err
	}
	if err := w.begin(ctx); err != nil {
		return nil, errors.Join(err, w.close())
	}
	return w, nil
}

// builtin returns a model with the tools of git-tilth.
func (w *worker) builtin(ctx context.Context, calls caller) (*agent.Worker, error) {
	a := w.a
	box, err := agent.OpenTools(w.wt.Path, agent.ToolOptions{Env: a.toolEnv(ctx, w.wt.Path),
		BashTimeout: a.run.o.Limits.Bash, Protected: a.protected(w.wt),
		Sandbox: a.at.workBox(ctx, w.wt), Before: a.askHook, Clean: a.run.Redact.String})
	if err != nil {
		return nil, err
	}
	w.shut = append(w.shut, box.Close)
	return &agent.Worker{
		Ask:      calls.ask,
		Tools:    box.Specs(submitCaseTool),
		Final:    "submit_case",
		Box:      box,
		Allow:    a.run.mayUseTool,
		Emit:     a.emit,
		PostEdit: func(ctx context.Context, tool, path string) { a.at.runHook(ctx, a.emit, postEdit, tool, nil, path) },
	}, nil
}

// begin starts with a new context, or continues an earlier conversation: a program's, or a model's last one if the
// user asked for that.
func (w *worker) begin(ctx context.Context) (err error) {
	a := w.a
	system, err := a.run.o.Prompts.Render("worker", nil)
	if err != nil {
		return err
	}
	var history []json.RawMessage
	goesOn := false
	if w.who.Program != nil {
		ending, err := a.run.o.Prompts.Render("agent_case", nil)
		if err != nil {
			return err
		}
		system += "\n" + ending
		w.conversation.choice = w.choose()
		goesOn = w.conversation.choice.Ref.Resume
	} else if history, err = w.earlier(); err != nil {
		return err
	} else {
		goesOn = len(history) > 0
	}
	user, err := a.firstPrompt(goesOn)
	if err != nil {
		return err
	}
	if err := a.recordPrompt(record.RoleWorker, system, user, a.context.channels); err != nil {
		return err
	}
	if w.who.Program == nil {
		of := record.Scope{TaskID: a.task.ID, TraceID: a.trace}
		add, shut, err := a.run.S.OpenTranscript(record.RoleWorker, of, a.run.Now(), a.run.Redact)
		if err != nil {
			return err
		}
		w.Transcript, w.shut = add, append(w.shut, shut)
	}
	if len(history) == 0 {
		return w.Start(system, user)
	}
	for _, m := range history {
		if err := w.Transcript(m); err != nil {
			return err
		}
	}
	return w.Continue(history, user)
}

// firstPrompt returns the first prompt: the task, or the reason to continue for a conversation that knows the task.
func (a *attempt) firstPrompt(goesOn bool) (string, error) {
	if !goesOn {
		return a.run.o.Prompts.Render("worker_task", a.context)
	}
	entries, _ := a.run.S.ReadLedger(a.task.ID, 1)
	return a.run.o.Prompts.Render("worker_resume", map[string]any{
		"Task": a.task, "Why": cmp.Or(a.run.o.From.LastStop, "the process ended"),
		"Ledger":  fenced("ledger", lastVerdict(entries)),
		"Refused": a.context.Refused, "Aside": a.context.Aside, "Conflict": a.context.Conflict,
	})
}

// earlier returns the conversation that the user asked to continue, or nil. If it cannot be used, the record has a
// note, and a new one has the important facts from the ledger.
func (w *worker) earlier() ([]json.RawMessage, error) {
	a := w.a
	if !a.run.o.Continue || a.full {
		return nil, nil
	}
	history, err := a.run.S.ReadTranscript(record.RoleWorker, a.task.ID)
	if err == nil && len(history) > 0 {
		err = agent.Continuable(history)
	}
	if err == nil {
		return history, nil
	}
	what := "the conversation about " + a.task.ID + " cannot be continued: " + err.Error()
	return nil, a.emit(&record.LogRepaired{What: what, Done: "a new one starts"})
}

// iterate runs one iteration. Its error ends the attempt.
func (w *worker) iterate(ctx context.Context) (turn, error) {
	said, err := w.Turn(ctx)
	if n, is := errors.AsType[nudged](err); is {
		return n.turn, nil
	}
	switch {
	case err != nil:
		return turn{}, err
	case w.who.Program != nil:
		t := caseOf(said.Text)
		t.stopped = w.stopped
		return t, nil
	case len(said.RawCalls) == 0:
		t := turn{nudge: nudgeSilent, idle: true}
		if _, has := w.a.run.callTools.Load(w.who.who()); !has {
			t.noTools = w.who.who()
		}
		return t, nil
	}
	w.a.run.callTools.Store(w.who.who(), true)
	return turn{caseArgs: said.Case, rawCalls: w.a.run.rawCalls(said.RawCalls), failing: said.Failing}, nil
}

// close saves the worker's state.
func (w *worker) close() (err error) {
	for _, shut := range w.shut {
		err = cmp.Or(err, shut())
	}
	return err
}

// noTools answers every tool call of a role without tools.
type noTools struct{}

func (noTools) Call(_ context.Context, name, _ string) agent.ToolAnswer {
	return agent.ToolAnswer{Output: fmt.Sprintf("There is no tool %q here.", name), IsError: true}
}

func (r *run) rawCalls(calls []model.ToolCall) []map[string]string {
	out := []map[string]string{}
	for _, c := range calls {
		out = append(out, map[string]string{"id": c.ID, "name": c.Name,
			"arguments": r.forRecord(c.Arguments, promptCap)})
	}
	return out
}
