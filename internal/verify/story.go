package verify

import (
	"cmp"
	"maps"
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

// ending is what the end of the record says, and with that what the process that wrote it may not have come to write.
type ending struct {
	failing string             // a task whose placeholder is to be made
	last    []string           // tasks whose ends may not be in prd.json yet: several only of lanes
	ledgers map[string][]entry // the entries that each task's ledger has to hold
}

// history is what the record says, read once from its beginning: the State that everything is decided by, and what else
// commits and ledgers are held against.
type history struct {
	record.State
	ending
	end      int64 // of the record
	skipped  int   // lines that are no events
	commits  map[string]said
	twice    []int64                               // offsets of events that name a commit again
	accepted map[string][]*record.EvaluatorVerdict // by task
	went     map[int]ending                        // before a rewind or an undo, by its number
	before   string                                // the stop before a person's attempt, which has no session_resume
	// A fork begins with tasks that another session did; every is all that was ever said of a task.
	forkedFrom string
	forkedAt   string            // when
	begun      string            // when the first thing happened after the seed
	shared     map[string]string // their commits
	every      map[string][]entry
	notes      []string // of a person's
	marking    []string // tasks that the end of the record marks: prd.json may not have it yet
}

func readStory(path string) (*history, error) {
	st := &history{
		ending: ending{ledgers: map[string][]entry{}}, commits: map[string]said{},
		accepted: map[string][]*record.EvaluatorVerdict{}, went: map[int]ending{}, shared: map[string]string{},
		every: map[string][]entry{},
	}
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

// stop is the reason of the last stop, "" if work went on after it.
func (st *history) stop() string {
	if st.Stop == nil {
		return ""
	}
	return st.Stop.Reason
}

// keep notes under its number what a rewind or an undo takes back.
func (st *history) keep(undo int) {
	was := st.ending
	was.ledgers = maps.Clone(was.ledgers)
	st.went[undo] = was
}

// see takes one event. Those that say nothing about a task's end are most of a record, and not decoded.
func (st *history) see(l record.Line) {
	switch l.Type {
	case "session_start", "seed_committed", "session_resume", "context_reset", "evaluator_verdict",
		"ledger_appended", "task_failed", "commit", "task_marked", "stop", "session_rewound", "session_undone":
	default:
		return
	}
	if st.Seed != nil && st.begun == "" {
		st.begun = l.TS
	}
	if l.Type != "task_marked" {
		st.marking = nil
	}
	e, stopped := l.Event(), st.stop()
	st.Apply(l, e)
	switch e := e.(type) {
	case *record.SessionStart:
		if e.Phase == "fork" {
			st.forkedFrom, st.forkedAt = e.ForkedFrom, l.TS
			for task, was := range e.Tasks {
				st.shared[task] = was.Commit
			}
		}
	case *record.SessionResume:
		st.failing, st.last = "", nil
		if len(e.Pending) > 0 {
			st.before = ""
		}
	case *record.SessionRewound:
		st.notes = append(st.notes, e.Note)
		st.keep(e.Undo)
		st.ending = ending{ledgers: st.ledgers}
		for task := range e.Tasks {
			delete(st.ledgers, task)
		}
	case *record.SessionUndone:
		then, known := st.went[e.Undo]
		st.keep(e.Redo)
		if known {
			st.ending = then
			st.ledgers = maps.Clone(then.ledgers)
		}
	case *record.ContextReset:
		st.before, st.failing = cmp.Or(stopped, st.before), ""
		if !e.Lane { // another lane begins also while the end of a task is being written down
			st.last = nil
		}
	case *record.EvaluatorVerdict:
		said := entryOf(l.TS, e)
		st.ledgers[e.TaskID] = append(slices.Clip(st.ledgers[e.TaskID]), said)
		st.every[e.TaskID] = append(st.every[e.TaskID], said)
		if e.Accepted() {
			st.accepted[e.TaskID] = append(st.accepted[e.TaskID], e)
		}
	case *record.LedgerAppended:
		if all := slices.Clone(st.ledgers[e.TaskID]); len(all) > 0 {
			all[len(all)-1].to = l.TS
			st.ledgers[e.TaskID] = all
		}
	case *record.TaskFailed:
		st.failing, st.last = e.TaskID, append(slices.Clip(st.last), e.TaskID)
	case *record.Commit:
		st.committed(l.Off, e)
	case *record.TaskMarked:
		st.notes, st.marking = append(st.notes, e.Note), append(st.marking, e.TaskID)
	case *record.Stop:
		st.before = ""
	}
}

func (st *history) committed(off int64, e *record.Commit) {
	st.failing, st.last = "", append(slices.Clip(st.last), e.TaskID)
	if e.Aside != "" {
		return
	}
	if _, again := st.commits[e.SHA]; again {
		st.twice = append(st.twice, off)
		return
	}
	st.commits[e.SHA] = said{off, e.TaskID, e.Placeholder}
}

// entry is a line of a ledger as the record has it: what it says, and between which times it was written.
type entry struct{ says, from, to string }

func entryOf(ts string, e *record.EvaluatorVerdict) entry {
	return entry{session.EntryOf(ts, e).Says(), ts, ""}
}

// isIn reports whether a line of the ledger is this entry.
func (e entry) isIn(l session.LedgerEntry) bool {
	return l.Says() == e.says && e.from <= l.TS && (e.to == "" || l.TS <= e.to)
}
