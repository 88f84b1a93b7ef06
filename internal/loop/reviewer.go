package loop

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/agent"
	"github.com/git-tilth/git-tilth/internal/model"
	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/sandbox"
)

// reviewer is the evaluator of one review: a model, or a read-only agent program with a new conversation for each
// answer.
type reviewer struct {
	*agent.Worker
	a       *attempt
	j       *judged
	who     Role
	shut    func() error // closes a model's transcript, or removes a program's temporary files
	box     *sandbox.Box // for a program
	env     []string     // for a program
	word    string       // random word in this review's prompt; "" for a model, which answers by a tool call
	id      string       // id of the conversation
	stopped bool         // a refused permission ended the turn
}

func (a *attempt) openReviewer(ctx context.Context, who Role, j *judged, system, user string) (*reviewer, error) {
	r := &reviewer{a: a, j: j, who: who, shut: func() error { return nil }}
	calls := a.caller(record.RoleEvaluator, who)
	r.Worker = &agent.Worker{Final: "submit_verdict", Box: noTools{}, Emit: func(record.Event) error { return nil }}
	if who.Program == nil {
		of := record.Scope{TaskID: a.task.ID, TraceID: a.trace, Iter: a.iter}
		add, shut, err := a.run.S.OpenTranscript(record.RoleEvaluator, of, a.run.Now(), a.run.Redact)
		if err != nil {
			return nil, err
		}
		r.Transcript, r.shut, r.Tools = add, shut, verdictTools
	} else {
		r.word = randomHex(8)
		ending, err := a.run.o.Prompts.Render("evaluator_agent", map[string]any{"Word": r.word})
		if err != nil {
			return nil, err
		}
		system += "\n" + ending
		temp, remove, err := proc.TempDir()
		if err != nil {
			return nil, err
		}
		r.shut = func() error { remove(); return nil }
		r.box = a.at.judgingBox(j.dir).In(temp).Reading(j.dir, j.wt.Path).At(a.run.Place(ctx, j.dir))
		r.env = a.programEnv(ctx, who.Program, j.dir)
		calls.makeTurn, calls.afterTurn = r.makeTurn, r.turnEnded
	}
	r.Ask = calls.ask
	return r, r.Start(system, user)
}

// makeTurn returns the next turn of a program, with all messages.
func (r *reviewer) makeTurn(_ context.Context, messages []json.RawMessage) (agent.Turn, error) {
	a := r.a
	t := a.turnOf(r.who, r.j.dir, r.env, messages)
	for _, m := range messages[1:] {
		if agent.IsUser(m) {
			t.Prompt += "\n\n" + agent.Content(m)
		}
	}
	if r.stopped {
		t.Prompt += agent.OnlyReading
	}
	t.Prompt = strings.TrimSpace(t.Prompt)
	t.Conversation, t.ReadOnly = agent.Ref{ID: r.who.Program.NewID()}, true
	t.Box = r.box
	t.GitDir, t.CommonDir, t.Private = r.j.gitDir, r.j.gitDir, a.at.private
	t.Emit = func(e record.Event) error { // an evaluator's tools are not recorded
		if _, waits := e.(*record.AgentWaits); waits {
			return a.emit(e)
		}
		return nil
	}
	t.OnConversation = func(id string) error {
		if id == r.id {
			return nil
		}
		r.id = id
		return a.emit(&record.AgentSession{Agent: r.who.Program.Name, Conversation: id, How: "fresh", Why: "a review",
			Role: record.RoleEvaluator})
	}
	return t, nil
}

// turnEnded asks again, once, if a refused permission ended a program's turn. Any other normal end is an answer.
func (r *reviewer) turnEnded(_ context.Context, out agent.Outcome) (again bool, err error) {
	again = out.How == agent.Unfinished && len(out.Denied) > 0 && !r.stopped
	r.stopped = r.stopped || again
	return again, r.a.noteTurn(r.who, out)
}

// verdict reads an answer. The error is a sentence for the evaluator.
func (r *reviewer) verdict(said agent.Said) (*Verdict, error) {
	args, err := said.Case, error(nil)
	switch {
	case args == "":
		// Some models write the verdict instead of calling the tool.
		if args, err = verdictOf(said.Text, r.word); err != nil && r.word == "" {
			err = errors.New("submit_verdict was not called")
		}
	case slices.ContainsFunc(said.RawCalls, func(c model.ToolCall) bool {
		return c.Name == r.Final && cmp.Or(c.Arguments, "{}") != args
	}):
		err = errors.New("submit_verdict was called twice, with different arguments: give one verdict")
	}
	if err != nil {
		return nil, err
	}
	return parseVerdict(args)
}

// correct returns the message to the evaluator about an invalid answer.
func (r *reviewer) correct(problem error) error {
	if r.word == "" {
		return r.Answer("The verdict could not be read: " + problem.Error() + ". Call submit_verdict again.")
	}
	return r.Answer(fmt.Sprintf("The last answer to this was not a readable verdict: %v. End with one JSON "+
		`object that has "review": %q, and nothing after it.`, problem, r.word))
}
