package message

import (
	"context"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
)

// maxTaskCommits is how many commits of tasks are looked at, the newest first.
const maxTaskCommits = 10_000

// DoneIn finds the tasks of a list that commits below base have done, whichever session made them. Ids are given anew
// with each list, so that a commit is a task's where it says that it is one's and has the title too. What was reverted
// is not done.
// planOf gives the tasks of a session by its id, none where they are not known: then the title has to do.
func DoneIn(ctx context.Context, g *gitx.Git, common, base string, tasks []session.Task,
	planOf func(id string) []session.Task) (map[string]string, error) {
	agrees := func(c gitx.Commit, t session.Task) bool {
		var plan []session.Task
		for _, id := range c.Trailers[trailerSession] {
			plan = append(plan, planOf(id)...)
		}
		return len(plan) == 0 || slices.ContainsFunc(plan, func(o session.Task) bool { return SameTask(o, t) })
	}
	const reverts = "This reverts commit "
	commits, err := g.Log(ctx, common, base, "", maxTaskCommits, trailerTask+": ", reverts)
	if err != nil {
		return nil, err
	}
	reverted, done := map[string]bool{}, map[string]string{}
	for _, c := range commits {
		if reverted[c.SHA] || len(c.Trailers[trailerFailed]) > 0 {
			continue
		}
		for line := range strings.Lines(bodyOf(c)) {
			if sha, ok := strings.CutPrefix(line, reverts); ok {
				reverted[strings.Trim(sha, ". \r\n")] = true
			}
		}
		for _, t := range tasks {
			if done[t.ID] == "" && doesTask(c, t) && agrees(c, t) {
				done[t.ID] = c.SHA
			}
		}
	}
	return done, nil
}

// SameTask reports whether two tasks of different lists are the same: by id or title, and by criteria.
func SameTask(a, b session.Task) bool {
	return (a.ID == b.ID || text.OneLine(a.Title) == text.OneLine(b.Title)) &&
		slices.EqualFunc(a.AcceptanceCriteria, b.AcceptanceCriteria,
			func(x, y string) bool { return text.OneLine(x) == text.OneLine(y) })
}

// bodyOf returns the body of a commit, without the words of a worker about its own task.
func bodyOf(c gitx.Commit) string {
	if len(c.Trailers[trailerRecord]) > 0 {
		return ""
	}
	return c.Body + "\n"
}

// doesTask reports whether a commit says that it does a task: in its subject, or in a line of a squashed commit's body.
func doesTask(c gitx.Commit, t session.Task) bool {
	title, ids := text.VisibleLine(text.OneLine(t.Title)), c.Trailers[trailerTask]
	body := "\n" + bodyOf(c)
	for _, id := range ids {
		named := id + ": " + title
		if c.Subject == named ||
			strings.Contains(body, "\n- "+named+"\n") || strings.Contains(body, "\n- "+title+"\n") ||
			len(ids) == 1 && id == t.ID && strings.Contains(c.Subject, title) {
			return true
		}
	}
	return false
}
