package lifecycle

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/text"
)

// Outline returns a plan in words: one line, then the unwound commits.
func (p Plan) Outline() []string {
	lines := []string{p.String()}
	for _, c := range p.Unwind {
		lines = append(lines, fmt.Sprintf("unwind %.10s %s", c.SHA, c.Subject))
	}
	return lines
}

// String returns the plan as one line, as resume prints it and session_resume records it.
func (p Plan) String() string { return p.line("") }

// remakes reports whether the worktree is missing or unregistered. It keeps a worktree on another branch if nothing is
// left to do.
func (p Plan) remakes() bool {
	return p.MovesAside() || p.Tree == held.TreeMissing || p.Tree == held.TreeUnregistered
}

// MovesAside reports whether the plan moves a directory at the worktree's path, which has files in no commit.
func (p Plan) MovesAside() bool { return p.Tree == held.TreePlain }

// line returns the plan as one line. aside is the new path of a directory that was at the worktree's path, or "".
func (p Plan) line(aside string) string {
	switch p.Action {
	case Refuse:
		return "cannot be resumed: " + p.Why
	case Nothing:
		switch {
		case p.Tree == held.TreeUnregistered:
			return "nothing to resume: all tasks are done; register the worktree again"
		case p.remakes():
			return "nothing to resume: all tasks are done; re-create the worktree"
		}
		return "nothing to resume: all tasks are done"
	}
	if p.GoingBack != "" {
		return "finish " + p.GoingBack + ", then continue"
	}
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	if p.Finished != "" {
		add("finish %s", p.Finished)
	}
	switch p.Tree {
	case held.TreePlain:
		if aside == "" {
			add("move away the directory at the worktree's path, re-create the worktree")
		} else {
			add("the directory at the worktree's path was moved to %s; re-create the worktree", aside)
		}
	case held.TreeMissing:
		add("re-create the worktree")
	case held.TreeUnregistered:
		add("register the worktree again")
	case held.TreeElsewhere:
		add("set HEAD to the session's branch again")
	}
	if p.Unfinished != "" {
		add("abort the unfinished %s, keep its files", p.Unfinished)
	}
	if p.CommitTree != nil {
		add("commit the accepted work of %s", p.CommitTree.TaskID)
	}
	for _, id := range slices.Sorted(maps.Keys(p.MarkDone)) {
		if p.CommitTree != nil && p.CommitTree.TaskID == id {
			continue // just committed
		}
		add("mark %s done, because its commit exists", id)
	}
	if n := len(p.Unwind); n > 0 {
		add("unwind %s into the index", text.Plural(n, "commit"))
	}
	for _, c := range p.KeptPlaceholders {
		add("keep the partial work in %.10s, because a later commit is based on it", c.SHA)
	}
	if p.Unjudged > 0 && p.CommitTree == nil && len(p.Pending) > 0 {
		add("review %s since %.10s together with the task's work", text.Plural(p.Unjudged, "commit"), p.JudgedTo)
	}
	if len(p.Retried) > 0 {
		add("retry %s", strings.Join(p.Retried, ", "))
	}
	if p.Review != nil {
		add("ask the reviewer about %s", p.Review.TaskID)
	}
	if p.Record != nil && len(p.Record.Steps) > 0 {
		add("repeat %s", text.Plural(len(p.Record.Steps), "commit"))
	}
	for _, id := range p.Pending {
		if p.reviewRank(id) == 0 && p.Record.Carried(id) == nil {
			add("ask the reviewer about %s", id)
		}
	}
	if p.SetAside != "" {
		add("stash the work of %s, which is not pending", p.SetAside)
	}
	if lanes := p.pendingLanes(); len(lanes) > 0 {
		add("continue %s in parallel", strings.Join(lanes, ", "))
	}
	switch {
	case p.Action == conclude:
		add("all tasks are done")
	case p.Fresh:
		add("start with %s", text.Plural(len(p.Pending), "task"))
	default:
		add("%d of %s to do, %s", len(p.Pending), text.Plural(len(p.Tasks), "task"), p.next())
	}
	return strings.Join(parts, "; ")
}

// next names the task with which the loop begins, or the reason why it does not run.
func (p Plan) next() string {
	var waits []string
	for _, id := range p.Pending {
		if open := p.Waiting[id]; len(open) > 0 && id != p.Begun {
			waits = append(waits, id+" waits for "+strings.Join(open, ", "))
			continue
		}
		return "next " + id
	}
	return "no task can start: " + strings.Join(waits, "; ")
}

// pendingLanes returns the pending tasks that have a lane.
func (p Plan) pendingLanes() []string {
	return slices.DeleteFunc(slices.Clone(p.Lanes), func(id string) bool { return !slices.Contains(p.Pending, id) })
}
