package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
)

// Fork describes the session to create.
type Fork struct {
	Store session.Store
	From  *session.Session
	At    string // the name of a point
	Label string
	Start record.SessionStart // agents and limits
}

// parent is the session from which a fork is made, at the point.
type parent struct {
	*session.Session
	check  *session.Checkpoint
	common string
	point  Point
	tasks  []session.Task // tasks of the other session
	begin  *record.State
	read   int64 // the record's length before anything was read
}

// Fork creates the session. It only reads the other one, which may be running.
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
			h.Checkpoint = n.checkpoint(ctx, h)
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
	points, err := Points(ctx, g, f.From, p.common)
	if err != nil {
		return cannot(err)
	}
	i := slices.IndexFunc(points, func(at Point) bool { return at.Name == f.At })
	if i < 0 {
		return cannot(fmt.Errorf("it has no point %q; its points are %s", f.At, pointNames(points)))
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
		_, _, is := l.WentBack()
		back = back || is
		return nil
	})
	if back || errors.Is(err, jsonl.ErrShrunk) {
		return held.Refuse("git tilth fork "+p.ID, "session %s was rewound in the meantime", p.ID)
	}
	return err
}

// behind returns the tasks that are done at the point, with their commits, or skipped.
func (p *parent) behind(ctx context.Context, g *gitx.Git) (map[string]record.TaskState, error) {
	states := map[string]record.TaskState{}
	commits, _, err := held.CommitsSince(ctx, g, p.common, p.point.SHA, p.begin.Seed.SHA)
	for _, t := range p.tasks {
		state := record.TaskState{Status: t.Status}
		sha := p.begin.Tasks[t.ID].Commit
		below := slices.ContainsFunc(commits, func(c gitx.Commit) bool { return c.SHA == sha })
		if below && t.Status == session.TaskDone {
			state.Commit = sha
		}
		if t.Status != session.TaskPending {
			states[t.ID] = state
		}
	}
	return states, err
}

// copyParent fills a fork's directory with the other session's files at the point.
func copyParent(h *held.Handle, p *parent) error {
	if err := h.S.SaveTasks(p.tasks); err != nil {
		return err
	}
	paths := []string{session.SeedMetaFile, session.InterviewFile}
	for _, dir := range TaskDirs {
		entries, err := os.ReadDir(p.Path(dir))
		if err == nil {
			err = os.Mkdir(h.S.Path(dir), 0o700)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for _, e := range entries { // also of tasks that were taken out of the plan
			task, _, _ := strings.Cut(e.Name(), ".")
			i := session.IndexOf(p.tasks, task)
			if i >= 0 && p.tasks[i].Status == session.TaskDone && e.Type().IsRegular() {
				paths = append(paths, dir+"/"+e.Name())
			}
		}
	}
	defer dropEmpty(h.S)
	return held.CopyFiles(p.Dir, h.S.Dir, paths)
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

// Import makes a session from another one: a fork of a local session, or a session from another machine. Until it is
// complete it counts as a session with an unfinished teardown: no command uses it, and `reset` and the next import
// remove it.
//
// The state on disk after each step:
//  1. .fork-<id>/ with the mark              no session; the next import removes it
//  2. <id>/ with the mark
//  3. its files; for a fork, session_start
//  4. checkpoint.json
//  5. branch and worktree, its uncommitted work
//  6. setup done by tilth.setup and tilth.copy
//  7. the work of failed tasks in kept.git; for a fork, session_prepared, seed_committed; the checkpoint prepared
//  8. no mark                                a session like any other
type Import struct {
	Store    session.Store
	ID       string
	Location gitx.Location
	Tip      string // tip of the branch in the repository
	Files    string // a commit of the uncommitted work on Tip, or Tip
	Step     string // current step, for errors
	Again    string // the command that does it
	// Fill writes the session's files, all but the checkpoint, which it sets.
	Fill func(*held.Handle) error
	// Furnished completes the session once its worktree is ready.
	Furnished func(*held.Handle) error
}

// Arrive creates the session.
func (a Import) Arrive(ctx context.Context, d held.Deps) (*session.Session, error) {
	clearForks(ctx, d, a.Store, a.Location.CommonDir)
	branch := session.DefaultBranch(a.ID)
	_, there, err := d.Git.BranchTip(ctx, a.Location.CommonDir, branch)
	if _, absent := a.Store.Find(a.ID); absent == nil && d.Git.IsDryRun() {
		there = false // a real run would have deleted it with the existing session
	}
	if err != nil || there {
		if s, missing := a.Store.Find(a.ID); err == nil && missing == nil {
			return nil, held.InUse(s) // another process made it first
		}
		return nil, errors.Join(err, &held.RefusedError{Why: "branch " + branch + " already exists",
			Hint: "git branch -m " + branch + " another-name"})
	}
	n := New{Store: a.Store, making: a.Location.CommonDir}
	s, unlock, err := n.directory(d, a.ID)
	if err != nil {
		return nil, err
	}
	h := &held.Handle{Deps: d, S: s, Common: a.Location.CommonDir, Unlock: unlock}
	defer h.Close()
	if err := a.install(ctx, h); err != nil {
		undoCreate(ctx, h)
		return nil, &held.StepError{Step: a.Step, Err: err, Hint: a.Again}
	}
	return s, nil
}

func (a Import) install(ctx context.Context, h *held.Handle) error {
	if err := a.Fill(h); err != nil {
		return err
	}
	c := h.Checkpoint
	c.Source, c.Workspace, c.Branch = a.Location.Source, h.S.Workspace(), h.S.Branch()
	c.GitCommonDir = a.Location.CommonDir
	if err := h.Save(); err != nil {
		return err
	}
	wt, err := h.Git.AddWorktree(ctx, h.Common, h.Path(), h.S.Branch(), a.Tip, true)
	if err != nil {
		return err
	}
	if a.Files != a.Tip {
		err := h.Git.Reset(ctx, wt, a.Files, true)
		if err == nil {
			err = h.Git.Reset(ctx, wt, a.Tip, false)
		}
		if err != nil {
			return err
		}
	}
	if err := h.RunSetup(ctx, h.Path()); err != nil {
		return err
	}
	if err := a.Furnished(h); err != nil {
		return err
	}
	return h.Change(func() error { return os.Remove(h.S.Path(session.ResetMarkFile)) })
}
