package loop

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/lifecycle"
	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
)

// The plan and the ledgers decide how work is judged, today and in the next run: a ledger holds a person's notes, which
// a reviewer obeys. While a run is at work nobody but the harness writes them, so it remembers what they hold and puts
// that back before they are read again, and when it stops.

// ownFiles remembers the plan and the ledgers before a worker has begun.
func (r *run) ownFiles() {
	r.own = map[string][]byte{}
	r.left(session.TasksFile)
	for _, name := range lifecycle.Marks {
		if _, err := os.Lstat(r.S.Path(name)); errors.Is(err, fs.ErrNotExist) {
			r.own[name] = nil
		}
	}
	for _, t := range r.tasks {
		if t.Status == session.TaskPending || t.Status == session.TaskFailed {
			r.left(ledgerOf(t.ID))
		}
	}
}

func ledgerOf(task string) string { return filepath.Join(session.LedgerDir, task+".jsonl") }

// left remembers what the harness has just written. One that is not there is nil, one that cannot be read is left
// alone.
func (r *run) left(name string) {
	if r.own == nil {
		return // no worker where a person's word alone makes a task done
	}
	data, err := jsonl.ReadFile(r.S.Path(name))
	if r.own[name] = data; err != nil && !errors.Is(err, fs.ErrNotExist) {
		delete(r.own, name)
	}
}

// putBack gives files what the harness left in them.
func (r *run) putBack(names ...string) error {
	for _, name := range names {
		was, known := r.own[name]
		path := r.S.Path(name)
		now, err := jsonl.ReadFile(path)
		gone := errors.Is(err, fs.ErrNotExist)
		if !known || bytes.Equal(now, was) && (err == nil && was != nil || gone && was == nil) {
			continue
		}
		// Only a directory would keep a file from being replaced; a crash must leave one or the other.
		if fi, lerr := os.Lstat(path); was == nil || lerr == nil && fi.IsDir() {
			err = proc.RemoveAll(path)
		} else {
			err = nil
		}
		if err == nil && was != nil {
			err = jsonl.WriteFile(path, was)
		}
		if err == nil {
			err = r.Record.Append(&record.LogRepaired{What: name + " was changed during the run", Done: "put back"})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// readLedger reads the last entries of the task's ledger as the harness left it.
func (a *attempt) readLedger() ([]session.LedgerEntry, error) {
	if err := a.putBack(ledgerOf(a.task.ID)); err != nil {
		return nil, err
	}
	return a.S.ReadLedger(a.task.ID, ledgerEntries)
}
