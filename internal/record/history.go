package record

import (
	"cmp"
	"slices"

	"github.com/git-tilth/git-tilth/internal/jsonl"
)

// Beginning is what the record says before anything was run.
type Beginning struct {
	Source   string           // the repository; empty if no session_start names one
	Base     string           // the commit at which the branch begins; empty if no session_start names one
	Prepared *SessionPrepared // with the tokens that were used; nil if there is none
	Seed     *SeedCommitted   // the last one; nil if there is none
	SeedAt   int64            // where the seed's line begins
}

// ReadBeginning reads the record at path up to where a run begins.
func ReadBeginning(path string) (Beginning, error) {
	var b Beginning
	_, _, err := Scan(path, 0, func(l Line) error {
		switch l.Type {
		case "session_start", "session_prepared", "seed_committed", "session_resume", "context_reset":
		default:
			return nil // of a long interview, not to be decoded
		}
		switch e := l.Event().(type) {
		case *SessionStart:
			b.Source, b.Base = cmp.Or(b.Source, e.Source), cmp.Or(b.Base, e.Base)
			if e.Phase == "run" {
				return jsonl.ErrStop
			}
		case *SessionPrepared:
			if e.TokensUsed != nil {
				b.Prepared = e
			}
		case *SeedCommitted:
			if e.SHA != "" {
				b.Seed, b.SeedAt = e, l.Off
			}
		case *SessionResume, *ContextReset:
			return jsonl.ErrStop
		}
		return nil
	})
	return b, err
}

// History is what the end of the record says of how the last run ended and of what a process that died had still to do.
type History struct {
	LastStop string // its reason; empty if work went on after it, or if nothing stopped the last run in an orderly way
	LastTask string // that the last run with a task worked on; empty where it came to that task's end
	// Accepted is a verdict whose tree was accepted and, by the record, not committed. Its Noted task_done may be
	// there.
	Accepted *EvaluatorVerdict
	Noted    bool
	// Verdict is the last verdict, if no iteration was begun after it, and VerdictTS when it was given. It is
	// Unledgered where nothing shows that its line in the ledger was written: a process died between the two.
	Verdict    *EvaluatorVerdict
	VerdictTS  string
	Unledgered bool
	// Case is a case that the evaluator was being asked about when the last run ended; nil for none.
	Case *CaseSubmitted
	// Refused is the last verdict where it was an acceptance, and RefusedBy the last words of a commit hook against it
	// with which the worker was dealing; nil for none.
	Refused    *EvaluatorVerdict
	RefusedBy  *ValidatorRun
	StopDetail string   // of LastStop
	Attempt    string   // the task of the last attempt
	commits    []string // that the last attempt made
	// Begun is how the last attempt began, without a base if there is none or if another tool made it.
	Begun ContextReset
}

// Recorded reports whether a commit of a task is on record. What is not is a commit of the last attempt: a process
// writes it down before it begins another one.
func (h *History) Recorded(task, sha string) bool {
	return task != h.Attempt || slices.Contains(h.commits, sha)
}

// ReadHistory reads the record at path backwards, no further than to where its last attempt at a task began.
func ReadHistory(path string) (History, error) {
	var p backwards
	_, err := Tail(path, p.see)
	return p.History, err
}

// backwards is a pass over the record from its end.
type backwards struct {
	History
	ended   bool     // how the last run ended is known
	stopped bool     // the run that is passed through stopped, and of no task of its own was read yet
	between bool     // the last task came to its end before the stop
	begun   bool     // something was begun after the stop that comes next
	done    string   // the task of a task_done that waits for its verdict
	later   bool     // something follows the verdict that comes next and shows that its ledger was settled
	worked  bool     // an event of an iteration was seen
	past    bool     // something was seen that is neither of a review nor of the end of a run
	retry   []string // tasks that a person wants tried again
	judged  bool     // the last verdict of the attempt was seen
}

// see takes one event and reports whether those before it are needed.
func (p *backwards) see(l Line) (more bool) {
	if l.Type == "task_marked" {
		// A person's word, mostly between two runs. What is to be tried again is neither committed nor reviewed.
		if mark := l.Event().(*TaskMarked); mark.Mark == "retry" {
			p.retry = append(p.retry, mark.TaskID)
		}
		return true
	}
	if !p.judged {
		p.seeRefusal(l)
	}
	if p.worked && l.Type != "context_reset" && l.Type != "seed_committed" {
		return true // of a long attempt, not to be decoded
	}
	e := l.Event()
	p.seeTask(e)
	p.seeEnd(e)
	switch e := e.(type) {
	case *ContextReset:
		p.Begun = *e
		return false
	case *SeedCommitted:
		return false
	case *Commit:
		p.commits = append(p.commits, e.SHA)
	case *EvaluatorVerdict:
		if !p.worked {
			p.Verdict, p.VerdictTS, p.Unledgered = e, l.TS, !p.later
		}
	case *CaseSubmitted:
		if !p.past && !slices.Contains(p.retry, e.TaskID) {
			p.Case = e
		}
	}
	p.past = p.past || !ofReview(e)
	p.worked = p.worked || p.past && !may(e, outside) && !isLearning(e)
	p.later = p.later || !may(e, afterVerdict)
	return true
}

// seeTask looks for the task that was worked on last. A run that stopped before it began one says nothing of it: what
// the run before it left is in the worktree still.
func (p *backwards) seeTask(e Event) {
	task := e.Common().TaskID
	p.Attempt = cmp.Or(p.Attempt, task)
	if p.LastTask != "" || p.between {
		return
	}
	switch e := e.(type) {
	case *SessionRewound:
		p.between = true
	case *Stop:
		p.stopped = p.stopped || task == "" && !ReasonOf(e.Reason).Cuts
	case *SessionResume:
		p.stopped = false
	}
	if p.between = p.between || p.stopped && task != ""; !p.between {
		p.LastTask = task
	}
}

// seeRefusal looks for what a commit hook said after the last verdict.
func (p *backwards) seeRefusal(l Line) {
	switch l.Type {
	case "validator_run":
		if e := l.Event().(*ValidatorRun); p.RefusedBy == nil && e.OfHook() {
			p.RefusedBy = e
		}
	case "evaluator_verdict":
		p.judged = true
		e := l.Event().(*EvaluatorVerdict)
		if p.RefusedBy != nil && e.Accepted() && e.TaskID == p.RefusedBy.TaskID &&
			!slices.Contains(p.retry, e.TaskID) {
			p.Refused = e
		}
	}
}

// seeEnd works out how the last run ended. A stop counts only if nothing was begun after it: one that is older than a
// crash says nothing about the crash.
func (p *backwards) seeEnd(e Event) {
	if p.ended {
		return
	}
	switch e := e.(type) {
	case *Stop:
		if !p.begun {
			p.LastStop, p.StopDetail = e.Reason, e.Detail
		}
		p.begun = ReasonOf(e.Reason).Cuts
		p.ended = !p.begun
	case *LedgerAppended:
	case *TaskDone:
		p.done, p.begun = e.TaskID, true
	case *SessionResume:
		// One that found everything done began nothing. One that died before its first task changed nothing of what
		// came before it, so an accepted tree may still be waiting beyond it.
		p.begun = p.begun || !e.FoundAllDone()
	case *EvaluatorVerdict:
		if e.Accepted() && e.Tree != "" && !slices.Contains(p.retry, e.TaskID) &&
			(p.done == "" || p.done == e.TaskID) {
			p.Accepted, p.Noted = e, p.done != ""
		}
		p.ended = true
	case *ModelCall:
		p.begun, p.ended = true, !isLearning(e)
	default:
		p.ended = !may(e, afterStop)
	}
}

// isLearning reports whether an event belongs to what is asked after a task.
func isLearning(e Event) bool {
	if prompt, ok := e.(*PromptAssembled); ok {
		return prompt.Role == RoleSelfImprove
	}
	return e.Common().Phase == RoleSelfImprove
}

// ofReview reports whether an event may stand between a case and its verdict, or after the end of a run in between.
func ofReview(e Event) bool {
	role := e.Common().Phase
	switch e := e.(type) {
	case *PromptAssembled:
		role = e.Role
	case *MemoryLoad:
		role = e.Role
	case *AgentSession:
		role = e.Role
	}
	return role == RoleEvaluator || may(e, inReview)
}

// may reports whether an event may stand there.
func may(e Event, where stands) bool { return standsOf(TypeOf(e))&where != 0 }

// GoesOn reports whether an event means that a session works, so that a stop before it is no longer its last word. What
// only tidies up after a stop is not work, and neither is a resume that found everything done.
func (l Line) GoesOn() bool {
	if l.Type == "session_resume" {
		return !l.Event().(*SessionResume).FoundAllDone()
	}
	return standsOf(l.Type)&afterStop == 0
}
