package agent

import (
	"context"
	"fmt"
	"time"
)

// StoredConversation is what the harness remembers about a task's conversation.
type StoredConversation struct {
	Agent, ID, Cwd, Model string
}

// Choice is one step of the chain: a conversation to try, and why it is this one.
type Choice struct {
	Ref Ref    // one that is resumed knows the task already
	How string // "stored", "discovered" or "fresh"
	Why string
}

// Fresh is the choice of a new conversation.
func (p *Program) Fresh(why string) Choice {
	return Choice{Ref: Ref{ID: p.NewID()}, How: "fresh", Why: why}
}

// Search says which conversation is looked for.
type Search struct {
	Stored     *StoredConversation // nil for none
	Dir, Model string
	Env        []string
	Since      time.Time // when the session was made: discovery finds nothing that is older
	Except     []string  // conversations of other tasks and roles, which live in the same directory
	Fresh      bool      // begin a new conversation whatever there is
	Continue   bool      // take a stored id even if the program's store seems to have lost it
}

// Choose decides which conversations a turn may use, best first: the stored one, the newest one recorded for exactly
// this directory, a fresh one. The caller goes to the next choice only when the program answered NotFound (or InUse),
// so the chain ends after at most three steps; its last choice is always fresh.
//
// An id that belongs to another program, model or directory is never handed over; the fresh choice says so. Discovery
// is for sessions that have no stored id.
func (p *Program) Choose(ctx context.Context, q Search) []Choice {
	fresh := p.Fresh("")
	if q.Fresh {
		fresh.Why = "a fresh conversation was asked for"
		return []Choice{fresh}
	}
	if !p.CanResume {
		fresh.Why = p.Name + " cannot resume a conversation"
		return []Choice{fresh}
	}
	if q.Stored != nil && q.Stored.ID != "" {
		first, why := p.chooseStored(ctx, q)
		fresh.Why = why
		if first == nil {
			return []Choice{fresh}
		}
		return []Choice{*first, fresh}
	}
	id, ok, err := p.Discover(ctx, q.Env, q.Dir, q.Since, q.Except...)
	switch {
	case err != nil:
		fresh.Why = "no conversation is stored, and looking for one failed: " + err.Error()
	case !ok:
		fresh.Why = "no conversation is stored for this task"
	default:
		fresh.Why = fmt.Sprintf("%s no longer knows conversation %s", p.Name, id)
		return []Choice{{Ref: Ref{ID: id, Resume: true}, How: "discovered",
			Why: "the newest conversation that " + p.Name + " recorded for this directory"}, fresh}
	}
	return []Choice{fresh}
}

// chooseStored returns the choice to resume the stored conversation, or nil, and why the fresh choice would be taken.
func (p *Program) chooseStored(ctx context.Context, q Search) (*Choice, string) {
	stored := q.Stored
	switch {
	case stored.Agent != p.Name:
		return nil, fmt.Sprintf("the stored conversation belongs to %s, not to %s", stored.Agent, p.Name)
	case stored.Model != q.Model:
		return nil, fmt.Sprintf("the stored conversation was held with %s, not with %s",
			modelName(stored.Model), modelName(q.Model))
	case stored.Cwd != "" && realPath(stored.Cwd) != realPath(q.Dir):
		return nil, "the stored conversation belongs to the directory " + stored.Cwd
	}
	resume := &Choice{Ref: Ref{ID: stored.ID, Resume: true}, How: "stored"}
	state := p.Stored(ctx, q.Env, q.Dir, stored.ID)
	switch {
	case state.Presence == Present:
		resume.Why = "stored conversation, " + state.Why
	case state.Presence == Unknown:
		resume.Why = "stored conversation; " + state.Why
	case q.Continue && p.valid(stored.ID):
		resume.Why = "continuing was asked for, although " + state.Why
	default:
		return nil, fmt.Sprintf("the stored conversation %s cannot be resumed: %s", stored.ID, state.Why)
	}
	return resume, fmt.Sprintf("%s no longer knows conversation %s", p.Name, stored.ID)
}

func modelName(m string) string {
	if m == "" {
		return "the program's default model"
	}
	return m
}
