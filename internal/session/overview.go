package session

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidwall/gjson"

	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/record"
)

// Overview is one session as list shows it; the tags are the members of --json. Times are RFC 3339. Files that could
// not be read are named in Problems.
type Overview struct {
	ID           string     `json:"session_id"`
	Dir          string     `json:"-"`
	Status       string     `json:"status"` // status in the checkpoint; see State
	Source       string     `json:"source"`
	GitCommonDir string     `json:"-"`
	Branch       string     `json:"branch"`
	Workspace    string     `json:"workspace"`
	Label        string     `json:"label"`
	Tasks        TaskCounts `json:"tasks"`
	TokensUsed   int64      `json:"tokens_used"`
	TokensCached int64      `json:"tokens_cached"` // tokens from a provider's cache, not in tokens_used
	Cost         float64    `json:"cost"`          // dollars, all roles
	LastStop     string     `json:"last_stop"`     // its reason; empty without a stop, or if work continued after it
	LastStopAt   string     `json:"last_stop_at,omitempty"`
	StartedAt    string     `json:"started_at"` // start time in the checkpoint
	LastEventAt  string     `json:"last_event_at,omitempty"`
	Busy         *BusyError `json:"holder,omitempty"`     // the process that holds the session now
	Rewinding    bool       `json:"rewinding,omitempty"`  // an unfinished reset --to-seed
	GoingBack    bool       `json:"going_back,omitempty"` // an unfinished rewind or undo
	Rewound      string     `json:"rewound,omitempty"`    // the point it was rewound to, if nothing was done since
	ForkedFrom   string     `json:"forked_from,omitempty"`
	Resetting    bool       `json:"resetting,omitempty"` // an unfinished teardown
	Skipped      int        `json:"skipped,omitempty"`   // lines that are not events
	Problems     []string   `json:"problems,omitempty"`  // faults of its files, one line each

	HasWorktree bool `json:"-"`

	// Request is the last known state of the session's pull or merge request; nil for none.
	Request *Request `json:"request,omitempty"`

	// Summary is the roll-up of the record; nil if it could not be read.
	Summary *Summary `json:"-"`

	// Facts that only the repository has.
	Taken    bool `json:"-"` // all finished work is elsewhere too
	Cleansed bool `json:"-"` // worktree and branch are gone
	// NothingToTake is set if each commit of a finished task is in another branch, even if other tasks are open.
	NothingToTake bool `json:"-"`
}

// Finished reports whether no task has failed or is pending.
func (o Overview) Finished() bool {
	return o.Tasks.Done > 0 && o.Tasks.Done+o.Tasks.Skipped == o.Tasks.Total
}

// TaskCounts are the tasks of a session by status.
type TaskCounts struct {
	Total   int `json:"total"`
	Done    int `json:"done"`
	Failed  int `json:"failed"`
	Pending int `json:"pending"`
	Waiting int `json:"waiting"` // pending tasks with an unfinished need
	Skipped int `json:"skipped"`
}

// count adds a task with a status.
func (c *TaskCounts) count(status string) {
	c.Total++
	switch status {
	case TaskDone:
		c.Done++
	case TaskFailed:
		c.Failed++
	case TaskSkipped:
		c.Skipped++
	default:
		c.Pending++
	}
}

// CountTasks returns the tasks of a plan by status.
func CountTasks(plan []Task) (c TaskCounts) {
	for _, t := range plan {
		c.count(t.Status)
		if t.Status == TaskPending && len(t.WaitsFor(plan)) > 0 {
			c.Waiting++
		}
	}
	return c
}

// State returns the word for a session in lists. A stopped session has the status `running` in its checkpoint. A
// session without a holder and without a stop has crashed.
func (o Overview) State() string {
	switch {
	case o.Busy != nil:
		return "running"
	case o.Resetting:
		return "resetting"
	case o.Rewinding, o.GoingBack:
		return "rewinding"
	case o.Cleansed, o.Taken, o.Proposed(), o.Status != Running:
		return o.Word()
	case o.Rewound != "":
		return "rewound"
	case o.LastStop != "":
		return "stopped"
	}
	return "crashed"
}

// Word returns the session's status, or proposed, taken or cleansed, for programs; damaged if the status cannot be
// read.
func (o Overview) Word() string {
	switch {
	case o.Cleansed:
		return "cleansed"
	case o.Proposed():
		return "proposed"
	case o.Taken:
		return "taken"
	}
	return cmp.Or(o.Status, "damaged")
}

// Proposed reports whether the session's request was open when it was last seen.
func (o Overview) Proposed() bool { return o.Request != nil && o.Request.State == RequestOpen }

// wantedFunc selects sessions by their repository, as the checkpoint and the worktree's link name it; each name may be
// empty.
type wantedFunc = func(s *Session, source, commonDir, linked string) bool

// Overview reads the given sessions concurrently and returns them in the given order. wanted, if not nil, selects them,
// and is called concurrently; for other sessions it reads only the checkpoint and the link.
func (st Store) Overview(ids []string, wanted wantedFunc) []Overview {
	all, in, lines := make([]Overview, len(ids)), make([]bool, len(ids)), make([]string, len(ids))
	var cached map[string]string
	if len(ids) > fewListed {
		cached = st.listedLines()
	}
	var next, fresh atomic.Int64
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(ids)) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(ids); i = int(next.Add(1)) - 1 {
				s, done := st.session(ids[i]), false
				if lines[i] = cached[ids[i]]; lines[i] != "" {
					if in[i], done = all[i].fromListed(s, lines[i], wanted); done {
						continue
					}
				}
				stamp, settled := s.stamp(time.Now())
				if in[i] = all[i].read(s, wanted); in[i] && settled {
					lines[i] = all[i].listedLine(s, stamp)
					fresh.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if fresh.Load() > fewListed {
		st.saveListed(ids, lines)
	}
	out := all[:0]
	for i := range all {
		if in[i] {
			out = append(out, all[i])
		}
	}
	return out
}

// Overview reads one session.
func (s *Session) Overview() (o Overview) {
	o.read(s, nil)
	return o
}

// read reads the session's files, and reports whether the session is wanted. It reads again if the session's run ended
// or the session was removed meanwhile.
func (o *Overview) read(s *Session, wanted wantedFunc) bool {
	*o = Overview{}
	is := o.readOnce(s, wanted)
	if is && o.Status == Running && o.Busy == nil && (o.LastStop == "" || record.ReasonOf(o.LastStop).Last) {
		*o = Overview{}
		is = o.readOnce(s, wanted)
	}
	return is
}

func (o *Overview) readOnce(s *Session, wanted wantedFunc) bool {
	check, err := s.StoredCheckpoint()
	if check == nil {
		check = &Checkpoint{}
	}
	linked := s.commonFromLink()
	if wanted != nil && !wanted(s, check.Source, check.GitCommonDir, linked) {
		return false
	}
	o.ID, o.Dir, o.Source, o.GitCommonDir = s.ID, s.Dir, check.Source, check.GitCommonDir
	o.Branch, o.Workspace = cmp.Or(check.Branch, DefaultBranch(s.ID)), cmp.Or(check.Workspace, s.Workspace())
	o.Status, o.Label, o.ForkedFrom, o.StartedAt = check.Status, check.Label, check.ForkedFrom, check.StartedAt
	if o.Source+o.GitCommonDir == "" {
		o.GitCommonDir = linked
	}
	o.readRecord(s, check)
	if o.Status == Running || o.Status == "" {
		o.Busy, _ = s.Holder()
	}
	if !errors.Is(err, fs.ErrNotExist) || o.Busy == nil { // else another process creates or removes the session
		o.problem(CheckpointFile, err)
	}
	o.Request, o.HasWorktree = s.Request(), linked != "" || isThere(o.Workspace)
	o.Resetting = isThere(s.Path(ResetMarkFile))
	if data, err := jsonl.ReadFile(s.Path(GoBackFile)); !errors.Is(err, fs.ErrNotExist) {
		o.Rewinding = gjson.GetBytes(data, "cut").IsObject()
		o.GoingBack = !o.Rewinding
	}
	return o.Status != "" || isThere(s.Dir)
}

// readRecord adds the facts of the record and the plan, which outrank the checkpoint. A session in its interview has no
// plan.
func (o *Overview) readRecord(s *Session, check *Checkpoint) {
	sum, err := s.Summarize()
	if err != nil {
		o.problem(RecordFile, err)
		sum = NewSummary(s.ID)
	} else {
		o.Summary = sum
	}
	tasks, err := s.StoredTasks()
	if !errors.Is(err, fs.ErrNotExist) {
		o.problem(TasksFile, err)
	}
	tasks, _ = settled(tasks, sum.State, check.Statuses)
	o.Tasks = CountTasks(tasks)
	if len(tasks) > 0 && tasks[0].Title != "" {
		o.Label = cmp.Or(o.Label, strings.TrimPrefix(tasks[0].ID+": "+tasks[0].Title, ": "))
	}
	check.follow(sum)
	used := check.Usage.Sum()
	o.TokensUsed, o.TokensCached, o.Cost = check.TokensUsed, used.CachedTokens, used.Cost
	o.Skipped, o.Rewound = int(sum.Skipped), sum.State.Rewound
	if o.Status != "" && len(tasks) > 0 {
		o.Status = check.Status
		if o.Status == AllDone && o.Tasks.Pending > 0 { // a task that the record does not know
			o.Status = Running
		}
	}
	if sum.Stop != nil {
		o.LastStop, o.LastStopAt = sum.Stop.Reason, sum.Stop.TS
	}
	if sum.LastEventAt != nil {
		o.LastEventAt = *sum.LastEventAt
	}
}

func isThere(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// commonFromLink returns the source's common directory from the worktree's link to it, or "" without a link or for a
// relative one: workspace/.git has "gitdir: <common>/worktrees/<name>".
func (s *Session) commonFromLink() string {
	data, _ := jsonl.ReadFile(s.Path(WorkspaceDir, ".git"))
	admin, ok := strings.CutPrefix(strings.TrimSpace(string(data)), "gitdir: ")
	if !ok || filepath.Base(filepath.Dir(admin)) != "worktrees" || !filepath.IsAbs(admin) {
		return ""
	}
	return filepath.Dir(filepath.Dir(admin))
}

// problem stores an error of one of the session's files.
func (o *Overview) problem(file string, err error) {
	if errors.Is(err, fs.ErrNotExist) {
		o.Problems = append(o.Problems, file+": is missing")
	} else if err != nil {
		path := filepath.Join(o.Dir, file)
		o.Problems = append(o.Problems, file+": "+strings.TrimPrefix(err.Error(), path+": "))
	}
}
