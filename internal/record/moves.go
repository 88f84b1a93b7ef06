package record

import "slices"

// SessionRewound takes the session back to a point. Attempts after it are new ones.
type SessionRewound struct {
	Scope
	To   string `json:"to"`   // the point: seed, or a task
	From string `json:"from"` // the commit that the branch was at
	SHA  string `json:"sha"`  // current commit
	Undo int    `json:"undo"` // number of the undo that takes this back
	Note string `json:"note,omitempty"`
	// Noted is the task with the note at the start of its ledger.
	Noted string `json:"noted,omitempty"`
	// Counts is the offset up to which earlier events count. Events between it and this event are superseded.
	Counts int64 `json:"counts"`
	// Tasks are the tasks that changed.
	Tasks map[string]TaskState `json:"tasks"`
	// Onto is set if the branch begins at another commit from here on.
	Onto *Onto `json:"onto,omitempty"`
}

// Onto is the new beginning of a session's branch, and the commits to repeat on it.
type Onto struct {
	Base  string `json:"base"`
	Seed  string `json:"seed"`
	Steps []Step `json:"steps,omitempty"`
}

// Step is a commit to repeat: the accepted change of a task, which is judged again, or a commit of the user.
type Step struct {
	Task    string            `json:"task,omitempty"`
	Verdict *EvaluatorVerdict `json:"verdict,omitempty"` // names the tree and the commit below it
	Commit  string            `json:"commit,omitempty"`  // commit of the user
}

// CommitRepeated is a commit of the user that was made again on another base. SHA is the commit below if that has its
// change already.
type CommitRepeated struct {
	Scope
	From string `json:"from"`
	SHA  string `json:"sha"`
}

// SessionUndone takes a rewind, or an undo, back. Counts and Tasks are as in SessionRewound.
type SessionUndone struct {
	Scope
	Undo   int                  `json:"undo"` // number of the operation to undo
	Redo   int                  `json:"redo"` // number of the undo that takes this back
	Counts int64                `json:"counts"`
	Tasks  map[string]TaskState `json:"tasks"`
}

// TaskState is the state of a task that changed without an attempt.
type TaskState struct {
	Status        string `json:"status"`
	Commit        string `json:"commit,omitempty"`
	FailureReason string `json:"failure_reason,omitempty"`
}

// become sets the tasks' state after a rewind or a fork, and removes their other facts.
func (s *State) become(states map[string]TaskState) {
	for id, state := range states {
		t := Task{TaskState: state, Shared: true}
		if state.Commit != "" {
			t.Commits = []string{state.Commit}
		}
		s.Tasks[id] = t
	}
}

func (s *State) went(undo int) {
	if s.Went == nil {
		s.Went = map[int]Moment{}
	}
	s.Went[undo] = s.Moment.clone()
}

// rewound removes the events after the point: the changed tasks have no attempts any more.
func (s *State) rewound(off int64, e *SessionRewound) {
	s.Steps = nil
	if e.Onto != nil {
		s.Base, s.Seed, s.SeedAt, s.Steps = e.Onto.Base, &SeedCommitted{SHA: e.Onto.Seed}, off, e.Onto.Steps
	}
	for id, state := range e.Tasks {
		t := Task{TaskState: state}
		if id == e.To {
			first := ContextReset{Scope: Scope{TaskID: id}, Base: e.SHA}
			t.First = &Begin{first, e.Counts}
		}
		if id == e.Noted {
			t.Ledger = []int64{off}
		}
		s.Tasks[id] = t
	}
	gone := func(end End) bool { _, is := e.Tasks[end.Task]; return is }
	s.Progress = slices.DeleteFunc(slices.Clone(s.Progress), gone)
	s.Head, s.LastTask, s.Touched = "", "", false
	for id, t := range s.Tasks {
		if t.Last > 0 && (s.Head == "" || t.Last > s.Tasks[s.Head].Last) {
			s.Head = id
		}
	}
}

// undone applies an undo.
func (s *State) undone(e *SessionUndone) {
	then := s.Went[e.Undo]
	s.went(e.Redo)
	if then.Seed == nil { // an old record, without moves of the base
		then.Beginning = s.Beginning
	}
	s.Moment = then.clone()
	for id, state := range e.Tasks {
		s.change(id, func(t *Task) { t.TaskState, t.Uncommitted = state, false })
	}
}
