package session

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/record"
)

// LedgerEntry is one call of the evaluator on a task.
type LedgerEntry struct {
	TS          string          `json:"ts"`
	Iter        int64           `json:"iter"`
	DiffSummary string          `json:"diff_summary"`
	Case        json.RawMessage `json:"case"`
	Verdict     json.RawMessage `json:"verdict"`
	Note        string          `json:"note,omitempty"` // the user's note; such an entry is not an evaluator call
}

// entryOf returns the ledger entry of a verdict.
func entryOf(ts string, v *record.EvaluatorVerdict) LedgerEntry {
	evidence := v.Evidence
	if len(evidence) == 0 {
		evidence = nil
	}
	return LedgerEntry{
		TS: ts, Iter: int64(v.Iter), DiffSummary: v.DiffSummary, Case: record.JSON(v.Case),
		Verdict: record.JSON(struct {
			Verdict     string   `json:"verdict"`
			Category    *string  `json:"rejection_category"`
			Concern     *string  `json:"concern"`
			Evidence    []string `json:"evidence"`
			NextStep    *string  `json:"next_step"`
			ParseFailed bool     `json:"parse_failed,omitempty"`
		}{v.Verdict, v.RejectionCategory, v.Concern, evidence, v.NextStep, v.ParseFailed}),
	}
}

// Says returns an entry without its time.
func (e LedgerEntry) Says() string {
	all := []any{e.Iter, e.Note, e.DiffSummary, nil, nil}
	for i, raw := range []json.RawMessage{e.Case, e.Verdict} {
		_ = json.Unmarshal(raw, &all[i+3]) // invalid JSON is ignored
	}
	if verdict, ok := all[4].(map[string]any); ok {
		if list, ok := verdict["evidence"].([]any); ok && len(list) == 0 {
			verdict["evidence"] = nil
		}
	}
	return string(record.JSON(all))
}

// RecordedLedger reads the entries of a ledger from the lines of the record that begin there.
func (s *Session) RecordedLedger(lines []int64) (entries []LedgerEntry, err error) {
	note := func(ts, note string) {
		e := noteEntry(ts, note)
		if n := len(entries); n == 0 || entries[n-1].Note != e.Note { // a repeated note counts once
			entries = append(entries, e)
		}
	}
	for _, off := range lines {
		_, _, err := record.Scan(s.Path(RecordFile), off, func(l record.Line) error {
			switch e := l.Event().(type) {
			case *record.EvaluatorVerdict:
				entries = append(entries, entryOf(l.TS, e))
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

// noteEntry returns the user's note as a line of the ledger.
func noteEntry(ts, note string) LedgerEntry {
	none := json.RawMessage(`{}`)
	return LedgerEntry{TS: ts, Case: none, Verdict: none, Note: note}
}

// WriteLedger writes a task's ledger from the record if it differs, and reports whether it did. It only adds missing
// entries to a ledger that began in another session's record.
func (s *Session) WriteLedger(id string, task record.Task) (changed bool, err error) {
	want, err := s.RecordedLedger(task.Ledger)
	if err != nil || task.Shared && len(want) == 0 {
		return false, err
	}
	path, err := s.taskPath(LedgerDir, id, len(want) > 0)
	if err != nil {
		return false, err
	}
	have, err := jsonl.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	if task.Shared {
		entries, err := s.ReadLedger(id, 0)
		if err != nil {
			return false, err
		}
		isThere := func(e LedgerEntry) bool {
			return slices.ContainsFunc(entries, func(other LedgerEntry) bool { return e.Says() == other.Says() })
		}
		want = append(entries, slices.DeleteFunc(want, isThere)...)
	}
	var lines []byte
	for _, e := range want {
		lines = append(append(lines, record.JSON(e)...), '\n')
	}
	switch {
	case bytes.Equal(have, lines):
		return false, nil
	case len(want) == 0:
		return true, os.Remove(path)
	}
	return true, jsonl.Put(path, lines, false)
}

// ReadLedger reads a task's last entries, oldest first, and before them all notes of the user; all entries if last is 0
// or less. Lines that are not entries are left out. A task without a ledger has no entries.
func (s *Session) ReadLedger(task string, last int) ([]LedgerEntry, error) {
	path, err := s.taskPath(LedgerDir, task, false)
	if err != nil {
		return nil, err
	}
	var entries []LedgerEntry
	calls := 0
	_, err = jsonl.Tail(path, func(_ int64, line []byte) bool {
		var e LedgerEntry
		if decode(line, &e) != nil {
			return true
		}
		if e.Note == "" {
			calls++
		}
		if last <= 0 || calls <= last || e.Note != "" {
			entries = append(entries, e)
		}
		return true
	})
	slices.Reverse(entries)
	return entries, err
}

// taskPath returns the path of a task's file in one of the session's directories. create creates the directory. It
// checks the task's id, which becomes part of a path, and the directory, which a worker can replace by a link.
func (s *Session) taskPath(dir, task string, create bool) (string, error) {
	if task == "" || strings.HasPrefix(task, ".") || strings.ContainsAny(task, "/\\\x00") {
		return "", fmt.Errorf("task id %q cannot name a file", task)
	}
	if err := s.checkDir(dir); err != nil {
		return "", err
	}
	if create {
		if err := os.Mkdir(s.Path(dir), dirMode); err != nil && !errors.Is(err, os.ErrExist) {
			return "", err
		}
	}
	return s.Path(dir, task+".jsonl"), nil
}

// checkDir refuses a path that is not a real directory of the session.
func (s *Session) checkDir(name string) error {
	fi, err := os.Lstat(s.Path(name))
	if err != nil || fi.IsDir() {
		return nil
	}
	return &os.PathError{Op: "open", Path: s.Path(name), Err: syscall.ENOTDIR}
}
