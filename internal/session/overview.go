package session

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/tidwall/gjson"

	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/record"
)

// Overview is one session as list shows it. Nothing in it fails: what could not be read is in Problems.
type Overview struct {
	ID, Dir      string
	Status       string
	Source       string
	GitCommonDir string
	Workspace    string
	Branch       string
	Label        string
	Tasks        TaskCounts
	TokensUsed   int64
	Cost         float64 // dollars, all roles
	StartedAt    string  // RFC 3339, as the checkpoint has it
	LastStop     string  // reason of the last stop; empty if there is none, or if work went on after it
	LastStopAt   string
	LastEventAt  string
	Busy         *BusyError // the process that holds the session now
	Crashed      bool       // status running, nobody holds it, and no stop was written
	Rewinding    bool       // a rewind was begun and not finished
	Resetting    bool       // a teardown was begun and not finished
	Skipped      int        // lines after the last stop that are no events; what is before it was not read
	Problems     []string   // what is wrong with its files, one line each
}

// TaskCounts are the tasks of a session by status.
type TaskCounts struct{ Total, Done, Failed, Pending int }

// Keep says which sessions an overview is of.
type Keep struct {
	// Known answers by what a session's checkpoint and the link of its worktree name as its repository; each may be
	// empty. It is asked once for each combination, one at a time.
	Known func(source, commonDir, linked string) (belongs, sure bool)
	// One answers for a session for which Known was not sure. It is asked concurrently.
	One func(s *Session, source, commonDir, linked string) bool
}

// Overview reads the given sessions, concurrently, in the order given. keep, if not nil, says which of them belong in
// the list; the others cost only their checkpoint and their worktree's link.
func (st Store) Overview(ids []string, keep *Keep) []Overview {
	wanted := keep.memoize()
	all := make([]*Overview, len(ids))
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(ids)) {
		wg.Go(func() {
			rd := newReader()
			for i := int(next.Add(1)) - 1; i < len(ids); i = int(next.Add(1)) - 1 {
				all[i] = rd.overview(st.session(ids[i]), wanted)
			}
		})
	}
	wg.Wait()
	out := make([]Overview, 0, len(ids))
	for _, o := range all {
		if o != nil {
			out = append(out, *o)
		}
	}
	return out
}

// Overview reads one session.
func (s *Session) Overview() Overview { return *newReader().overview(s, nil) }

// memoize is nil if every session is wanted.
func (k *Keep) memoize() func(s *Session, source, commonDir, linked string) bool {
	if k == nil {
		return nil
	}
	type answer struct{ belongs, sure bool }
	var mu sync.Mutex
	known := map[[3]string]answer{}
	ask := func(source, commonDir, linked string) answer {
		mu.Lock()
		defer mu.Unlock()
		names := [3]string{source, commonDir, linked}
		a, ok := known[names]
		if !ok {
			a.belongs, a.sure = k.Known(source, commonDir, linked)
			known[names] = a
		}
		return a
	}
	return func(s *Session, source, commonDir, linked string) bool {
		if a := ask(source, commonDir, linked); a.sure {
			return a.belongs
		}
		return k.One(s, source, commonDir, linked)
	}
}

// overview is nil if the session is not wanted.
func (rd *reader) overview(s *Session, wanted func(s *Session, source, commonDir, linked string) bool) *Overview {
	o := &Overview{ID: s.ID, Dir: s.Dir, Branch: s.Branch(), Workspace: s.Workspace()}
	rd.checkpoint(s, o)
	linked := ""
	if wanted != nil || o.Source+o.GitCommonDir == "" {
		linked = rd.commonFromLink(s)
	}
	if wanted != nil && !wanted(s, o.Source, o.GitCommonDir, linked) {
		return nil
	}
	if o.Source+o.GitCommonDir == "" {
		o.GitCommonDir = linked
	}
	rd.plan(s, o)
	rd.lastStop(s, o)
	if o.Status == Running || o.Status == "" {
		if rd.held(s.Dir) || rd.held(s.Path(LockFile)) {
			o.Busy, _ = s.Holder()
		}
	}
	if _, err := os.Lstat(s.Path(ResetMarkFile)); err == nil {
		o.Resetting = true
	}
	o.Crashed = o.Status == Running && o.Busy == nil && o.LastStop == ""
	return o
}

func (rd *reader) checkpoint(s *Session, o *Overview) {
	data, err := rd.file(s.Dir, CheckpointFile)
	if err == nil && !jsonl.IsObject(trimSpace(data)) {
		_, err = decodeObject(data, &struct{}{})
	}
	if err != nil {
		o.problem(CheckpointFile, err)
		return
	}
	jsonl.Members(jsonl.Text(data), func(key, raw string) bool {
		switch key {
		case "status":
			o.Status = strings.Clone(jsonl.String(raw))
		case "source":
			o.Source = strings.Clone(jsonl.String(raw))
		case "git_common_dir":
			o.GitCommonDir = strings.Clone(jsonl.String(raw))
		case "workspace":
			o.Workspace = cmp.Or(strings.Clone(jsonl.String(raw)), o.Workspace)
		case "branch":
			o.Branch = cmp.Or(strings.Clone(jsonl.String(raw)), o.Branch)
		case "label":
			o.Label = strings.Clone(jsonl.String(raw))
		case "tokens_used":
			o.TokensUsed = gjson.Parse(raw).Int()
		case "started_at":
			o.StartedAt = momentText(json.RawMessage(raw))
		case "rewind":
			o.Rewinding = strings.HasPrefix(raw, "{")
		case "usage":
			jsonl.Members(raw, func(_, role string) bool {
				jsonl.Members(role, func(key, raw string) bool {
					if key == "cost" {
						o.Cost += gjson.Parse(raw).Float()
					}
					return true
				})
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
}

// plan counts the tasks. A session whose interview has not ended has no prd.json, and nothing is wrong with that.
func (rd *reader) plan(s *Session, o *Overview) {
	data, err := rd.file(s.Dir, TasksFile)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	trimmed := trimSpace(data)
	if err == nil && !(len(trimmed) > 0 && trimmed[0] == '[' && gjson.ValidBytes(trimmed)) {
		if _, err = ParseTasks(data); err == nil {
			err = fmt.Errorf("is nested too deeply")
		}
	}
	if err != nil {
		o.problem(TasksFile, err)
		return
	}
	gjson.Parse(jsonl.Text(trimmed)).ForEach(func(_, task gjson.Result) bool {
		var status, id, title string
		jsonl.Members(task.Raw, func(key, raw string) bool {
			switch key {
			case "status":
				status = jsonl.String(raw)
			case "id":
				id = jsonl.String(raw)
			case "title":
				title = jsonl.String(raw)
			}
			return true
		})
		if o.Label == "" && title != "" {
			o.Label = strings.TrimPrefix(id+": "+title, ": ")
		}
		o.Tasks.Total++
		switch status {
		case TaskDone:
			o.Tasks.Done++
		case TaskFailed:
			o.Tasks.Failed++
		default:
			o.Tasks.Pending++
		}
		return true
	})
}

// lastStop reads the record backwards to the first event that settles whether the session has stopped.
func (rd *reader) lastStop(s *Session, o *Overview) {
	skipped, err := rd.tail(s.Dir, RecordFile, func(_ int64, line []byte) bool {
		l := record.Parse(line)
		if o.LastEventAt == "" {
			o.LastEventAt = l.TS
		}
		if stop, ok := l.Event().(*record.Stop); ok {
			o.LastStop, o.LastStopAt = stop.Reason, l.TS
			return false
		}
		return l.Type == "" || !goesOn(l)
	})
	o.Skipped = skipped
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		o.problem(RecordFile, err)
	}
}

func (o *Overview) problem(file string, err error) {
	if errors.Is(err, fs.ErrNotExist) {
		o.Problems = append(o.Problems, file+": is missing")
		return
	}
	o.Problems = append(o.Problems, file+": "+strings.TrimPrefix(err.Error(), file+": "))
}
