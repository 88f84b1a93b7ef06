package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/rewind"
	"github.com/git-tilth/git-tilth/internal/session"
)

// Fork says which session to make.
type Fork struct {
	Store session.Store
	From  *session.Session
	At    string // the name of a point
	Label string
	Start record.SessionStart // who will work, and within what limits
}

// parent is the session that a fork is of, at the point.
type parent struct {
	*session.Session
	check  *session.Checkpoint
	common string
	point  rewind.Point
	tasks  []session.Task // as they are there
	begin  *record.State
	read   int64 // the record's length before anything was read
}

// Fork makes the session. The other one is only read: it may be running.
func (f Fork) Fork(ctx context.Context, d held.Deps) (*session.Session, error) {
	p, err := f.parent(ctx, d.Git)
	if err != nil {
		return nil, err
	}
	start := f.Start
	start.Phase, start.ForkedFrom, start.At, start.Base = "fork", p.ID, f.At, p.begin.Base
	start.TaskCount = len(p.tasks)
	if start.Tasks, err = p.behind(ctx, d.Git); err != nil {
		return nil, err
	}
	n := New{Location: gitx.Location{Source: p.check.Source, CommonDir: p.common},
		Label: cmp.Or(f.Label, p.check.Label), Start: start}
	return Import{
		Store: f.Store, ID: newID(d), Location: n.Location, Tip: p.point.SHA, Files: p.point.SHA,
		Step: "fork of session " + p.ID, Again: "git tilth fork " + p.ID,
		Fill: func(h *held.Handle) error {
			h.Checkpoint = n.checkpoint(h)
			h.Checkpoint.ForkedFrom, h.Checkpoint.ForkedAt = p.ID, p.point.SHA
			if err := h.Change(func() error { return copyParent(h, p) }); err != nil {
				return err
			}
			return begin(h, n)
		},
		Furnished: func(h *held.Handle) error {
			if err := p.stayed(); err != nil {
				return err
			}
			return endFork(h, p)
		},
	}.Arrive(ctx, d)
}

// parent reads the forked session, and refuses a point that it does not have.
func (f Fork) parent(ctx context.Context, g *gitx.Git) (*parent, error) {
	p := &parent{Session: f.From}
	cannot := func(err error) (*parent, error) {
		return nil, held.Refuse("git tilth show "+f.From.ID, "session %s cannot be forked: %s", f.From.ID, err)
	}
	if fi, err := os.Stat(p.Path(session.RecordFile)); err == nil {
		p.read = fi.Size()
	}
	var err error
	if p.check, p.common, err = held.AtRest(f.From); err != nil {
		return nil, err
	}
	if p.begin, err = p.State(); err != nil {
		return cannot(err)
	}
	points, err := rewind.Points(ctx, g, f.From, p.common)
	if err != nil {
		return cannot(err)
	}
	i := slices.IndexFunc(points, func(at rewind.Point) bool { return at.Name == f.At })
	if i < 0 {
		return cannot(fmt.Errorf("it has no point %q; its points are %s", f.At, rewind.Names(points)))
	}
	p.point = points[i]
	if p.tasks, err = p.Tasks(); err != nil {
		return cannot(err)
	}
	p.tasks, _ = p.point.At(p.tasks)
	for i := range p.tasks {
		if p.tasks[i].Status == session.TaskFailed {
			p.tasks[i].Status = session.TaskPending
		}
	}
	return p, nil
}

// stayed refuses a session that was rewound since it was read, because the copied files would not agree.
func (p *parent) stayed() error {
	back := held.Unfinished(p.Session)
	_, _, err := record.Scan(p.Path(session.RecordFile), p.read, func(l record.Line) error {
		_, is := l.WentBack()
		back = back || is
		return nil
	})
	if back || errors.Is(err, jsonl.ErrShrunk) {
		return held.Refuse("git tilth fork "+p.ID, "session %s was rewound in the meantime", p.ID)
	}
	return err
}

// behind are the tasks that are done at the point, with their commits, or skipped.
func (p *parent) behind(ctx context.Context, g *gitx.Git) (map[string]record.TaskState, error) {
	states := map[string]record.TaskState{}
	for _, t := range p.tasks {
		if t.Status != session.TaskPending {
			states[t.ID] = record.TaskState{Status: t.Status}
		}
	}
	commits, _, err := held.CommitsSince(ctx, g, p.common, p.point.SHA, p.begin.Seed.SHA)
	shared := held.Inherited(ctx, g, p.common, p.begin.Seed.SHA, commits, p.check)
	who := held.AuthorIn(p.Session, p.tasks, shared)
	for _, c := range commits {
		if id, ok := who.Done(c); ok && states[id].Status == session.TaskDone && states[id].Commit == "" {
			states[id] = record.TaskState{Status: session.TaskDone, Commit: c.SHA}
		}
	}
	return states, err
}

// copyParent fills a fork's directory with the other session's files at the point.
func copyParent(h *held.Handle, p *parent) error {
	if err := h.SaveTasks(p.tasks); err != nil {
		return err
	}
	for _, name := range []string{session.SeedMetaFile, session.InterviewFile} {
		if _, err := os.Lstat(p.Path(name)); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := jsonl.CopyFile(p.Path(name), h.S.Path(name)); err != nil {
			return err
		}
	}
	// Of a task that was taken out of the plan there may be files too.
	notDone := func(task string) bool {
		return !slices.ContainsFunc(p.tasks, func(t session.Task) bool {
			return t.ID == task && t.Status == session.TaskDone
		})
	}
	if err := rewind.CopyFiles(p.Session, h.S, rewind.TaskDirs, notDone); err != nil {
		return err
	}
	return rewind.DropEmpty(h.S)
}

// endFork makes the session prepared.
func endFork(h *held.Handle, p *parent) error {
	prepared := record.SessionPrepared{PRDEntries: len(p.tasks), TokensUsed: new(int64),
		Usage: record.JSON(h.Checkpoint.Usage), StartedAt: h.Checkpoint.StartedAt}
	if was := p.begin.Prepared; was != nil {
		prepared.TestFiles, prepared.InterviewerModel = was.TestFiles, was.InterviewerModel
	}
	if err := h.Append(&prepared); err != nil {
		return err
	}
	return noteSeed(h, p.begin.Seed.SHA)
}
