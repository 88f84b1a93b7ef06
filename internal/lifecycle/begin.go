package lifecycle

import (
	"context"
	"fmt"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
)

// Begin starts a prepared session. The status is running before anything else happens, so that no second run takes it up.
func (h *Handle) Begin(ctx context.Context, p Plan, start record.SessionStart, setup Setup) error {
	if p.FinishRewind {
		if err := h.FinishRewind(quiet(ctx)); err != nil {
			return err
		}
		p.Worktree = TreeFine
	}
	if err := h.OpenRecord(); err != nil {
		return err
	}
	h.Checkpoint.Status = session.Running
	h.Checkpoint.StartedAt = session.FormatTime(h.Now())
	if err := h.Save(); err != nil {
		return err
	}
	if _, err := h.mend(ctx, p, setup); err != nil {
		return h.broken(ctx, err)
	}
	return h.NoteStart(start)
}

// NoteStart logs the session_start of a run; start says who works.
func (h *Handle) NoteStart(start record.SessionStart) error {
	start.Phase, start.Source, start.Worktree, start.Branch = "run", h.Checkpoint.Source, h.Path(), h.S.Branch()
	return h.Record.Append(&start)
}

// Commands are the git commands that a plan comes to, for a dry run.
func Commands(s *session.Session, check *session.Checkpoint, p Plan) []string {
	var out []string
	common, err := CommonOf(s, check)
	if err != nil {
		return nil
	}
	path := WorkspaceOf(s, check)
	add := func(dir string, args ...string) {
		out = append(out, gitx.Call{Dir: dir, Args: args}.String())
	}
	switch p.Worktree {
	case TreeMissing, TreePlain:
		add(common, "worktree", "prune")
		add(common, "worktree", "add", path, s.Branch())
	case TreeUnregistered:
		add(common, "worktree", "add", "--no-checkout", path, s.Branch())
	case TreeElsewhere:
		add(path, "symbolic-ref", "HEAD", "refs/heads/"+s.Branch())
	}
	if p.FinishRewind && check.Rewind != nil {
		add(path, "reset", "--hard", check.Rewind.SHA)
		add(path, "clean", "-fd")
	}
	if p.CommitTree != nil {
		add(path, "read-tree", p.CommitTree.Tree)
		add(path, "commit", "-F", "-")
	}
	if len(p.Unwind) > 0 {
		add(path, "reset", "--soft", p.UnwindTo)
	}
	return out
}

// Outline is a plan for people: the line, then what it unwinds.
func Outline(p Plan) []string {
	lines := []string{p.String()}
	for _, c := range p.Unwind {
		lines = append(lines, fmt.Sprintf("unwind %.10s %s", c.SHA, c.Subject))
	}
	return lines
}
