package lifecycle

import (
	"slices"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/session"
)

// unjudged finds the commits that stay on the branch and are judged with the next task's work, and the commit before
// them: a placeholder with somebody's commit on top, made since the last attempt began and not accepted by a verdict
// since.
func (p *Plan) unjudged() (from string, commits []gitx.Commit) {
	from = p.History.Begun.Judged
	if from == "" && len(p.KeptPlaceholders) > 0 {
		from = p.History.Begun.Base
	}
	rest := p.Commits[len(p.Unwind):]
	who, status := p.author(), p.status()
	end := slices.IndexFunc(rest, func(c gitx.Commit) bool {
		task, ok := who.Done(c)
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
