package lifecycle

import (
	"cmp"
	"context"
	"slices"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/session"
)

// PointSeed is the name of the point before any work.
const PointSeed = "seed"

// Point is a moment of a session that a rewind can restore: before any work, or before the first attempt at a task.
type Point struct {
	Name   string
	SHA    string   // of the commit that the branch was at
	counts int64    // the record up to it
	done   []string // the tasks that were done
	later  []string // those with an attempt behind it
	index  int      // of the task in prd.json
}

// Points lists the points of a session: the seed, then those of the tasks, in the order of prd.json. A recorded commit
// that is not on the branch is not a point.
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
	check, err := s.Checkpoint()
	if err != nil {
		return nil, err
	}
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
	who := held.AuthorIn(s, tasks, held.Inherited(ctx, g, common, seed, commits, check))
	for i, t := range tasks {
		p := Point{Name: t.ID, SHA: who.BaseOf(t.ID, commits), counts: counts, index: i}
		if b := state.Tasks[t.ID].First; b != nil {
			p.counts, p.SHA = b.Counts, cmp.Or(b.Base, p.SHA)
			switch own := who.BaseOf(t.ID, commits); {
			case b.Lane && own != "": // others were committed while it was worked on
				p.SHA = own
			case b.Done != nil && !b.Lane:
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
			p.done = who.DoneAt(tasks, commits, at, i)
		}
		points = append(points, p)
	}
	return points, nil
}

// At returns the tasks with their statuses at the point, and those to drop ledgers and conversations of. An earlier
// task in the plan that was neither done nor tried again after the point keeps its status.
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
