package loop

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/git-tilth/git-tilth/internal/agent"
	"github.com/git-tilth/git-tilth/internal/config"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
)

// conversation is a task's conversation with a program.
//
// If the program accepts a preset id, checkpoint.json has the id before the program starts; otherwise from the first
// event on. A kill therefore never loses the conversation.
type conversation struct {
	env     []string
	choice  agent.Choice // for the next turn
	stored  string       // id that this turn has stored
	started time.Time    // start of the turn
}

// choose returns the conversation to continue. It searches the program's own store only in sessions that never stored
// an id. In other sessions, a task without an id is new and has no conversation.
func (w *worker) choose() agent.Choice {
	a, stored := w.a, w.onDisk()
	a.run.mu.Lock()
	isNew := stored == nil && (a.run.o.From.Fresh || len(a.run.Checkpoint.Conversations) > 0)
	var others []string
	if stored != nil && stored.ID == "" { // no other conversation exists, or none may be used
		for task := range a.run.Checkpoint.Conversations {
			if task != a.task.ID {
				others = append(others, a.run.Checkpoint.Conversation(task).ID)
			}
		}
	}
	a.run.mu.Unlock()
	made, _ := session.IDTime(a.run.S.ID)
	choice := w.who.Program.Choose(agent.Search{
		Stored: stored, Dir: w.wt.Path, Model: w.who.Model, Env: w.conversation.env, Since: made,
		Except: others, Fresh: a.run.o.Fresh || a.full || isNew || stored != nil &&
			stored.Over, Continue: a.run.o.Continue,
	})
	switch {
	case a.full:
		choice.Why = conversationFull
	case isNew && !a.run.o.Fresh:
		choice.Why = "a new task"
	}
	return choice
}

// onDisk returns the task's stored conversation, or nil.
func (w *worker) onDisk() *session.Conversation {
	w.a.run.mu.Lock()
	defer w.a.run.mu.Unlock()
	return w.a.run.Checkpoint.ConversationOf(w.a.task.ID, w.who.Program.Name)
}

// turnOf returns the common parts of the turns of a role's program.
func (a *attempt) turnOf(r Role, dir string, env []string, messages []json.RawMessage) agent.Turn {
	return agent.Turn{System: agent.Content(messages[0]), Dir: dir, Env: env, Model: r.Model, UnsetModel: r.UnsetModel,
		MaxTurns: a.run.o.Limits.Turns, MaxCost: a.run.dollarsLeft(), Timeout: a.run.turnTime(),
		Linger: a.run.o.Limits.Linger, Redact: a.run.Redact}
}

// makeTurn returns the next turn: the last messages, or the whole task for a new conversation.
func (w *worker) makeTurn(ctx context.Context, messages []json.RawMessage) (agent.Turn, error) {
	a, c := w.a, &w.conversation
	t := a.turnOf(w.who, w.wt.Path, c.env, messages)
	if n := len(messages); n > 2 {
		t.Prompt = agent.Content(messages[n-1])
	}
	if t.Prompt == "" || !c.choice.Ref.Resume {
		first, err := a.firstPrompt(c.choice.Ref.Resume)
		if err != nil {
			return t, err
		}
		t.Prompt = strings.TrimSpace(first + "\n\n" + t.Prompt)
	}
	t.Conversation, t.PriorTotal = c.choice.Ref, w.priorTotal(c.choice)
	t.GitDir, t.CommonDir, t.Box = w.wt.AdminDir, w.wt.Common, a.at.workBox(ctx, w.wt)
	t.Emit, t.OnConversation = a.emit, w.store
	c.stored, c.started = "", a.run.Now()
	return t, nil
}

// turnEnded records a turn's outcome. It returns an answer, or an error for a retry or for the end of the attempt.
func (w *worker) turnEnded(ctx context.Context, out agent.Outcome) (again bool, err error) {
	a, p, choice := w.a, w.who.Program, w.conversation.choice
	if out.Conversation != "" {
		err = w.store(out.Conversation)
	}
	if err = cmp.Or(err, a.noteTurn(w.who, out), w.book(out)); err == nil {
		err = a.run.Save()
	}
	if err != nil || ctx.Err() != nil {
		return false, err
	}
	if (out.How == agent.NotFound || out.How == agent.InUse) && choice.Ref.Resume {
		w.conversation.choice = p.Fresh("the conversation " + choice.Ref.ID + " is lost: " + out.Detail)
		return true, nil
	}
	w.stay(out)
	w.stopped = out.Stopped
	switch out.How {
	case agent.TurnLimit:
		err = Stop{Reason: record.IterCap, Detail: p.Name + " reached its turn limit: " + out.Detail}
	case agent.TimedOut:
		err = cmp.Or[error](a.run.mayAsk(), nudged{turn{nudge: nudgeTime, idle: out.Turns == 0}})
	case agent.Unfinished:
		err = cmp.Or[error](a.run.mayAsk(), nudged{turn{nudge: nudgeUnfinished, idle: true, why: out.Detail}})
	}
	return false, err
}

// nudged returns a turn that is neither an answer nor a failure.
type nudged struct{ turn }

func (n nudged) Error() string { return string(n.nudge) }

// stay continues the last conversation in the next turn.
func (w *worker) stay(out agent.Outcome) {
	id := out.Conversation
	if c := w.onDisk(); id == "" && c != nil {
		id = c.ID
	}
	ended := out.How == agent.Completed || out.How == agent.TurnLimit || out.How == agent.Unfinished
	p := w.who.Program
	gone := id == "" || !p.CanResume || out.ResumeBy == agent.ResumeByNone
	if !gone && !ended { // a program with a clean exit has stored its conversation
		gone, _ = p.Stored(w.conversation.env, w.wt.Path, id)
	}
	if gone {
		w.conversation.choice = p.Fresh(p.Name + " has no conversation to continue")
		return
	}
	w.conversation.choice = agent.Choice{Ref: agent.Ref{ID: id, Resume: true}, How: "continued",
		Why: "the same attempt"}
}

// caseOf reads a program's final message: a case as JSON, or a text as the summary.
func caseOf(message string) turn {
	message = strings.TrimSpace(message)
	if message == "" {
		return turn{nudge: nudgeMessage, idle: true}
	}
	args := cmp.Or(caseIn(message), string(record.JSON(Case{Summary: clip(message, promptCap)})))
	return turn{caseArgs: args}
}

// store saves the id of the task's conversation before the program uses it.
func (w *worker) store(id string) error {
	if id == w.conversation.stored {
		return nil
	}
	a, c, choice, now := w.a, w.onDisk(), w.conversation.choice, record.FormatTime(w.a.run.Now())
	if c == nil || c.ID != id || c.Over || c.Agent != w.who.Program.Name {
		lost := c
		c = &session.Conversation{Agent: w.who.Program.Name, ID: id, Cwd: w.wt.Path, Model: w.who.Model, Created: now,
			LastUsed: now}
		if lost != nil && (lost.Agent == c.Agent || len(a.run.o.Worker.Others) == 0) {
			c.Attempts = lost.Attempts // keep the task's history
		}
		if err := cmp.Or(a.setConversation(c), a.run.Save()); err != nil {
			return err
		}
	}
	w.conversation.stored = id
	if choice.How == "continued" && id == choice.Ref.ID {
		return nil
	}
	return a.emit(&record.AgentSession{Agent: c.Agent, Conversation: id, How: choice.How, Why: choice.Why})
}

// priorTotal returns a conversation's usage up to its last turn, for programs that report running totals.
func (w *worker) priorTotal(choice agent.Choice) agent.Usage {
	c := w.onDisk()
	if c == nil || !choice.Ref.Resume || c.ID != choice.Ref.ID || c.Total == nil {
		return agent.Usage{}
	}
	return agent.Usage{
		Prompt: c.Total.PromptTokens, Eval: c.Total.EvalTokens, Cached: c.Total.CachedTokens,
		Reasoning: c.Total.ReasoningTokens, Cost: c.Total.Cost,
	}
}

// book adds the turn to the conversation's history.
func (w *worker) book(out agent.Outcome) error {
	c := w.onDisk()
	if c == nil {
		return nil
	}
	c.LastUsed = record.FormatTime(w.a.run.Now())
	c.Total = new(agent.RoleUsage(out.Total, 0))
	c.ResumeBy, c.Uncounted = cmp.Or(out.ResumeBy, c.ResumeBy), c.Uncounted || out.Uncounted
	c.Attempts = append(c.Attempts, session.Attempt{
		Started: record.FormatTime(w.conversation.started), Ended: c.LastUsed, How: string(out.How), Turns: out.Turns,
		Tokens: out.Usage.Counted(), Cost: out.Usage.Cost, TotalTokens: out.Total.Counted(),
	})
	return w.a.setConversation(c)
}

func (a *attempt) setConversation(c *session.Conversation) error {
	a.run.mu.Lock()
	defer a.run.mu.Unlock()
	return a.run.Checkpoint.SetConversation(a.task.ID, c)
}

// noteTurn records a login that was not kept, and notes whether the caps work for the program.
func (a *attempt) noteTurn(r Role, out agent.Outcome) error {
	a.run.noteCost(r.Name(), out.Usage, out.Uncounted, "")
	if out.Unkept == nil {
		return nil
	}
	return a.emit(&record.LogRepaired{What: out.Unkept.Error()})
}

// noteCost prints one note if a cap does not work because the model or program reports no tokens or no cost.
func (r *run) noteCost(who string, u agent.Usage, uncounted bool, fix string) {
	caps, said := r.o.Caps, ""
	switch {
	case uncounted && (caps[config.MaxTokens] > 0 || caps[config.MaxCost] > 0):
		said = " does not report its tokens: caps on tokens and dollars cannot limit it"
	case caps[config.MaxCost] > 0 && !u.CostKnown && u.Counted() > 0:
		said = " does not report its cost: a cap on dollars cannot limit it" + fix
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if said != "" && !r.uncounted[who] {
		r.uncounted[who] = true
		r.Say(who + said)
	}
}
