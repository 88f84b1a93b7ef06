package lifecycle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
)

// journal describes an unfinished rewind or undo, and later has the data for its undo.
type journal struct {
	Number  int          `json:"number"`
	To      string       `json:"to,omitempty"`     // the point of a rewind
	Undoes  int          `json:"undoes,omitempty"` // number of the operation that an undo takes back
	Note    string       `json:"note,omitempty"`
	Noted   string       `json:"noted,omitempty"` // task with the note in its ledger
	Started string       `json:"started"`
	Cut     *cut         `json:"cut,omitempty"`  // for a reset to the seed
	Onto    *record.Onto `json:"onto,omitempty"` // for a move to another base
	// Refs are the commits of the snapshot that Before is in, by the names of their refs.
	Refs   map[string]string `json:"refs,omitempty"`
	Before condition         `json:"before"`
	After  condition         `json:"after"`
}

// condition is the state of a session without its files.
type condition struct {
	Worktree      held.Snapshot               `json:"worktree"`
	Conversations map[string]string           `json:"conversations"` // text for checkpoint.json, by task
	Counts        int64                       `json:"counts"`        // length of the record that counts
	Tasks         map[string]record.TaskState `json:"tasks"`
}

// String names the operation.
func (j *journal) String() string {
	switch {
	case j.Cut != nil:
		return "the rewind to the seed"
	case j.Undoes > 0:
		return "the undo"
	case j.Onto != nil:
		return "the move to another base"
	}
	return "the rewind to " + j.To
}

// goingBack names the unfinished rewind or undo of a session, "" for none.
func goingBack(s *session.Session) (string, error) {
	j, err := readJournal(s)
	if err != nil || j == nil {
		return "", err
	}
	return j.String(), nil
}

// finishGoingBack finishes an unfinished rewind or undo, and names it.
func finishGoingBack(ctx context.Context, h *held.Handle) (what string, err error) {
	j, err := readJournal(h.S)
	if err != nil || j == nil {
		return "", err
	}
	return j.String(), applyRewind(ctx, h, j)
}

// readJournal reads the journal of an unfinished operation; nil without an error if there is none.
func readJournal(s *session.Session) (*journal, error) {
	data, err := jsonl.ReadFile(s.Path(session.GoBackFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	j, err := parseJournal(s.Path(session.GoBackFile), data, err)
	if err == nil && j.Cut == nil && len(j.Refs) == 0 {
		err = errors.New(s.Path(session.GoBackFile) + ": names no snapshot")
	}
	return j, err
}

// readUndo reads the journal of the operation that undo n takes back.
func readUndo(ctx context.Context, g *gitx.Git, s *session.Session, n int) (*journal, error) {
	data, err := held.UndoNote(ctx, g, s, n)
	return parseJournal(fmt.Sprintf("undo %d in %s", n, s.Path(session.KeptGitDir)), data, err)
}

func parseJournal(name string, data []byte, err error) (*journal, error) {
	j := &journal{}
	if err == nil {
		err = json.Unmarshal(data, j)
	}
	whole := j.Cut != nil || text.IsSHA(j.Before.Worktree.Tip) && j.Number > 0
	if err == nil && !(whole && text.IsSHA(j.After.Worktree.Tip)) {
		err = errors.New("is damaged")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return j, nil
}

func saveJournal(h *held.Handle, j *journal) error {
	return h.Change(func() error {
		return jsonl.WriteFile(h.S.Path(session.GoBackFile), append(record.JSON(j), '\n'))
	})
}

// UndoOf names the operation that an undo would take back, or "".
func UndoOf(ctx context.Context, g *gitx.Git, s *session.Session) string {
	undos := held.Undos(s)
	if len(undos) == 0 {
		return ""
	}
	j, err := readUndo(ctx, g, s, undos[len(undos)-1])
	if err != nil {
		return err.Error()
	}
	began := record.ParseTime(j.Started).Local().Format("2006-01-02 15:04:05")
	return fmt.Sprintf("%s of %s: back to %.10s", j, began, j.Before.Worktree.Tip)
}

// describe fills in the condition of the session.
func describe(h *held.Handle, tip string, c *condition) error {
	sum, err := h.S.Summarize()
	if err != nil {
		return err
	}
	tasks, err := h.S.Tasks()
	if err != nil {
		return err
	}
	*c = condition{Worktree: held.Snapshot{Tip: tip},
		Conversations: conversations(h.Checkpoint), Tasks: map[string]record.TaskState{}}
	if fi, err := os.Stat(h.S.Path(session.RecordFile)); err == nil {
		c.Counts = fi.Size()
	}
	for _, t := range tasks {
		state := record.TaskState{Status: t.Status}
		if was := sum.Tasks[t.ID]; was != nil {
			state.Commit, state.FailureReason = was.Commit, was.FailureReason
		}
		c.Tasks[t.ID] = state
	}
	return nil
}

func conversations(c *session.Checkpoint) map[string]string {
	texts := map[string]string{}
	for id, raw := range c.Conversations {
		texts[id] = string(raw)
	}
	return texts
}

// clearUndos removes the undo that the last undo took back, and all but the last few.
func clearUndos(ctx context.Context, h *held.Handle) error {
	undos := held.Undos(h.S)
	n := len(undos)
	if n == 0 {
		return nil
	}
	gone := undos[:max(n-max(h.UndoKeep, 1), 0)]
	if last, err := readUndo(ctx, h.Git, h.S, undos[n-1]); err == nil && last.Undoes > 0 {
		gone = append(slices.Clone(gone), last.Undoes)
	}
	for _, n := range gone {
		if err := held.DropUndo(h.S, n); err != nil {
			return err
		}
	}
	return nil
}

// dropTasks removes the files of tasks that go back to pending.
func dropTasks(h *held.Handle, tasks map[string]record.TaskState) error {
	for _, dir := range keptDirs {
		entries, _ := os.ReadDir(h.S.Path(dir))
		for _, e := range entries {
			task, _, _ := strings.Cut(e.Name(), ".")
			if tasks[task].Status == session.TaskPending {
				if err := os.Remove(h.S.Path(dir, e.Name())); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// dropEmpty removes empty directories for files of tasks.
func dropEmpty(s *session.Session) {
	for _, name := range keptDirs {
		_ = os.Remove(s.Path(name)) // fails if the directory is not empty
	}
}
