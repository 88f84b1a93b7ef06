package loop

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/judge"
	"github.com/git-tilth/git-tilth/internal/pattern"
	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
)

// Parallel tasks: each task is an attempt in a lane, with a separate goroutine. run.mu protects their shared state.
// They commit one at a time, in the session's worktree. One goroutine, runLanes, starts tasks. held/lanes.go describes
// the state on disk after each step.

// lane is the state of one running task in runLanes.
type lane struct {
	*workspace
	index   int
	err     error
	proceed chan struct{} // closed when the lane may continue alone
}

// report is a message of a lane: it has ended, or asks to continue alone.
type report struct {
	*lane
	ended bool
}

// schedule has the running tasks, and the stop once the run must end.
type schedule struct {
	*run
	session *workspace
	at      map[int]*lane // by the task's index
	waiting []*lane       // lanes that wait until no other lane runs
	alone   *lane         // the lane that continues alone
	news    chan report
	stop    *Stop                   // the run's stop; no task starts after it
	looked  bool                    // the first task was prepared
	places  map[int]*judge.Checkout // judged checkouts by number of the lane
}

// sideBySide reports whether the next tasks run in lanes. An attempt that started in the session's worktree continues
// there first.
func (r *run) sideBySide() bool {
	i := r.next()
	if i < 0 {
		return false
	}
	inLane := r.hasLane(r.tasks[i].ID)
	if r.stepsLeft() {
		return false
	}
	if r.branch.judgedTo != "" || !inLane && r.tasks[i].ID == r.o.From.Begun && !r.ended(r.o.From.Begun) {
		return false
	}
	return r.o.Lanes > 1 || slices.ContainsFunc(r.tasks, func(t session.Task) bool {
		return !r.ended(t.ID) && r.hasLane(t.ID)
	})
}

// hasLane reports whether a task continues in a lane, because it has one or an undo restored its stash.
func (r *run) hasLane(task string) bool { return held.HasLane(r.S, task) || r.stashedAt(task) != "" }

// stashedAt returns the base of a task's lane that was stashed with the whole session, or "". A failed task starts at
// the branch's tip instead.
func (r *run) stashedAt(task string) string {
	was := r.o.From.Record
	if was == nil {
		return ""
	}
	t := was.Tasks[task]
	if !t.Attempt.Begun.Lane || t.Status != record.Working && !t.Uncommitted || !held.HasStash(r.S, task) {
		return ""
	}
	return t.Attempt.Base()
}

// ended reports whether a task needs no more work.
func (r *run) ended(task string) bool {
	tasks := r.taskList()
	i := session.IndexOf(tasks, task)
	return i < 0 || hasEnded(tasks[i])
}

// runLanes works on tasks in parallel until the run stops. Without parallel tasks it runs only the tasks that have a
// lane, and returns nil.
func (r *run) runLanes(ctx context.Context, session *workspace) *Stop {
	s := &schedule{run: r, session: session, at: map[int]*lane{},
		places: map[int]*judge.Checkout{}, news: make(chan report)}
	defer func() {
		for _, place := range s.places {
			place.Open()
		}
		_ = os.Remove(session.private) // the lanes' private files are in it
	}()
	for {
		if s.stop == nil && s.alone == nil {
			if err := s.fill(ctx); err != nil {
				s.stop = new(stopOf(ctx, err, ""))
			}
		}
		if s.alone == nil && len(s.waiting) > 0 && len(s.at) == len(s.waiting) {
			s.alone, s.waiting = s.waiting[0], s.waiting[1:]
			close(s.alone.proceed)
		}
		if len(s.at) == 0 {
			break
		}
		if msg := <-s.news; msg.ended {
			s.take(ctx, msg.lane)
		} else {
			s.waiting = append(s.waiting, msg.lane)
		}
	}
	if s.stop == nil && r.o.Lanes > 1 {
		s.stop = new(r.nothingLeft())
	}
	return s.stop
}

// fill starts every task that can start.
func (s *schedule) fill(ctx context.Context) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	for len(s.at) < max(s.o.Lanes, 1) && len(s.waiting) == 0 {
		i, err := s.nextParallel(ctx)
		if i < 0 || err != nil {
			return err
		}
		if err := s.mayAsk(); err != nil {
			return err
		}
		if err := s.ready(ctx, i); err != nil {
			return err
		}
		numbers := map[int]bool{}
		for _, l := range s.at {
			numbers[l.number] = true
		}
		number := 1
		for numbers[number] {
			number++
		}
		l := &lane{workspace: s.laneWorkspace(s.session, s.tasks[i].ID, number), index: i, proceed: make(chan struct{})}
		l.before = s.places[number]
		l.askAlone = func(ctx context.Context) error { return s.askAlone(ctx, l) }
		s.at[i] = l
		go func() {
			l.err = s.runLane(ctx, l)
			s.news <- report{l, true}
		}()
	}
	return nil
}

// ready prepares the start of a task: the session's checkout and preflight, which must not change during other tasks'
// turns. If both are done, it does not wait for lanes that commit.
func (s *schedule) ready(ctx context.Context, i int) error {
	s.mu.Lock()
	looked := s.looked && (s.branch.checked || s.o.NoPreflight)
	s.mu.Unlock()
	if looked {
		return nil
	}
	if err := s.session.takeTurn(ctx); err != nil {
		return err
	}
	defer s.session.releaseTurn()
	err := s.preflight(ctx, s.session, i)
	s.looked = err == nil
	return err
}

// nextParallel returns the index of the next task that can run in parallel with the current ones, or -1. Tasks with a
// lane come first.
func (s *schedule) nextParallel(ctx context.Context) (int, error) {
	tasks := s.taskList()
	free := func(i int) bool { return s.at[i] == nil && !s.ended(tasks[i].ID) && len(tasks[i].WaitsFor(tasks)) == 0 }
	for i, t := range tasks {
		if s.at[i] == nil && !s.ended(t.ID) && s.hasLane(t.ID) {
			return i, nil
		}
	}
	if s.o.Lanes < 2 {
		return -1, nil
	}
	some := slices.ContainsFunc(tasks, func(t session.Task) bool { return len(t.Touches) > 0 })
	for i, t := range tasks {
		if !free(i) {
			continue
		}
		fits, err := s.fits(ctx, tasks, t, some)
		if err != nil || fits {
			return i, err
		}
	}
	return -1, nil
}

// fits reports whether a task's touches overlap with no running task's. If some tasks of a list have touches, a task
// without touches runs alone.
func (s *schedule) fits(ctx context.Context, tasks []session.Task, t session.Task, some bool) (bool, error) {
	if !some || len(s.at) == 0 {
		return true, nil
	}
	paths, err := s.Git.List(ctx, gitx.InRepo(s.Common, "ls-tree", "-r", "-z", "--name-only", "--full-tree",
		"refs/heads/"+s.S.Branch()))
	if err != nil {
		return false, err
	}
	mine := touched(t)
	for i := range s.at {
		theirs := touched(tasks[i])
		if mine == nil || theirs == nil || pattern.Overlap(mine, theirs, paths) {
			return false, nil
		}
	}
	return true, nil
}

// touched returns the paths in a task's touches, or nil without touches. It ignores unreadable patterns, which the
// user may have written since the plan was checked.
func touched(t session.Task) *pattern.Paths {
	if len(t.Touches) == 0 {
		return nil
	}
	paths, _ := pattern.NewPaths(t.Touches...)
	return paths
}

// take handles the end of a lane.
func (s *schedule) take(ctx context.Context, l *lane) {
	delete(s.at, l.index)
	if l.place != nil {
		s.places[l.number] = l.place
	}
	s.waiting = slices.DeleteFunc(s.waiting, func(w *lane) bool { return w == l })
	if s.alone == l {
		s.alone = nil
	}
	if l.err == nil {
		return
	}
	stop := stopOf(ctx, l.err, l.lane)
	if s.taskList()[l.index].Status == session.TaskFailed && s.o.KeepGoing {
		return
	}
	if s.stop == nil || s.stop.Reason == record.Interrupted {
		s.stop = &stop
	}
	if !stop.TaskFailed() {
		s.end(stop)
	}
}

// runLane works on one task in its lane, and deletes the lane when the task ends.
func (r *run) runLane(ctx context.Context, l *lane) error {
	defer func() {
		l.removeTemp()
		_ = l.dropJudgement() // after an error, the next run drops it
		l.dropSeedPlace()
	}()
	err := r.enterLane(ctx, l)
	if err == nil {
		err = r.task(ctx, l.workspace, l.index)
	}
	l.releaseTurn()
	if r.o.Lease != nil && ctx.Err() == nil {
		r.o.Lease.Progress(ctx)
	}
	if r.ended(l.lane) {
		return errors.Join(err, held.RemoveLane(proc.IgnoreFirstSignal(ctx), r.Handle, l.lane))
	}
	return err
}

// enterLane creates the lane if it does not exist, and everything that an attempt needs in it.
func (r *run) enterLane(ctx context.Context, l *lane) error {
	if !held.HasLane(r.S, l.lane) {
		tip, err := r.tip(ctx)
		if err == nil {
			err = held.MakeLane(ctx, r.Handle, l.lane, cmp.Or(r.stashedAt(l.lane), tip), l.laneEnv()...)
		}
		if err != nil {
			return err
		}
	}
	return errors.Join(os.MkdirAll(filepath.Dir(l.judging), 0o700), l.enclose(), l.openPlace(ctx))
}

// laneWorkspace returns the lane of a task, which may not exist yet.
func (r *run) laneWorkspace(session *workspace, task string, number int) *workspace {
	return &workspace{run: r, lane: task, number: number, path: held.LanePath(r.S, task),
		judging: held.LaneJudge(r.S, number), private: filepath.Join(session.private, task),
		hooked: session.hooked, hooks: session.hooks, removeTemp: func() {}, notified: map[string]bool{}}
}

// askAlone waits until no other lane runs.
func (s *schedule) askAlone(ctx context.Context, l *lane) error {
	s.news <- report{lane: l}
	select {
	case <-l.proceed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// takeTurn waits until no other lane commits. Without lanes it returns at once.
func (g *workspace) takeTurn(ctx context.Context) error {
	if g.holds {
		return nil
	}
	select {
	case g.run.turn <- struct{}{}:
		g.holds = true
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (g *workspace) releaseTurn() {
	if g.holds {
		g.holds = false
		<-g.run.turn
	}
}

// end makes all lanes stop after their current turns, because the run cannot continue.
func (r *run) end(s Stop) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ending == nil {
		r.ending = &s
	}
}

// endsFor returns the stop of another lane; nil while the run continues.
func (r *run) endsFor() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ending == nil {
		return nil
	}
	return *r.ending
}

// taskList returns a copy of the plan.
func (r *run) taskList() []session.Task {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.tasks)
}
