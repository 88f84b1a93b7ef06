package rewind

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/snapshot"
	"github.com/git-tilth/git-tilth/internal/text"
)

const (
	undoFile   = "undo.json"
	keptLoose  = "files"
	keptOwn    = "session"
	nextOwn    = "next"
	gitsPartIn = 1 // Step of a journal: branch and tracked files are as they become
)

// journal describes an unfinished rewind or undo, and later has the data for its undo.
type journal struct {
	Number  int       `json:"number"`
	To      string    `json:"to,omitempty"`     // the point of a rewind
	Undoes  int       `json:"undoes,omitempty"` // the number of what an undo takes back
	Note    string    `json:"note,omitempty"`
	Noted   string    `json:"noted,omitempty"` // the task whose ledger gets the note
	Started string    `json:"started"`
	Step    int       `json:"step"`
	Cut     *cut      `json:"cut,omitempty"` // of a reset to the seed
	looked  bool      // by this process: all that it needs is there
	Before  condition `json:"before"`
	After   condition `json:"after"`
}

// condition is the state of a session without the moved files.
type condition struct {
	Worktree      snapshot.Snapshot           `json:"worktree"`
	Status        string                      `json:"status"`
	Conversations map[string]string           `json:"conversations"` // by task, in the text of checkpoint.json
	Counts        int64                       `json:"counts"`        // the record counts up to here
	Tasks         map[string]record.TaskState `json:"tasks"`
}

// String names the operation.
func (j *journal) String() string {
	switch {
	case j.Cut != nil:
		return "the rewind to the seed"
	case j.Undoes > 0:
		return "the undo"
	}
	return "the rewind to " + j.To
}

// Begun names a way back of a session that was begun and not finished, "" for none.
func Begun(s *session.Session) (string, error) {
	j, err := readJournal(s)
	if err != nil || j == nil {
		return "", err
	}
	return j.String(), nil
}

// Finish finishes a way back that was begun, and names it.
func Finish(ctx context.Context, h *held.Handle) (what string, err error) {
	j, err := readJournal(h.S)
	if err != nil || j == nil {
		return "", err
	}
	return j.String(), applyRewind(ctx, h, j)
}

// readJournal reads the journal of an operation that was begun; nil without an error if none was.
func readJournal(s *session.Session) (*journal, error) { return readUndo(s.Path(session.GoBackFile)) }

func readUndo(path string) (*journal, error) {
	data, err := jsonl.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	j := &journal{}
	if err == nil {
		err = json.Unmarshal(data, j)
	}
	whole := j.Cut != nil || text.IsSHA(j.Before.Worktree.Files) && j.Number > 0
	if err == nil && !(whole && text.IsSHA(j.After.Worktree.Files)) {
		err = errors.New("is damaged")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return j, nil
}

func saveJournal(h *held.Handle, j *journal) error {
	return h.Change(func() error {
		return jsonl.WriteFile(h.S.Path(session.GoBackFile), append(record.JSON(j), '\n'))
	})
}

// undos lists the numbers in undo/, in order: those that are whole, and the others.
func undos(s *session.Session) (whole, broken []int) {
	entries, _ := os.ReadDir(s.Path(snapshot.UndosDir))
	for _, e := range entries {
		n, err := strconv.Atoi(e.Name())
		if err != nil || n < 1 {
			continue
		}
		if held.Exists(filepath.Join(snapshot.UndoDir(s, n), undoFile)) {
			whole = append(whole, n)
		} else {
			broken = append(broken, n)
		}
	}
	slices.Sort(whole)
	return whole, broken
}

// UndoOf names the operation that an undo would take back, or "".
func UndoOf(s *session.Session) string {
	whole, _ := undos(s)
	if len(whole) == 0 {
		return ""
	}
	j, err := readUndo(filepath.Join(snapshot.UndoDir(s, whole[len(whole)-1]), undoFile))
	if err != nil {
		return err.Error()
	}
	began := record.ParseTime(j.Started).Local().Format("2006-01-02 15:04:05")
	return fmt.Sprintf("%s of %s: back to %.10s", j, began, j.Before.Worktree.Tip)
}

// describe fills in the condition of the session. Usage of a dead process stays counted.
func describe(h *held.Handle, tip string, c *condition) error {
	if err := h.SettleTotals(); err != nil {
		return err
	}
	sum, err := h.S.Summarize()
	if err != nil {
		return err
	}
	tasks, err := h.S.Tasks()
	if err != nil {
		return err
	}
	*c = condition{Worktree: snapshot.Snapshot{Tip: tip, Files: tip}, Status: h.Checkpoint.Status,
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
	return h.Save()
}

func conversations(c *session.Checkpoint) map[string]string {
	texts := map[string]string{}
	for id, raw := range c.Conversations {
		texts[id] = string(raw)
	}
	return texts
}

// clearUndos removes from undo/ unfinished entries, entries that were taken back, and all but the last few.
func clearUndos(h *held.Handle) error {
	whole, gone := undos(h.S)
	if n := len(whole); n > 0 {
		last, err := readUndo(filepath.Join(snapshot.UndoDir(h.S, whole[n-1]), undoFile))
		if err == nil && last.Undoes > 0 {
			gone = append(gone, last.Undoes)
		}
		gone = append(gone, whole[:max(n-max(h.UndoKeep, 1), 0)]...)
		if err := proc.RemoveAll(filepath.Join(snapshot.UndoDir(h.S, whole[n-1]), nextOwn)); err != nil {
			return err
		}
	}
	for _, n := range gone {
		if err := dropUndo(h, n); err != nil {
			return err
		}
	}
	// After a power cut the refs may exist without the directory.
	refs, _ := os.ReadDir(h.S.Path(session.KeptGitDir, "refs/undo"))
	for _, e := range refs {
		if n, err := strconv.Atoi(e.Name()); err != nil || slices.Contains(whole, n) && !slices.Contains(gone, n) {
			continue
		}
		if err := proc.RemoveAll(h.S.Path(session.KeptGitDir, "refs/undo", e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// dropUndo removes the data of an undo. Its pack may belong to another undo as well.
func dropUndo(h *held.Handle, n int) error {
	used := map[string]bool{}
	whole, _ := undos(h.S)
	pack := ""
	for _, other := range whole {
		j, err := readUndo(filepath.Join(snapshot.UndoDir(h.S, other), undoFile))
		switch {
		case err != nil || j == nil:
		case other == n:
			pack = j.Before.Worktree.Pack
		default:
			used[j.Before.Worktree.Pack] = true
		}
	}
	if j, err := readJournal(h.S); err == nil && j != nil {
		used[j.Before.Worktree.Pack] = true
	}
	if !used[pack] {
		if err := snapshot.DropPack(h.S, pack); err != nil {
			return err
		}
	}
	refs := h.S.Path(session.KeptGitDir, "refs/undo", strconv.Itoa(n))
	return errors.Join(proc.RemoveAll(refs), proc.RemoveAll(snapshot.UndoDir(h.S, n)))
}
