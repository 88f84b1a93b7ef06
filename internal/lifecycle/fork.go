package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
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
	point  Point
	tasks  []session.Task // as they are there
	begin  *record.State
	read   int64 // the record's length before anything was read
}

// Fork makes the session. The other one is only read: it may be running.
func (f Fork) Fork(ctx context.Context, d Deps) (*session.Session, error) {
	p, err := f.parent(ctx, d.Git)
	if err != nil {
		return nil, err
	}
	start := f.Start
	start.Phase, start.ForkedFrom, start.At, start.Base = "fork", p.ID, f.At, p.begin.Base
	if start.Base == "" { // of another tool, whose branch begins with the seed
		start.Base, _ = d.Git.RevParse(ctx, p.common, p.begin.Seed.SHA+"^^{commit}")
	}
	start.TaskCount = len(p.tasks)
	if start.Tasks, err = p.behind(ctx, d.Git); err != nil {
		return nil, err
	}
	n := New{Location: gitx.Location{Source: p.check.Source, CommonDir: p.common},
		Label: cmp.Or(f.Label, p.check.Label), Start: start}
	return Import{
		Store: f.Store, ID: newID(d), Location: n.Location, Tip: p.point.SHA, Files: p.point.SHA,
		Step: "fork of session " + p.ID, Again: "git tilth fork " + p.ID,
		Fill: func(h *Handle) error {
			h.Checkpoint = n.checkpoint(h)
			h.Checkpoint.ForkedFrom, h.Checkpoint.ForkedAt = p.ID, p.point.SHA
			if err := h.change(func() error { return h.copyParent(p) }); err != nil {
				return err
			}
			return h.begin(n)
		},
		Furnished: func(h *Handle) error {
			if err := p.stayed(); err != nil {
				return err
			}
			return h.endFork(p)
		},
	}.Arrive(ctx, d)
}

// parent reads the session that is forked, and refuses what is no point of it.
func (f Fork) parent(ctx context.Context, g *gitx.Git) (*parent, error) {
	p := &parent{Session: f.From}
	cannot := func(err error) (*parent, error) {
		return nil, refuse("git tilth show "+f.From.ID, "session %s cannot be forked: %s", f.From.ID, err)
	}
	if fi, err := os.Stat(p.Path(session.RecordFile)); err == nil {
		p.read = fi.Size()
	}
	var err error
	if p.check, err = f.From.Checkpoint(); err != nil {
		return cannot(err)
	}
	if Unfinished(f.From, p.check) {
		return cannot(errors.New("a rewind or reset of it was begun and not finished"))
	}
	if p.common, err = CommonOf(f.From, p.check); err != nil {
		hint := sourceHint(f.From, WorkspaceOf(f.From, p.check))
		return nil, refuse(hint, "session %s cannot be forked: %s", f.From.ID, err)
	}
	if p.begin, err = record.ReadBeginning(p.Path(session.RecordFile)); err != nil {
		return cannot(err)
	}
	points, err := Points(ctx, g, f.From, p.common)
	if err != nil {
		return cannot(err)
	}
	i := slices.IndexFunc(points, func(at Point) bool { return at.Name == f.At })
	if i < 0 {
		return cannot(fmt.Errorf("it has no point %q: there are %s", f.At, namesOf(points)))
	}
	p.point = points[i]
	if p.tasks, err = p.Tasks(); err != nil {
		return cannot(err)
	}
	p.tasks, _ = p.point.at(p.tasks)
	for i := range p.tasks {
		if p.tasks[i].Status == session.TaskFailed {
			p.tasks[i].Status = session.TaskPending
		}
	}
	return p, nil
}

// stayed refuses a session that was taken back since it was read: what was copied of it does not go together then.
func (p *parent) stayed() error {
	check, err := p.Checkpoint()
	if err != nil {
		return err
	}
	back := Unfinished(p.Session, check)
	_, _, err = record.Scan(p.Path(session.RecordFile), p.read, func(l record.Line) error {
		_, is := l.WentBack()
		back = back || is
		return nil
	})
	if back || errors.Is(err, jsonl.ErrShrunk) {
		return refuse("git tilth fork "+p.ID, "session %s was taken back meanwhile", p.ID)
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
	commits, _, err := commitsSince(ctx, g, p.common, p.point.SHA, p.begin.Seed.SHA)
	shared := inherited(ctx, g, p.common, p.begin.Seed.SHA, commits, p.check)
	who := authorIn(p.Session, p.check, p.tasks, shared)
	for _, c := range commits {
		if id, ok := who.done(c); ok && states[id].Status == session.TaskDone && states[id].Commit == "" {
			states[id] = record.TaskState{Status: session.TaskDone, Commit: c.SHA}
		}
	}
	return states, err
}

// copyParent fills a fork's directory with what the other session had at the point.
func (h *Handle) copyParent(p *parent) error {
	if err := h.SaveTasks(p.tasks); err != nil {
		return err
	}
	for _, name := range []string{session.SeedMetaFile, session.InterviewFile} {
		if _, err := os.Lstat(p.Path(name)); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := copyFile(p.Path(name), h.S.Path(name)); err != nil {
			return err
		}
	}
	// Of a task that was taken out of the plan there may be files too.
	notDone := func(task string) bool {
		return !slices.ContainsFunc(p.tasks, func(t session.Task) bool {
			return t.ID == task && t.Status == session.TaskDone
		})
	}
	if err := copyFiles(p.Session, h.S, TaskDirs, notDone); err != nil {
		return err
	}
	return dropEmpty(h.S)
}

// endFork makes the session one that is prepared.
func (h *Handle) endFork(p *parent) error {
	prepared := record.SessionPrepared{PRDEntries: len(p.tasks), TokensUsed: new(int64),
		Usage: record.JSON(h.Checkpoint.Usage), StartedAt: h.Checkpoint.StartedAt}
	if was := p.begin.Prepared; was != nil {
		prepared.TestFiles, prepared.InterviewerModel = was.TestFiles, was.InterviewerModel
	}
	if err := h.append(&prepared); err != nil {
		return err
	}
	return h.noteSeed(p.begin.Seed.SHA)
}

// lockRoot locks the sessions root: the directory of a session that is not locked yet looks like one that a kill has
// left.
func lockRoot(root string) (release func(), err error) {
	return lockDir(root, rootPatience, fmt.Errorf("another process keeps %s locked", root))
}

// lockDir locks a directory, where its file system locks directories. Where another process keeps it locked for as long
// as one waits the error is busy.
func lockDir(dir string, patience time.Duration, busy error) (release func(), err error) {
	f, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	for end := time.Now().Add(patience); ; time.Sleep(rootPause) {
		switch err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); {
		case err != unix.EWOULDBLOCK && err != unix.EINTR:
			return func() { f.Close() }, nil
		case !time.Now().Before(end):
			return nil, errors.Join(busy, f.Close())
		}
	}
}

// A session gets its name within milliseconds. Whoever has the sessions root for longer, such as a worker that runs on,
// is not waited for.
var rootPatience, rootPause = 10 * time.Second, 5 * time.Millisecond

// InUse is the error of what another process makes, or has just made, of a session.
func InUse(s *session.Session) *session.BusyError {
	if holder, busy := s.Holder(); busy {
		return holder
	}
	return &session.BusyError{Session: s.ID}
}

// clearForks removes what forks that were killed have left. What cannot be removed is left to `reset`.
func clearForks(ctx context.Context, d Deps, store session.Store, common string) {
	if d.Git.IsDryRun() {
		return
	}
	ids, _ := store.IDs()
	for _, id := range ids {
		s, err := store.Find(id)
		if err != nil {
			continue
		}
		if _, _, fork := resetMark(s); fork {
			_ = finishTeardown(ctx, d, s, common) // one that is locked is being made
		}
	}
}

// unnamed are the directories of sessions whose makers were killed before they had a name, where the root is locked.
func unnamed(store session.Store) []string {
	left, _ := filepath.Glob(filepath.Join(text.GlobQuote(store.Root), session.DraftPrefix+"*"))
	return slices.DeleteFunc(left, func(dir string) bool {
		id := strings.TrimPrefix(filepath.Base(dir), session.DraftPrefix)
		_, busy := (&session.Session{ID: id, Dir: dir}).Holder()
		return busy || !session.ValidID(id)
	})
}
