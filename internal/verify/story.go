package verify

import (
	"slices"

	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
)

// said is a commit that the record names.
type said struct {
	off         int64 // of the event
	task        string
	placeholder bool
}

// history is the content of the record, read once from its beginning: its State, and the facts that the commits are
// compared with.
type history struct {
	record.State
	end      int64 // of the record
	skipped  int   // lines that are no events
	commits  map[string]said
	twice    []int64                               // offsets of events that name a commit again
	accepted map[string][]*record.EvaluatorVerdict // by task
	marked   bool                                  // the last event marks a task: prd.json may not have it yet
	begun    string                                // when the first thing happened after the seed
	// A fork begins with tasks that another session did.
	forkedFrom string
	forkedAt   string            // when
	shared     map[string]string // their commits
}

func readStory(path string) (*history, error) {
	st := &history{commits: map[string]said{}, accepted: map[string][]*record.EvaluatorVerdict{},
		shared: map[string]string{}}
	var err error
	st.end, st.skipped, err = record.Scan(path, 0, func(l record.Line) error {
		st.see(l)
		return nil
	})
	return st, err
}

// seed is the seed's commit, "" where none is on record.
func (st *history) seed() string {
	if st.Seed == nil {
		return ""
	}
	return st.Seed.SHA
}

// live is the commit of a task that is done, else "".
func (st *history) live(task string) string {
	if st.StatusOf(task) != session.TaskDone {
		return ""
	}
	return st.Tasks[task].Commit
}

// cut reports whether the record ends in the middle of work or of a mark, which prd.json may not have yet.
func (st *history) cut() bool {
	return st.marked || st.Stop == nil || record.ReasonOf(st.Stop.Reason).Cuts
}

// see takes one event. Those that say nothing about a task's end are most of a record, and not decoded.
func (st *history) see(l record.Line) {
	switch l.Type {
	case "session_start", "seed_committed", "session_resume", "context_reset", "evaluator_verdict", "ledger_appended",
		"task_failed", "commit", "task_marked", "stop", "session_rewound", "session_undone":
	default:
		return
	}
	if st.Seed != nil && st.begun == "" {
		st.begun = l.TS
	}
	st.marked = l.Type == "task_marked"
	e := l.Event()
	st.Apply(l, e)
	switch e := e.(type) {
	case *record.SessionStart:
		if e.Phase == "fork" {
			st.forkedFrom, st.forkedAt = e.ForkedFrom, l.TS
			for task, was := range e.Tasks {
				st.shared[task] = was.Commit
			}
		}
	case *record.EvaluatorVerdict:
		if e.Accepted() {
			st.accepted[e.TaskID] = append(slices.Clip(st.accepted[e.TaskID]), e)
		}
	case *record.Commit:
		if _, again := st.commits[e.SHA]; e.Aside != "" {
		} else if again {
			st.twice = append(st.twice, l.Off)
		} else {
			st.commits[e.SHA] = said{l.Off, e.TaskID, e.Placeholder}
		}
	}
}
