package loop

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/git-tilth/git-tilth/internal/agent"
	"github.com/git-tilth/git-tilth/internal/config"
	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
)

// programFailures is how often in a row a program may end without its own word of success before the task fails. The
// programs retry their own endpoint for minutes, so this is few.
const programFailures = 3

// programWorker is an agent program as the loop sees it: one turn of the program is one iteration.
//
// The conversation's id is in checkpoint.json before the program is started where it takes a preset id, else at its
// first event, so that a process that dies at any moment leaves a conversation that can be found again.
type programWorker struct {
	a      *attempt
	wt     gitx.Worktree
	role   Role
	env    []string
	system string
	choice agent.Choice // the next turn's conversation
	prompt string       // for the next turn; "" takes the choice's own
	failed int          // turns in a row that failed
	stored string       // the conversation that this turn has stored
}

func (w *programWorker) begin(ctx context.Context) error {
	a := w.a
	worker, err := a.o.Prompts.Render("worker", nil)
	if err != nil {
		return err
	}
	ending, err := a.o.Prompts.Render("agent_case", nil)
	if err != nil {
		return err
	}
	w.system = worker + "\n" + ending
	w.choice = w.choose(ctx)
	prompt, err := w.promptFor(w.choice)
	if err != nil {
		return err
	}
	return a.recordPrompt(record.RoleWorker, w.system, prompt, a.context.channels)
}

// choose says where the conversation comes from. Discovery in the program's own store is for sessions that never stored
// an id; a task that begins in a session that does store them has none because it is new.
func (w *programWorker) choose(ctx context.Context) agent.Choice {
	a, stored := w.a, w.conversation()
	isNew := stored == nil && (a.o.From.Fresh || len(a.Checkpoint.Conversations) > 0)
	var others []string
	if stored != nil && stored.ID == "" { // else there is no other, or none is looked for
		for task := range a.Checkpoint.Conversations {
			if task != a.task.ID {
				others = append(others, a.Checkpoint.Conversation(task).ID)
			}
		}
	}
	choice := w.role.Program.Choose(ctx, agent.Search{
		Stored: stored, Dir: w.wt.Path, Model: w.role.Model, Env: w.env, Since: a.madeAt(),
		Except: others, Fresh: a.o.Fresh || isNew || stored != nil &&
			stored.Over, Continue: a.o.Continue,
	})
	if isNew && !a.o.Fresh {
		choice.Why = "a new task"
	}
	return choice
}

// conversation is what is stored of the task's conversation, nil for none.
func (w *programWorker) conversation() *session.Conversation {
	return w.a.Checkpoint.ConversationOf(w.a.task.ID, w.role.Program.Name)
}

func (r *run) madeAt() time.Time {
	if t, ok := session.IDTime(r.S.ID); ok {
		return t
	}
	return record.ParseTime(r.Checkpoint.StartedAt)
}

// promptFor is what a choice's conversation is told first.
func (w *programWorker) promptFor(c agent.Choice) (string, error) {
	if c.Ref.Resume {
		stop := cmp.Or(w.a.o.From.History.LastStop, "the process ended")
		return w.a.o.Prompts.Render("worker_resume", w.a.resumeData(stop))
	}
	return w.a.o.Prompts.Render("worker_task", w.a.context)
}

// iterate plays one turn, and another one in a fresh conversation where the program does not know the chosen one.
func (w *programWorker) iterate(ctx context.Context) (turn, error) {
	for {
		choice, prompt := w.choice, w.prompt
		if prompt == "" || !choice.Ref.Resume {
			first, err := w.promptFor(choice)
			if err != nil {
				return turn{}, err
			}
			prompt = strings.TrimSpace(first + "\n\n" + w.prompt)
		}
		out, err := w.play(ctx, choice, prompt)
		if err != nil {
			return turn{}, err
		}
		if ctx.Err() != nil {
			return turn{}, ctx.Err()
		}
		t, again, err := w.outcome(ctx, choice, out)
		if err != nil || !again {
			return t, err
		}
	}
}

// outcome says what a turn's end means: a turn for the loop, another try, or the end of the attempt.
func (w *programWorker) outcome(
	ctx context.Context, choice agent.Choice, out agent.Outcome,
) (t turn, again bool, err error) {
	p := w.role.Program
	switch out.How {
	case agent.Completed:
		w.failed = 0
		w.stay(ctx, out)
		return caseOf(out.Text), false, nil
	case agent.TurnLimit:
		w.stay(ctx, out)
		return t, false, Stop{Reason: IterCap, Detail: p.Name + " reached its turn limit: " + out.Detail}
	case agent.NotFound, agent.InUse:
		if choice.Ref.Resume {
			w.choice = p.Fresh("the conversation " + choice.Ref.ID + " is lost: " + out.Detail)
			return t, true, nil
		}
	case agent.UsageLimit:
		w.stay(ctx, out)
		return t, false, unable{Stop{Reason: UsageLimit, Detail: p.Name + ": " + out.Detail, Reset: out.LimitReset}}
	case agent.TimedOut:
		w.stay(ctx, out)
		if err := w.a.mayGoOn(); err != nil {
			return t, false, err
		}
		return turn{nudge: nudgeTime, idle: out.Turns == 0}, false, nil
	case agent.Unfinished:
		w.failed = 0
		w.stay(ctx, out)
		return turn{nudge: nudgeUnfinished, idle: true, why: out.Detail}, false, nil
	case agent.Refused:
		w.stay(ctx, out)
		return t, false, unable{w.a.refused(w.role, out)}
	}
	w.failed++
	if w.failed < programFailures {
		w.stay(ctx, out)
		return t, true, nil
	}
	return t, false, unable{w.a.programFails(w.role, p.Name, out)}
}

// programFails is the end of a task whose program fails again and again.
func (a *attempt) programFails(r Role, who string, out agent.Outcome) Stop {
	return Stop{Reason: ProviderFailure, Detail: who + ": " + out.Detail,
		Hint: r.Program.Misses(out.Detail, a.Environ, a.o.KeepEnv)}
}

// refused is the end of the run for what no other try mends. The task stays pending.
func (a *attempt) refused(r Role, out agent.Outcome) Stop {
	p := r.Program
	hint := "check the key of " + p.Name + " and the name of its model"
	missed := p.Misses(out.Detail, a.Environ, a.o.KeepEnv)
	switch {
	case missed != "":
		hint = missed
	case out.Hint != "":
		hint = out.Hint
	case p.Login != "":
		hint = fmt.Sprintf("log in (%s), or check %s's key and the name of its model", p.Login, p.Name)
	}
	return Stop{Reason: Errored, Detail: p.Name + ": " + out.Detail, Hint: hint}
}

// stay makes the conversation that was just used the one of the next turn.
func (w *programWorker) stay(ctx context.Context, out agent.Outcome) {
	id := out.Conversation
	if c := w.conversation(); id == "" && c != nil {
		id = c.ID
	}
	// A program that ended in good order has its conversation; asking its store may mean starting it again.
	ended := out.How == agent.Completed || out.How == agent.TurnLimit || out.How == agent.Unfinished
	p := w.role.Program
	gone := id == "" || !p.CanResume || out.ResumeBy == agent.ResumeByNone
	if !gone && !ended {
		gone, _ = p.Stored(ctx, w.env, w.wt.Path, id)
	}
	if gone {
		w.choice = p.Fresh(p.Name + " has no conversation to go on with")
		return
	}
	w.choice = agent.Choice{Ref: agent.Ref{ID: id, Resume: true}, How: "continued", Why: "the same attempt"}
}

// caseOf reads a program's final message: a case as JSON, else its text as the summary.
func caseOf(message string) turn {
	message = strings.TrimSpace(message)
	if message == "" {
		return turn{nudge: nudgeMessage, idle: true}
	}
	if args := caseIn(message); args != "" {
		return turn{caseArgs: args, rawCalls: clip(message, promptCap)}
	}
	return turn{caseText: clip(message, promptCap), rawCalls: clip(message, promptCap)}
}

// play runs one turn of the program and writes down what it was.
func (w *programWorker) play(ctx context.Context, choice agent.Choice, prompt string) (agent.Outcome, error) {
	a := w.a
	if err := a.mayGoOn(); err != nil {
		return agent.Outcome{}, err
	}
	w.stored = ""
	started := a.Now()
	out, err := w.role.Program.Run(ctx, agent.Turn{
		Prompt: prompt, System: w.system, Dir: w.wt.Path, Model: w.role.Model, Conversation: choice.Ref,
		MaxTurns: a.o.Limits.Turns, Timeout: a.turnTime(), Linger: a.o.Limits.Linger,
		Env: w.env, GitDir: w.wt.AdminDir, CommonDir: w.wt.Common,
		Box: a.workBox(w.wt), PriorTotal: w.priorTotal(choice), Emit: a.emit,
		OnConversation: func(id string) error { return w.store(id, choice) },
	})
	if err == nil && out.Conversation != "" {
		err = w.store(out.Conversation, choice)
	}
	if err != nil {
		return out, err
	}
	if err := a.caller(record.RoleWorker, w.role).recordCall(out.Call(), out.Usage); err != nil {
		return out, err
	}
	a.noteUncounted(w.role, out)
	if err := w.book(started, out); err != nil {
		return out, err
	}
	return out, a.Save()
}

// store keeps the id of the task's conversation, before the program works with it.
func (w *programWorker) store(id string, choice agent.Choice) error {
	if id == w.stored {
		return nil
	}
	a, c, now := w.a, w.conversation(), record.FormatTime(w.a.Now())
	if c == nil || c.ID != id || c.Over || c.Agent != w.role.Program.Name {
		lost := c
		c = &session.Conversation{Agent: w.role.Program.Name, ID: id, Cwd: w.wt.Path, Model: w.role.Model, Created: now}
		if lost != nil && (lost.Agent == c.Agent || len(a.o.Worker.Others) == 0) {
			c.Attempts = lost.Attempts // the task's history goes on
		}
	}
	c.LastUsed = now
	if err := a.Checkpoint.SetConversation(a.task.ID, c); err != nil {
		return err
	}
	if err := a.Save(); err != nil {
		return err
	}
	w.stored = id
	if choice.How == "continued" && id == choice.Ref.ID {
		return nil
	}
	return a.emit(&record.AgentSession{Agent: c.Agent, Conversation: id, How: choice.How, Why: choice.Why})
}

// priorTotal is what a conversation had used by its last turn, for programs that report running totals.
func (w *programWorker) priorTotal(choice agent.Choice) agent.Usage {
	c := w.conversation()
	if c == nil || !choice.Ref.Resume || c.ID != choice.Ref.ID || c.Total == nil {
		return agent.Usage{}
	}
	return agent.Usage{
		Prompt: c.Total.PromptTokens, Eval: c.Total.EvalTokens, Cached: c.Total.CachedTokens,
		Reasoning: c.Total.ReasoningTokens, Cost: c.Total.Cost,
	}
}

// book adds the attempt to the conversation's history.
func (w *programWorker) book(started time.Time, out agent.Outcome) error {
	c := w.conversation()
	if c == nil {
		return nil
	}
	c.LastUsed = record.FormatTime(w.a.Now())
	c.Total = new(roleUsage(out.Total))
	c.ResumeBy, c.Uncounted = cmp.Or(out.ResumeBy, c.ResumeBy), c.Uncounted || out.Uncounted
	c.Attempts = append(c.Attempts, session.Attempt{
		Started: record.FormatTime(started), Ended: c.LastUsed, How: string(out.How), Turns: out.Turns,
		Tokens: out.Usage.Counted(), Cost: out.Usage.Cost, TotalTokens: out.Total.Counted(),
	})
	return w.a.Checkpoint.SetConversation(w.a.task.ID, c)
}

// noteUncounted says, once, that a cap cannot hold for an agent that does not say what its turns take, or cost.
func (a *attempt) noteUncounted(r Role, out agent.Outcome) {
	caps := a.o.Caps
	said := ""
	switch {
	case a.uncounted[r.Name()]:
	case out.Uncounted && (caps[config.MaxTokens] > 0 || caps[config.MaxCost] > 0):
		said = " does not say what its turns take: no cap of tokens or dollars can hold it"
	case caps[config.MaxCost] > 0 && !out.Usage.CostKnown && out.Usage.Counted() > 0:
		said = " does not say what its turns cost: no cap of dollars can hold it"
	}
	if said != "" {
		a.uncounted[r.Name()] = true
		a.Say(r.Name() + said)
	}
}

func (w *programWorker) answer(text string) error {
	w.prompt = text
	return nil
}

func (w *programWorker) close() error { return nil }
