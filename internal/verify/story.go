package verify

import (
	"cmp"
	"encoding/json"
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

// tale is what the record says of the tasks at one moment. A rewind puts an earlier one in its place, and an undo the
// later one back.
type tale struct {
	status  map[string]string  // of tasks that came to an end
	live    map[string]string  // the commit of each task that is done
	ledgers map[string][]entry // the entries that each task's ledger has to hold
	ending
}

func (t tale) clone() tale {
	t.status, t.live, t.ledgers = maps.Clone(t.status), maps.Clone(t.live), maps.Clone(t.ledgers)
	for task, entries := range t.ledgers {
		t.ledgers[task] = slices.Clone(entries)
	}
	return t
}

// ending is what the end of the record says, and with that what the process that wrote it may not have come to write.
type ending struct {
	uncommitted *record.EvaluatorVerdict // an accepted tree
	failing     string                   // a task whose placeholder is to be made
	unledgered  string                   // the task of a verdict
	last        string                   // task whose end is the last thing on record
	stop        string                   // reason of the last stop, "" if work went on after it
	before      string                   // the one before an attempt of a person's, which has no session_resume
}

// story is what the record says, read once from its beginning.
type story struct {
	tale
	base, seed string
	seedOff    int64
	end        int64 // of the record
	skipped    int   // lines that are no events
	commits    map[string]said
	twice      []int64                               // offsets of events that name a commit again
	accepted   map[string][]*record.EvaluatorVerdict // by task
	went       map[int]tale                          // before a rewind or an undo, by its number
	// A fork begins with tasks that another session did; every is all that was ever said of a task.
	forkedFrom string
	forkedAt   string            // when
	begun      string            // when the first thing happened after the seed
	shared     map[string]string // their commits
	every      map[string][]entry
	notes      []string // of a person's
	marking    []string // tasks that the end of the record marks: prd.json may not have it yet
}

func readStory(path string) (*story, error) {
	st := &story{
		tale:    tale{map[string]string{}, map[string]string{}, map[string][]entry{}, ending{}},
		commits: map[string]said{}, accepted: map[string][]*record.EvaluatorVerdict{},
		went: map[int]tale{}, shared: map[string]string{}, every: map[string][]entry{},
	}
	var err error
	st.end, st.skipped, err = record.Scan(path, 0, func(l record.Line) error {
		st.see(l)
		return nil
	})
	return st, err
}

// see takes one event. Those that say nothing about a task's end are most of a record, and not decoded.
func (st *story) see(l record.Line) {
	switch l.Type {
	case "session_start", "seed_committed", "session_resume", "context_reset", "evaluator_verdict", "judge_verdict",
		"ledger_appended", "task_failed", "commit", "task_marked", "stop", "session_rewound", "session_undone":
	default:
		return
	}
	if st.seed != "" && st.begun == "" {
		st.begun = l.TS
	}
	if l.Type != "task_marked" {
		st.marking = nil
	}
	switch e := l.Event().(type) {
	case *record.SessionStart:
		if st.base == "" {
			st.base = e.Base
		}
		if e.Phase == "fork" {
			st.forkedAt = l.TS
			st.forked(e)
		}
	case *record.SeedCommitted:
		st.seed, st.seedOff = e.SHA, l.Off
	case *record.SessionResume:
		st.resumed(e)
	case *record.SessionRewound:
		st.notes = append(st.notes, e.Note)
		st.went[e.Undo] = st.clone()
		for task := range e.Tasks {
			delete(st.status, task)
			delete(st.live, task)
			delete(st.ledgers, task)
		}
		st.ending = ending{}
	case *record.SessionUndone:
		then, known := st.went[e.Undo]
		st.went[e.Redo] = st.clone()
		if known {
			st.tale = then.clone()
		}
	case *record.ContextReset:
		st.before = cmp.Or(st.stop, st.before)
		st.uncommitted, st.failing, st.last, st.stop = nil, "", "", ""
	case *record.EvaluatorVerdict:
		st.ledgers[e.TaskID] = append(st.ledgers[e.TaskID], entryOf(l.TS, e))
		st.every[e.TaskID] = append(st.every[e.TaskID], entryOf(l.TS, e))
		st.unledgered, st.uncommitted = e.TaskID, nil
		if e.Accepted() {
			st.uncommitted = e
			st.accepted[e.TaskID] = append(st.accepted[e.TaskID], e)
		}
	case *record.LedgerAppended:
		if all := st.ledgers[e.TaskID]; len(all) > 0 {
			all[len(all)-1].to = l.TS
		}
		st.unledgered = ""
	case *record.TaskFailed:
		st.status[e.TaskID], st.failing, st.last = session.TaskFailed, e.TaskID, e.TaskID
	case *record.Commit:
		st.committed(l.Off, e)
	case *record.TaskMarked:
		st.marked(e)
	case *record.Stop:
		st.stop, st.before = e.Reason, ""
	}
}

func (st *story) forked(e *record.SessionStart) {
	st.forkedFrom = e.ForkedFrom
	for task, was := range e.Tasks {
		st.status[task] = was.Status
		if was.Commit != "" {
			st.live[task], st.shared[task] = was.Commit, was.Commit
		}
	}
}

func (st *story) resumed(e *record.SessionResume) {
	for _, task := range e.Retried {
		st.status[task] = session.TaskPending
	}
	for _, sha := range e.UnwoundCommits {
		maps.DeleteFunc(st.live, func(_, live string) bool { return live == sha })
	}
	st.failing = ""
	if !e.FoundAllDone() {
		st.stop = ""
	}
	if len(e.Pending) > 0 {
		st.before = ""
	}
}

// marked takes a person's word on a task. A task that is marked done has a verdict and a commit like any other.
func (st *story) marked(e *record.TaskMarked) {
	st.notes, st.marking = append(st.notes, e.Note), append(st.marking, e.TaskID)
	if e.Status != "" {
		st.status[e.TaskID] = e.Status
		return
	}
	switch e.Mark {
	case session.TaskSkipped:
		st.status[e.TaskID] = session.TaskSkipped
	case "retry", "added", "removed":
		delete(st.status, e.TaskID)
	}
}

func (st *story) committed(off int64, e *record.Commit) {
	if e.Aside != "" {
		st.failing, st.last = "", e.TaskID
		return
	}
	if _, again := st.commits[e.SHA]; again {
		st.twice = append(st.twice, off)
		return
	}
	st.commits[e.SHA] = said{off, e.TaskID, e.Placeholder}
	st.uncommitted, st.failing, st.last = nil, "", e.TaskID
	if !e.Placeholder {
		st.status[e.TaskID], st.live[e.TaskID] = session.TaskDone, e.SHA
	}
}

// entry is a line of a ledger as the record has it: what it says, and between which times it was written.
type entry struct{ says, from, to string }

// says is a verdict in one form, wherever it is from.
func says(iter int64, diffSummary, plea, verdict json.RawMessage) string {
	all := []any{iter, nil, nil, nil}
	for i, raw := range []json.RawMessage{diffSummary, plea, verdict} {
		_ = json.Unmarshal(raw, &all[i+1]) // what is no JSON says nothing
	}
	return string(record.JSON(all))
}

func entryOf(ts string, e *record.EvaluatorVerdict) entry {
	verdict := map[string]any{
		"verdict": e.Verdict, "rejection_category": e.RejectionCategory, "concern": e.Concern, "next_step": e.NextStep,
		"evidence": e.Evidence,
	}
	if len(e.Evidence) == 0 {
		verdict["evidence"] = nil
	}
	if e.ParseFailed {
		verdict["parse_failed"] = true
	}
	return entry{says(int64(e.Iter), record.JSON(e.DiffSummary), e.Case, record.JSON(verdict)), ts, ""}
}

// isIn reports whether a line of the ledger is this entry.
func (e entry) isIn(l session.LedgerEntry) bool {
	verdict := map[string]any{}
	_ = json.Unmarshal(l.Verdict, &verdict) // what is no object says nothing
	if list, ok := verdict["evidence"].([]any); ok && len(list) == 0 {
		verdict["evidence"] = nil
	}
	return says(l.Iter, l.DiffSummary, l.Case, record.JSON(verdict)) == e.says && e.from <= l.TS &&
		(e.to == "" || l.TS <= e.to)
}
