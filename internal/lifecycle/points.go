package lifecycle

import (
	"cmp"
	"context"
	"slices"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
)

// PointSeed is the name of the point before any work.
const PointSeed = "seed"

// Point is a moment of a session that a rewind can restore: before any work, or before the first attempt at a task.
type Point struct {
	Name   string
	SHA    string   // tip of the branch at that point
	counts int64    // the record up to it
	done   []string // the tasks that were done
	later  []string // attempted tasks after the point
	index  int      // index of the task in prd.json
}

// Points lists a session's points: the seed, then the tasks in the order of prd.json. A recorded commit that is not on
// the branch is not a point.
func Points(ctx context.Context, g *gitx.Git, s *session.Session, common string) ([]Point, error) {
	begin, err := held.SeedBeginning(s)
	if err != nil {
		return nil, err
	}
	seed, err := held.ResolveSeed(ctx, g, common, begin.Seed.SHA)
	if err != nil {
		return nil, err
	}
	counts, err := lineEnd(s, begin.SeedAt)
	if err != nil {
		return nil, err
	}
	points := []Point{{Name: PointSeed, SHA: seed, counts: counts, done: []string{}}}
	tip, ok, err := g.BranchTip(ctx, common, s.Branch())
	if err != nil || !ok {
		return points, err
	}
	commits, at, err := held.CommitsSince(ctx, g, common, tip, seed)
	if err != nil || at.SHA == "" {
		return points, err
	}
	state, err := s.State()
	if err != nil {
		return nil, err
	}
	tasks, err := s.Tasks()
	if err != nil {
		return nil, err
	}
	for i, t := range tasks {
		of := state.Tasks[t.ID]
		p := Point{Name: t.ID, SHA: baseOf(of, commits), counts: counts, index: i}
		if b := of.First; b != nil {
			p.counts = b.Counts
			if !b.Lane || p.SHA == "" { // otherwise other tasks were committed during its attempts
				p.SHA = cmp.Or(b.Base, p.SHA)
			}
			if b.Done != nil && !b.Lane {
				p.done = *b.Done
			}
		}
		at := slices.IndexFunc(commits, func(c gitx.Commit) bool { return c.SHA == p.SHA })
		if at < 0 && p.SHA != seed {
			continue
		}
		for id, of := range state.Tasks {
			if of.Last >= p.counts {
				p.later = append(p.later, id)
			}
		}
		if p.done == nil { // the record does not say
			p.done = doneAt(state, tasks, commits, at, i)
		}
		points = append(points, p)
	}
	return points, nil
}

// baseOf returns the parent of the first commit of a task, or "".
func baseOf(t record.Task, commits []gitx.Commit) string {
	for _, c := range slices.Backward(commits) {
		if slices.Contains(t.Commits, c.SHA) && len(c.Parents) > 0 {
			return c.Parents[0]
		}
	}
	return ""
}

// doneAt returns the tasks with a commit at or below the commit with index at, -1 for the seed. A task that is done
// without a commit counts if it precedes the point's task in the plan.
func doneAt(state *record.State, tasks []session.Task, commits []gitx.Commit, at, task int) (done []string) {
	for i, t := range tasks {
		c := slices.IndexFunc(commits, func(c gitx.Commit) bool {
			return slices.Contains(state.Tasks[t.ID].Commits, c.SHA) && held.SignatureOf(c).Failed == ""
		})
		if c >= 0 && at >= 0 && c >= at || c < 0 && i < task && t.Status == session.TaskDone {
			done = append(done, t.ID)
		}
	}
	return done
}

// At returns the tasks with their statuses at the point, and the tasks whose ledgers and conversations must be
// deleted. An earlier task in the plan that was neither done nor tried again after the point keeps its status.
func (p Point) At(tasks []session.Task) (then []session.Task, drop []string) {
	then = slices.Clone(tasks)
	for i := range then {
		t := &then[i]
		switch {
		case slices.Contains(p.done, t.ID):
			t.Status = session.TaskDone
		case i >= p.index || t.Status == session.TaskDone || slices.Contains(p.later, t.ID):
			t.Status, drop = session.TaskPending, append(drop, t.ID)
		}
	}
	return then, drop
}

// toDo returns the tasks that a resume does, or tries again.
func toDo(tasks []session.Task) []string {
	var ids []string
	for _, t := range tasks {
		if t.Status != session.TaskDone && t.Status != session.TaskSkipped {
			ids = append(ids, t.ID)
		}
	}
	return ids
}
