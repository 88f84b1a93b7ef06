package lifecycle

import (
	"slices"

	"github.com/git-tilth/git-tilth/internal/gitx"
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
		task, known := who.placeholder(c)
		failed := known
		if !failed {
			task, known = who.done(c)
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

// unjudged finds the commits that the branch keeps and of which nobody knows whether a worker made them, and the commit
// from which on they are judged with the next task's work. GIT_REFLOG_ACTION can be unset, so that what a worker
// committed looks like a person's commit. The rows, first match first:
//
//	state                                        judged from             why
//	no attempt is on record, or another tool's   the tip                 no worker of ours was there
//	the tip is an accepted commit, or the seed   the tip                 all below was judged with it
//	the last attempt had such commits below it   as that one, or an      it did not come to a commit
//	                                             accepted commit since
//	a placeholder under a person's commit        the attempt's base      its partial work stays
//	a stop of the last attempt notes the tip     the tip                 the worker's commits were taken back then;
//	                                                                     these are a person's
//	no such stop: it was killed                  the attempt's base, or  they may be either's, and a person's are
//	                                             an accepted commit      never unwound
//	the base is not on the branch any more       the last accepted       somebody rewrote the branch
//	                                             commit, or the seed
func (p *Plan) unjudged() (from string, commits []gitx.Commit) {
	from = p.History.Begun.Judged
	if from == "" && (p.History.Tip == "" || len(p.KeptPlaceholders) > 0) {
		from = p.History.Begun.Base
	}
	rest := p.Commits[len(p.Unwind):]
	if from == "" || len(rest) == 0 {
		return "", nil
	}
	known := p.firstDone(rest)
	end := slices.IndexFunc(rest, func(c gitx.Commit) bool { return c.SHA == from || known[c.SHA] })
	switch {
	case end >= 0:
		return rest[end].SHA, rest[:end]
	case p.SeedKnown:
		return rest[len(rest)-1].Parents[0], rest
	}
	return from, rest
}

// firstDone finds the commits that finished the tasks. A second one of the same task may be forged.
func (s State) firstDone(commits []gitx.Commit) map[string]bool {
	who, status := s.author(), s.status()
	seen, first := map[string]bool{}, map[string]bool{}
	for _, c := range slices.Backward(commits) {
		task, ok := who.done(c)
		finished := status[task] == session.TaskDone && !seen[task] || s.proven(c, who)
		if s.isAccepted(c) || ok && finished && !s.ByWorker[c.SHA] {
			first[c.SHA], seen[task] = true, true
		}
	}
	return first
}
