package session

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/tidwall/gjson"
	"golang.org/x/sys/unix"

	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/record"
)

// Overview is one session as list shows it; the tags are the members of --json. Times are RFC 3339. Files that could
// not be read are named in Problems.
type Overview struct {
	ID           string     `json:"session_id"`
	Dir          string     `json:"-"`
	Status       string     `json:"status"` // as the checkpoint has it; see State
	Source       string     `json:"source"`
	GitCommonDir string     `json:"-"`
	Branch       string     `json:"branch"`
	Workspace    string     `json:"workspace"`
	Label        string     `json:"label"`
	Tasks        TaskCounts `json:"tasks"`
	TokensUsed   int64      `json:"tokens_used"`
	TokensCached int64      `json:"tokens_cached"` // read from a provider's cache, besides those used
	Cost         float64    `json:"cost"`          // dollars, all roles
	LastStop     string     `json:"last_stop"`     // its reason; empty without a stop, or if work continued after it
	LastStopAt   string     `json:"last_stop_at,omitempty"`
	StartedAt    string     `json:"started_at"` // as the checkpoint has it
	LastEventAt  string     `json:"last_event_at,omitempty"`
	Busy         *BusyError `json:"holder,omitempty"`     // the process that holds the session now
	Rewinding    bool       `json:"rewinding,omitempty"`  // an unfinished reset --to-seed
	GoingBack    bool       `json:"going_back,omitempty"` // a rewind or an undo was
	Rewound      string     `json:"rewound,omitempty"`    // the point it was rewound to, if nothing was done since
	ForkedFrom   string     `json:"forked_from,omitempty"`
	Resetting    bool       `json:"resetting,omitempty"` // an unfinished teardown
	Skipped      int        `json:"skipped,omitempty"`   // lines that are no events, as far back as the last stop
	Problems     []string   `json:"problems,omitempty"`  // faults of its files, one line each

	HasWorktree bool `json:"-"`

	// Request is the last known state of the session's pull or merge request; nil for none.
	Request *Request `json:"request,omitempty"`

	written gjson.Result // statuses with which prd.json was written last

	// Facts that only the repository has.
	Taken    bool `json:"-"` // all finished work is elsewhere too
	Cleansed bool `json:"-"` // worktree and branch are gone
	// NothingToTake is set if each commit of a finished task is in another branch, even if other tasks are open.
	NothingToTake bool `json:"-"`
}

// Finished reports whether nothing has failed or is to do.
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

// count takes in a task with a status.
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

// CountTasks are the tasks of a plan by status.
func CountTasks(plan []Task) (c TaskCounts) {
	for _, t := range plan {
		c.count(t.Status)
		if t.Status == TaskPending && len(t.WaitsFor(plan)) > 0 {
			c.Waiting++
		}
	}
	return c
}

// State returns the word for a session that list shows. The checkpoint of a stopped session says `running`, because
// nothing is wrong with its work; a session without a holder and without a stop has crashed.
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

// Word is the session's status, or proposed, taken or cleansed, for programs; damaged where that cannot be read.
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

// Overview reads the given sessions concurrently and returns them in the given order. wanted, if not nil, chooses the
// sessions by their repository, which the checkpoint and the worktree's link name; each may be empty. Sessions that are
// not wanted cost no more than that. wanted is called concurrently.
func (st Store) Overview(ids []string, wanted func(s *Session, source, commonDir, linked string) bool) []Overview {
	all, in := make([]Overview, len(ids)), make([]bool, len(ids))
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(ids)) {
		wg.Go(func() {
			room := make([]byte, 32<<10) // for each file in turn: most have less
			for i := int(next.Add(1)) - 1; i < len(ids); i = int(next.Add(1)) - 1 {
				in[i] = all[i].read(st.session(ids[i]), room, wanted)
			}
		})
	}
	wg.Wait()
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
	o.read(s, nil, nil)
	return o
}

// read reads the session's files, each into room if it fits, and reports whether the session is wanted. It reads again
// if the session's run ended or the session was removed meanwhile.
func (o *Overview) read(s *Session, room []byte, wanted func(s *Session, source, commonDir, linked string) bool) bool {
	is := o.readOnce(s, room, wanted)
	if is && o.Status == Running && o.Busy == nil && (o.LastStop == "" || record.ReasonOf(o.LastStop).Last) {
		*o = Overview{}
		is = o.readOnce(s, room, wanted)
	}
	return is
}

func (o *Overview) readOnce(s *Session, room []byte,
	wanted func(s *Session, source, commonDir, linked string) bool) bool {
	o.ID, o.Dir, o.Branch, o.Workspace = s.ID, s.Dir, DefaultBranch(s.ID), s.file(WorkspaceDir)
	hasCheckpoint := o.readCheckpoint(s, room)
	linked := ""
	if wanted != nil || o.Source+o.GitCommonDir == "" {
		linked = s.commonFromLink(room)
	}
	if wanted != nil && !wanted(s, o.Source, o.GitCommonDir, linked) {
		return false
	}
	if o.Source+o.GitCommonDir == "" {
		o.GitCommonDir = linked
	}
	o.countTasks(s, room)
	if status := o.readLastStop(s); status != "" && o.Tasks.Total > 0 && hasCheckpoint {
		o.Status = status // by the record, which outranks the checkpoint
		if status == AllDone && o.Tasks.Pending > 0 {
			o.Status = Running // as record.State has it
		}
	}
	if o.Status == Running || o.Status == "" {
		o.Busy, _ = s.Holder()
	}
	if s.has(requestFile) {
		o.Request = s.Request()
	}
	o.HasWorktree = linked != "" || isThere(o.Workspace)
	if o.Resetting, o.GoingBack = s.has(ResetMarkFile), s.has(GoBackFile); o.GoingBack {
		data, _ := jsonl.ReadInto(room, s.file(GoBackFile))
		o.Rewinding = gjson.Get(jsonl.Text(data), "cut").IsObject()
		o.GoingBack = !o.Rewinding
	}
	if o.Status == "" && o.Busy != nil {
		o.Problems = slices.DeleteFunc(o.Problems, func(p string) bool { return p == CheckpointFile+missing })
	}
	return o.Status != "" || s.has("")
}

func (s *Session) has(name string) bool { return isThere(s.file(name)) }

// isThere reports whether something is at path. It makes neither an os.FileInfo nor an error.
func isThere(path string) bool {
	var st unix.Stat_t
	for {
		if err := unix.Lstat(path, &st); err != unix.EINTR {
			return err == nil
		}
	}
}

// commonFromLink is the source's common directory by the worktree's own link to it, "" if there is none or it is
// relative: workspace/.git says "gitdir: <common>/worktrees/<name>".
func (s *Session) commonFromLink(room []byte) string {
	data, _ := jsonl.ReadInto(room, s.file(WorkspaceDir+"/.git"))
	admin, ok := strings.CutPrefix(strings.TrimSpace(string(data)), "gitdir: ")
	if !ok || filepath.Base(filepath.Dir(admin)) != "worktrees" || !filepath.IsAbs(admin) {
		return ""
	}
	return filepath.Dir(filepath.Dir(admin))
}

// readCheckpoint reads the members of the checkpoint that a list needs, and reports whether the file is readable.
func (o *Overview) readCheckpoint(s *Session, room []byte) bool {
	data, err := jsonl.ReadInto(room, s.file(CheckpointFile))
	if err == nil && !jsonl.IsObject(bytes.TrimSpace(data)) {
		err = checkObject(data)
	}
	if err != nil {
		o.problem(CheckpointFile, err)
		return false
	}
	own := func(value gjson.Result) string { return strings.Clone(value.String()) }
	gjson.Parse(jsonl.Text(data)).ForEach(func(key, value gjson.Result) bool {
		switch key.Str {
		case "status":
			o.Status = own(value)
		case "source":
			o.Source = own(value)
		case "git_common_dir":
			o.GitCommonDir = own(value)
		case "workspace":
			o.Workspace = cmp.Or(own(value), o.Workspace)
		case "branch":
			o.Branch = cmp.Or(own(value), o.Branch)
		case "label":
			o.Label = own(value)
		case "forked_from":
			o.ForkedFrom = own(value)
		case "tokens_used":
			o.TokensUsed = value.Int()
		case "started_at":
			o.StartedAt = own(value)
		case "statuses":
			o.written = gjson.Parse(own(value))
		case "usage":
			value.ForEach(func(_, role gjson.Result) bool {
				o.TokensCached += role.Get("cached").Int()
				sum := o.Cost + role.Get("cost").Float()
				if !math.IsInf(sum, 0) && !math.IsNaN(sum) { // of 1e999, which no JSON could say
					o.Cost = sum
				}
				return true
			})
		}
		return true
	})
	switch o.Status {
	case Prepared, Running, AllDone, Failed:
	default:
		o.Problems = append(o.Problems, fmt.Sprintf("%s: status %q is unknown", CheckpointFile, o.Status))
	}
	return true
}

// rolledUp returns the status of a task by summary.json, "" if it is missing.
func (s *Session) rolledUp() func(id string) string {
	tasks := sync.OnceValue(func() gjson.Result {
		data, _ := jsonl.ReadInto(nil, s.file(SummaryFile))
		return gjson.Get(jsonl.Text(data), "tasks")
	})
	return func(id string) string {
		if !tasks().Exists() {
			return ""
		}
		return cmp.Or(tasks().Get(id+".status").String(), TaskPending)
	}
}

// countTasks counts the tasks. A session in its interview has no prd.json. Without statuses in the checkpoint those of
// summary.json count.
func (o *Overview) countTasks(s *Session, room []byte) {
	data, err := jsonl.ReadInto(room, s.file(TasksFile))
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	list := gjson.Parse(jsonl.Text(data))
	if err == nil && !(list.IsArray() && jsonl.IsValid(data)) {
		_, err = ParseTasks(data)
	}
	if err != nil {
		o.problem(TasksFile, err)
		return
	}
	written := func(id string) string { return o.written.Get(id).String() }
	if !o.written.Exists() {
		written = s.rolledUp()
	}
	var done []string
	var needs []gjson.Result // of those that are pending
	list.ForEach(func(_, task gjson.Result) bool {
		var id, title, status string
		var need gjson.Result
		task.ForEach(func(key, value gjson.Result) bool {
			switch key.Str {
			case "id":
				id = value.String()
			case "title":
				title = value.String()
			case "status":
				status = value.String()
			case "needs":
				need = value
			}
			return true
		})
		if o.Label == "" && title != "" {
			o.Label = strings.Clone(strings.TrimPrefix(id+": "+title, ": "))
		}
		if status != TaskFailed && status != TaskPending { // which only the harness sets
			status = cmp.Or(written(id), status)
		}
		switch o.Tasks.count(status); status {
		case TaskDone:
			done = append(done, id)
		case TaskFailed, TaskSkipped:
		default:
			needs = append(needs, need)
		}
		return true
	})
	for _, need := range needs {
		open := func(id gjson.Result) bool { return !slices.Contains(done, id.String()) }
		if slices.ContainsFunc(need.Array(), open) {
			o.Tasks.Waiting++
		}
	}
}

// readLastStop reads the record backwards to the first event that settles whether the session has stopped, and gives
// its status then.
func (o *Overview) readLastStop(s *Session) (status string) {
	var err error
	o.Skipped, err = record.Tail(s.file(RecordFile), func(l record.Line) bool {
		if o.LastEventAt == "" {
			o.LastEventAt = l.TS
		}
		switch l.Type {
		case "stop":
			o.LastStop, o.LastStopAt = l.Event().(*record.Stop).Reason, l.TS
			status = record.ReasonOf(o.LastStop).Status
			return false
		case "session_rewound":
			e := l.Event().(*record.SessionRewound)
			if o.Rewound, status = e.To, Running; e.Undo == 0 { // a fork's way to its seed
				status = Prepared
			}
			return false
		case "seed_committed":
			status = Prepared
			return false
		}
		if l.Type == "" || !l.IsWork() {
			return true
		}
		status = Running
		return false
	})
	if err != nil {
		o.problem(RecordFile, err)
	}
	return status
}

// missing returns the problem of a missing file, or "" while a session is being made or removed.
const missing = ": is missing"

func (o *Overview) problem(file string, err error) {
	if errors.Is(err, fs.ErrNotExist) {
		o.Problems = append(o.Problems, file+missing)
		return
	}
	o.Problems = append(o.Problems, file+": "+strings.TrimPrefix(err.Error(), file+": "))
}
