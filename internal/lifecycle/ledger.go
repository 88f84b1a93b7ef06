package lifecycle

import (
	"maps"
	"path/filepath"
	"slices"

	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
)

// settleLedger writes down the reviewer's last word on each task if a process died between the verdict and the ledger.
// On disk after each step: the ledger line, which is found again by its task, iteration and time; then the event, and
// it is settled.
func settleLedger(h *held.Handle, p Plan) error {
	for _, task := range slices.Sorted(maps.Keys(p.Record.Tasks)) {
		a := p.Record.Tasks[task].Attempt
		v := a.Verdict
		if !a.Unledgered {
			continue
		}
		entries, err := h.S.ReadLedger(task, 1)
		if err != nil {
			return err
		}
		n := len(entries) - 1 // before it may stand a person's note
		if n < 0 || entries[n].Iter != int64(v.Iter) || entries[n].TS < a.VerdictTS {
			if err := h.AppendVerdict(v); err != nil {
				return err
			}
		}
		appended := held.LedgerAppended(v)
		appended.Scope = p.rolledForward(task)
		if err := h.Record.Append(appended); err != nil {
			return err
		}
	}
	return nil
}

// settleLedgers writes the ledgers anew that do not say what the record does.
func settleLedgers(h *held.Handle) error {
	state, err := h.S.State()
	if err != nil {
		return err
	}
	tasks, err := h.S.StoredTasks()
	if err != nil {
		return err
	}
	from, _ := session.Store{Root: filepath.Dir(h.S.Dir)}.Find(h.Checkpoint.ForkedFrom) // nil for none
	for i, t := range tasks {
		of := state.Tasks[t.ID]
		theirs, known := inherited(h, from, t.ID, of)
		if !known {
			continue
		}
		if i == 0 && state.Note > 0 {
			of.Ledger = append([]int64{state.Note}, of.Ledger...)
		}
		entries, err := ledgerOf(h, h.S, of.Ledger)
		if err != nil {
			return err
		}
		entries = append(theirs, entries...)
		anew, err := h.S.SettleLedger(t.ID, entries)
		if err == nil && anew {
			err = h.Append(&record.LogRepaired{File: "ledger/" + t.ID + ".jsonl",
				Why: "did not hold the verdicts on record", Done: "written anew"})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// inherited are the entries of a task's ledger with which a fork began, by the record of the session that it is of.
// They are not known where that is gone, which is nil, says otherwise of the task by now, or is a fork itself.
func inherited(h *held.Handle, from *session.Session, task string, of record.Task) (entries []session.LedgerEntry,
	known bool) {
	if !of.Shared || from == nil {
		return nil, !of.Shared
	}
	state, err := from.State()
	if err != nil {
		return nil, false
	}
	was := state.Tasks[task]
	if was.Shared || state.Note > 0 || len(was.Ledger) == 0 || was.TaskState != of.TaskState {
		return nil, false
	}
	entries, err = ledgerOf(h, from, was.Ledger)
	return entries, err == nil
}

// ledgerOf reads the entries of a ledger from the lines of a session's record that begin there.
func ledgerOf(h *held.Handle, s *session.Session, lines []int64) (entries []session.LedgerEntry, err error) {
	note := func(ts, note string) {
		e := held.NoteEntry(ts, h.Redact.String(note))
		if n := len(entries); n == 0 || entries[n-1].Note != e.Note { // of one that was repeated
			entries = append(entries, e)
		}
	}
	for _, off := range lines {
		_, _, err := record.Scan(s.Path(session.RecordFile), off, func(l record.Line) error {
			switch e := l.Event().(type) {
			case *record.EvaluatorVerdict:
				entries = append(entries, h.VerdictEntry(l.TS, e))
			case *record.TaskMarked:
				note(l.TS, e.Note)
			case *record.SessionRewound:
				note(l.TS, e.Note)
			}
			return jsonl.ErrStop
		})
		if err != nil {
			return nil, err
		}
	}
	return entries, nil
}
