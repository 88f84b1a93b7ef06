package lifecycle

import (
	"slices"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
)

// claim is a commit by whose trailers a task is done that is not.
type claim struct{ sha, tree, task string }

// claims lists the commits whose trailers say that a task is done which is not. Only a verdict makes it so.
func (s State) claims() (out []claim) {
	who, status := s.author(), s.status()
	for _, c := range s.Commits {
		task, ok := who.done(c)
		if ok && who.signed(c) && !s.isAccepted(c) && status[task] != session.TaskDone {
			out = append(out, claim{c.SHA, c.Tree, task})
		}
	}
	return out
}

// readProof finds the claims that hold, by their commits: those whose tree an accepting verdict of their task names. It
// reads the record backwards, and no further than it has to.
func readProof(s *session.Session, claims []claim) (judged map[string]bool, err error) {
	judged = map[string]bool{}
	if len(claims) == 0 {
		return judged, nil
	}
	_, err = record.Tail(s.Path(session.RecordFile), func(l record.Line) (more bool) {
		if l.Type != "evaluator_verdict" {
			return true
		}
		e, _ := l.Event().(*record.EvaluatorVerdict)
		claims = slices.DeleteFunc(claims, func(c claim) bool {
			holds := e != nil && e.Verdict == "accept" && c.task == e.TaskID && c.tree == e.Tree
			judged[c.sha] = judged[c.sha] || holds
			return holds
		})
		return len(claims) > 0
	})
	return judged, err
}

// unjudged finds the commits that stay on the branch and are judged with the next task's work, and the commit from
// which on they are: a placeholder on which somebody's commit stands, since the last attempt began, until a verdict
// accepts what holds them.
func (p *Plan) unjudged() (from string, commits []gitx.Commit) {
	from = p.History.Begun.Judged
	if from == "" && len(p.KeptPlaceholders) > 0 {
		from = p.History.Begun.Base
	}
	rest := p.Commits[len(p.Unwind):]
	who, status := p.author(), p.status()
	end := slices.IndexFunc(rest, func(c gitx.Commit) bool {
		task, ok := who.done(c)
		return c.SHA == from || p.isAccepted(c) || ok && (status[task] == session.TaskDone || p.proven(c, who))
	})
	switch {
	case from == "" || len(rest) == 0:
		return "", nil
	case end >= 0:
		return rest[end].SHA, rest[:end]
	case p.SeedKnown:
		return rest[len(rest)-1].Parents[0], rest
	}
	return from, rest
}
