package agent

import (
	"cmp"
	"fmt"
	"time"

	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/session"
)

// Choice is a conversation to try, with the reason for the choice.
type Choice struct {
	Ref Ref    // a resumed conversation knows the task
	How string // "stored", "discovered" or "fresh"
	Why string
}

// TookOver is the recorded reason for an agent that took over a task from an unavailable one.
const TookOver = "took over"

// Replaced is the recorded reason for a new conversation that replaces one too long for the model.
const Replaced = "replaced"

// Fresh returns the choice of a new conversation.
func (p *Program) Fresh(why string) Choice {
	return Choice{Ref: Ref{ID: p.NewID()}, How: "fresh", Why: why}
}

// Search describes the wanted conversation.
type Search struct {
	Stored     *session.Conversation // nil for none
	Dir, Model string
	Env        []string
	Since      time.Time // creation time of the session; discovery ignores older conversations
	Except     []string  // conversations of other tasks and roles in the same directory
	Fresh      bool      // start a new conversation in any case
	Continue   bool      // use a stored id even if the program's store seems to have lost it
}

// Choose decides which conversation a turn uses: the stored one, else the newest one for exactly this directory, else
// a new one. If the program answers NotFound or InUse, the caller continues with Fresh.
//
// Choose never uses an id of another program, model or directory; the new conversation then has the reason. Discovery
// is for sessions without a stored id.
func (p *Program) Choose(q Search) Choice {
	id, how, why := "", "", ""
	switch {
	case q.Fresh:
		why = "a fresh conversation was asked for"
	case !p.CanResume:
		why = p.Name + " cannot resume a conversation"
	case q.Stored != nil && q.Stored.ID != "":
		id, why = p.chooseStored(q)
		how = "stored"
	default:
		id, why = p.chooseDiscovered(q)
		how = "discovered"
	}
	if id == "" {
		return p.Fresh(why)
	}
	return Choice{Ref: Ref{ID: id, Resume: true}, How: how, Why: why}
}

// chooseDiscovered returns the newest conversation of the session's time and directory, or "", with the reason.
func (p *Program) chooseDiscovered(q Search) (id, why string) {
	id, err := p.discover(q.Env, q.Dir, q.Since, q.Except...)
	switch {
	case err != nil:
		return "", "no conversation is stored, and looking for one failed: " + err.Error()
	case id == "":
		return "", "no conversation is stored for this task"
	}
	return id, "the newest conversation that " + p.Name + " recorded for this directory"
}

// chooseStored returns the stored conversation if it can be resumed, else "", with the reason.
func (p *Program) chooseStored(q Search) (id, why string) {
	stored := q.Stored
	switch {
	case stored.Agent != p.Name:
		return "", fmt.Sprintf("the stored conversation belongs to %s, not to %s", stored.Agent, p.Name)
	case stored.Model != q.Model:
		const none = "the program's default model"
		return "", fmt.Sprintf("the stored conversation used %s, not %s",
			cmp.Or(stored.Model, none), cmp.Or(q.Model, none))
	case stored.ResumeBy == ResumeByNone:
		return "", p.Name + " cannot resume a conversation"
	case stored.Cwd != "" && proc.RealPath(stored.Cwd) != proc.RealPath(q.Dir):
		return "", "the stored conversation belongs to the directory " + stored.Cwd
	}
	gone, why := p.Stored(q.Env, q.Dir, stored.ID)
	switch {
	case !gone:
		return stored.ID, "stored conversation: " + why
	case q.Continue && p.valid(stored.ID):
		return stored.ID, "continuing was asked for, although " + why
	}
	return "", fmt.Sprintf("the stored conversation %s cannot be resumed: %s", stored.ID, why)
}
