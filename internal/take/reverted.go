package take

import (
	"context"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/pattern"
	"github.com/git-tilth/git-tilth/internal/text"
)

// Reverted is a task that the branch has, and has taken back: the commit that brought it, and the one that reverts
// that.
type Reverted struct{ Task, Commit, By string }

// reverts is what git writes into the message of a revert; of a merge's with the parent that it went back to.
var reverts = pattern.New(`(?m)^This reverts commit ([0-9a-f]{40,64})` +
	`(?:, reversing\s+changes made to ([0-9a-f]{40,64}))?`)

// findReverted finds out which tasks the branch has reverted, by what git's own reverts say. copies are the commits
// that brought each; one that nobody reverted has the task on the branch, and so has one whose revert was reverted.
func (t *taker) findReverted(ctx context.Context, copies map[string][]string) error {
	first := t.commits[len(t.commits)-1]
	found, err := t.Git.Log(ctx, t.common, t.Note.From, strings.Join(first.Parents, ""), 0, "This reverts commit ")
	if err != nil || len(found) == 0 {
		return err
	}
	by := map[string]string{}
	for _, c := range found { // newest first
		if by[c.SHA] != "" {
			continue
		}
		for _, m := range reverts().FindAllStringSubmatch(c.Body, -1) {
			by[m[1]] = c.SHA
			if m[2] == "" {
				continue
			}
			in, err := t.Git.Line(ctx, gitx.InRepo(t.common, "rev-list", m[1], "^"+m[2], "--"))
			if err != nil {
				return err
			}
			for _, sha := range strings.Fields(in) {
				by[sha] = c.SHA
			}
		}
	}
	stands := func(sha string) bool { return by[sha] == "" }
	for _, id := range t.order() {
		if all := copies[id]; len(all) > 0 && !slices.ContainsFunc(all, stands) {
			t.Reverted = append(t.Reverted, Reverted{id, all[0], by[all[0]]})
		}
	}
	rank := func(r Reverted) int {
		return slices.IndexFunc(found, func(c gitx.Commit) bool { return c.SHA == r.By })
	}
	slices.SortStableFunc(t.Reverted, func(x, y Reverted) int { return rank(x) - rank(y) })
	return nil
}

// BringBack is the command that brings back what the branch has reverted.
func (p Plan) BringBack() string {
	line := ""
	if p.place == "" {
		line = "git switch " + text.ShellQuote(p.Note.Onto) + " && "
	}
	line += "git revert --no-edit"
	for _, r := range p.Reverted {
		if sha := " " + text.Head(r.By, 10); !strings.Contains(line, sha) {
			line += sha
		}
	}
	return line
}
