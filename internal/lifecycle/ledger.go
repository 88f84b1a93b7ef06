package lifecycle

import (
	"maps"
	"slices"

	"github.com/git-tilth/git-tilth/internal/held"
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
		if !a.Unledgered || v.TaskID == "" { // another writer's verdict names no task
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

// settleLedgers writes the ledgers anew that hold other verdicts than the record, by their number.
func settleLedgers(h *held.Handle) error {
	state, err := h.S.State()
	if err != nil || h.Checkpoint.GitCommonDir == "" {
		return err
	}
	for _, task := range slices.Sorted(maps.Keys(state.Tasks)) {
		t := state.Tasks[task]
		if t.Ledger < 0 {
			continue
		}
		entries, err := h.S.ReadLedger(task, 0)
		if err != nil {
			return err
		}
		noted := func(e session.LedgerEntry) bool { return e.Note != "" }
		if int64(len(slices.DeleteFunc(entries, noted))) == t.Ledger {
			continue
		}
		if err := rewriteLedger(h, task); err != nil {
			return err
		}
	}
	return nil
}

// rewriteLedger makes a task's ledger from the record, a person's notes included.
func rewriteLedger(h *held.Handle, task string) error {
	var entries []session.LedgerEntry // the last one first
	add := func(ts, of, note string) {
		if of == task && note != "" {
			entries = append(entries, held.NoteEntry(ts, h.Redact.String(note)))
		}
	}
	_, err := record.Tail(h.S.Path(session.RecordFile), func(l record.Line) bool {
		switch e := l.Event().(type) {
		case *record.EvaluatorVerdict:
			if e.TaskID == task {
				entries = append(entries, h.VerdictEntry(l.TS, e))
			}
		case *record.TaskMarked:
			if e.Mark == MarkRetry {
				add(l.TS, e.TaskID, e.Note)
			}
		case *record.SessionRewound:
			add(l.TS, e.To, e.Note)
		}
		return true
	})
	if err != nil {
		return err
	}
	slices.Reverse(entries)
	if err := h.S.WriteLedger(task, entries); err != nil {
		return err
	}
	return h.Append(&record.LogRepaired{File: "ledger/" + task + ".jsonl", Why: "did not hold the verdicts on record",
		Done: "written anew"})
}
