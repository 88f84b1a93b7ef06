package lifecycle

import (
	"slices"

	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
)

// Proof is what the record says of commits that say of themselves that the session made them. A worker can write any
// message, author and reflog; a verdict with the tree of its commit is the evaluator's.
type Proof struct {
	Judged   map[string]bool // commits whose tree an accepting verdict of their task names
	Recorded map[string]bool // commits that a commit event names
}

// claim is a commit by whose trailers the session made it, for a task.
type claim struct {
	sha, tree, task string
	done            bool // the task is done, by prd.json
}

// claims lists the commits whose trailers alone do not settle what becomes of them: those of tasks that are not done,
// a second one of a task that is, and the placeholder of one that is.
func (s State) claims() []claim {
	who, status := s.author(), s.status()
	seen := map[string]bool{}
	var out []claim
	for _, c := range slices.Backward(s.Commits) {
		task, known := who.done(c)
		_, _, failed := who.placeholder(c)
		if failed {
			task, _, known = who.placeholder(c)
		}
		if !known || !who.signed(c) || s.isAccepted(c) {
			continue
		}
		done := status[task] == session.TaskDone
		if done == failed || done && seen[task] {
			out = append(out, claim{c.SHA, c.Tree, task, done})
		}
		seen[task] = seen[task] || !failed
	}
	return out
}

// readProof looks for the claims in the record, backwards, and reads no further than it has to. Only a claim that
// nothing proves, a forged one, costs a look at the whole of the record.
func readProof(s *session.Session, claims []claim) (Proof, error) {
	p := Proof{Judged: map[string]bool{}, Recorded: map[string]bool{}}
	open := map[string]claim{}
	for _, c := range claims {
		open[c.sha] = c
	}
	if len(open) == 0 {
		return p, nil
	}
	_, err := record.Tail(s.Path(session.RecordFile), func(l record.Line) (more bool) {
		if l.Type != "commit" && l.Type != "evaluator_verdict" {
			return true
		}
		switch e := l.Event().(type) {
		case *record.Commit:
			p.Recorded[e.SHA] = true
			if open[e.SHA].done {
				delete(open, e.SHA)
			}
		case *record.EvaluatorVerdict:
			for sha, c := range open {
				if e.Verdict == "accept" && c.task == e.TaskID && c.tree == e.Tree {
					p.Judged[sha] = true
					delete(open, sha)
				}
			}
		}
		return len(open) > 0
	})
	return p, err
}

// namesTrees reports whether the last attempt on record was one of this tool, which names its commit and the trees
// that it judges.
func namesTrees(s *session.Session) (found bool, err error) {
	_, err = record.Tail(s.Path(session.RecordFile), func(l record.Line) (more bool) {
		if l.Type != "context_reset" {
			return true
		}
		reset, ok := l.Event().(*record.ContextReset)
		found = ok && reset.Base != ""
		return false
	})
	return found, err
}
