package loop

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/git-tilth/git-tilth/internal/agent"
	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/model"
	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/tool"
)

// Role is who works or judges: a model at an endpoint, or an agent program.
type Role struct {
	Model   string         // as it is recorded; may be empty for a program's own default
	Client  *model.Client  // of a model; nil where only a program is configured
	Program *agent.Program // nil for a model
	// MaxAnswer is the longest answer that is asked for, in tokens, where caps hold to the call; else 0.
	MaxAnswer int64
	Price     *model.Price // of the model, where a cap needs it
	// Others take turns with this one, in their order, where it cannot go on.
	Others []Role
}

// Name is the role's agent as the record and people know it.
func (r Role) Name() string {
	if r.Program != nil {
		return r.Program.Name
	}
	return "builtin"
}

// who names the model or program.
func (r Role) who() string {
	if r.Program != nil {
		return r.Program.Name
	}
	return cmp.Or(r.Model, r.Name())
}

// open makes the worker of an attempt.
func (r Role) open(ctx context.Context, a *attempt, wt gitx.Worktree) (worker, error) {
	if r.Program != nil {
		return &programWorker{a: a, wt: wt, role: r, env: a.programEnv(ctx, r.Program, wt.Path)}, nil
	}
	return newModelWorker(ctx, a, wt, r)
}

// judge makes the evaluator of one review.
func (r Role) judge(ctx context.Context, a *attempt, j *judged, system, user string) (evaluatorConn, error) {
	if r.Program != nil {
		return newProgramJudge(ctx, a, j, r, system, user)
	}
	return a.modelJudge(r, system, user)
}

// toolEnv is the environment of commands that run in a directory: no keys, a git that cannot leave the directory, and
// the mark by which git tilth knows that it is called from inside a run.
func (a *attempt) toolEnv(ctx context.Context, dir string) []string {
	return append(agent.ToolEnv(a.Git.Environ(ctx, dir), a.o.KeepEnv), a.S.Mark())
}

// programEnv is the same for an agent program, which keeps its own keys.
func (a *attempt) programEnv(ctx context.Context, p *agent.Program, dir string) []string {
	return append(p.Environ(a.Git.Environ(ctx, dir), a.o.KeepEnv), a.S.Mark())
}

// protected are the directories that no command of the worker may touch: this session's and those of all others,
// unless they are kept in a place that is for other things as well.
func (a *attempt) protected(wt gitx.Worktree) []string {
	root := filepath.Dir(a.S.Dir)
	for _, shared := range []string{os.TempDir(), wt.Common, a.Checkpoint.Source, proc.Getenv(a.Environ, "HOME")} {
		if rel, err := filepath.Rel(root, shared); shared != "" && err == nil && filepath.IsLocal(rel) {
			return []string{a.S.Dir}
		}
	}
	return []string{a.S.Dir, root}
}

// modelWorker is the builtin worker as the loop sees it.
type modelWorker struct {
	a    *attempt
	b    *agent.Builtin
	box  *tool.Box
	shut func() error // closes the transcript
	name string       // of the model, until it calls a tool
}

func newModelWorker(ctx context.Context, a *attempt, wt gitx.Worktree, r Role) (worker, error) {
	w := &modelWorker{a: a, name: r.who()}
	box, err := tool.Open(wt.Path, tool.Options{Env: a.toolEnv(ctx, wt.Path), BashTimeout: a.o.Limits.Bash,
		Protected: a.protected(wt), Sandbox: a.workBox(wt),
		Before: func(ctx context.Context, name, args string) (string, bool) {
			return a.askHook(ctx, name, args)
		}})
	if err != nil {
		return nil, err
	}
	w.box = box
	w.b = &agent.Builtin{
		Ask:      a.caller(record.RoleWorker, r).ask,
		Tools:    box.Specs(submitCaseTool),
		Final:    "submit_case",
		Box:      box,
		Allow:    a.mayGoOn,
		Emit:     a.emit,
		PostEdit: func(ctx context.Context, tool, path string) { a.runHook(ctx, a.emit, postEdit, tool, nil, path) },
	}
	return w, nil
}

// begin starts with a fresh context, or takes up the last conversation where the user asked for that.
func (w *modelWorker) begin(ctx context.Context) error {
	a := w.a
	history, err := w.earlier()
	if err != nil {
		return err
	}
	system, err := a.o.Prompts.Render("worker", nil)
	if err != nil {
		return err
	}
	name := "worker_task"
	var data any = a.context
	if len(history) > 0 {
		name, data = "worker_resume", a.resumeData("the run was stopped")
	}
	user, err := a.o.Prompts.Render(name, data)
	if err != nil {
		return err
	}
	if err := a.recordPrompt(record.RoleWorker, system, user, a.context.channels); err != nil {
		return err
	}
	of := record.Scope{TaskID: a.task.ID, TraceID: a.trace}
	if w.b.Transcript, w.shut, err = a.S.OpenTranscript(record.RoleWorker, of, a.Now(), a.Redact); err != nil {
		return err
	}
	if len(history) == 0 {
		return w.b.Start(system, user)
	}
	for _, m := range history {
		if err := w.b.Transcript(m); err != nil {
			return err
		}
	}
	return w.b.Continue(history, user)
}

// earlier is the conversation that the user asked to continue, nil for none. One that cannot be taken up is replaced
// by a fresh one, which the record says: the ledger has what matters.
func (w *modelWorker) earlier() ([]json.RawMessage, error) {
	a := w.a
	if !a.o.Continue {
		return nil, nil
	}
	history, err := a.S.ReadTranscript(record.RoleWorker, a.task.ID)
	if err == nil && len(history) > 0 {
		err = agent.Continuable(history)
	}
	if err == nil {
		return history, nil
	}
	what := "the conversation about " + a.task.ID + " cannot be continued: " + err.Error()
	return nil, a.emit(&record.LogRepaired{What: what, Done: "a fresh one is begun"})
}

// resumeData is what a conversation that knows its task is told.
func (a *attempt) resumeData(why string) map[string]any {
	entries, _ := a.S.ReadLedger(a.task.ID, 1)
	return map[string]any{"Task": a.task, "Why": why, "Ledger": fenced("ledger", lastVerdict(entries)),
		"Refused": a.context.Refused, "Aside": a.context.Aside}
}

func (w *modelWorker) iterate(ctx context.Context) (turn, error) {
	t, err := w.b.Turn(ctx)
	out := turn{caseArgs: t.Case, rawCalls: rawCalls(t.RawCalls), failing: t.Failing}
	if len(t.RawCalls) == 0 {
		out.nudge, out.idle, out.noTools = nudgeSilent, true, w.name
	} else {
		w.name = ""
	}
	return out, err
}

func (w *modelWorker) answer(text string) error { return w.b.Answer(text) }

func (w *modelWorker) close() error {
	if w.shut != nil {
		w.shut()
	}
	return w.box.Close()
}

// noTools answers every tool call of a role that has none.
type noTools struct{}

func (noTools) Call(_ context.Context, name, _ string) tool.Result {
	return tool.Result{Output: fmt.Sprintf("There is no tool %q here.", name), IsError: true}
}
