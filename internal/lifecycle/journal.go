package lifecycle

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
)

// What takes more than one step leaves a mark until it is over, and one mark says it all: whoever holds the session
// next finishes what was begun, or says what does. What is on disk after each step stands where the operation is.
//
//	the mark                    was begun                          and is then
//	going-back.json (a journal) rewind, undo                       finished by each command that changes the session
//	  with "cut" in it          reset --to-seed                    the same
//	reset                       reset                              finished by reset
//	  with "fork" in it         fork, fetch, unpack                removed by the next of them, doctor --fix, reset
//	.fork-<id>/                 a session without a name           removed by the next that is made, doctor --fix
//	remake                      a worktree made anew, or cleanse   a worktree that is made anew
//	entry/                      an entry for a worktree's files    made again, while that is not registered
//	taking.json                 a take, in a checkout              refused until a person has looked at the checkout
//
// A mark comes before all else, but for objects that nothing refers to, and goes last. Each step may be done twice.

const (
	undosDir   = "undo" // what each undo needs, by its number
	undoFile   = "undo.json"
	keptLoose  = "files"
	keptOwn    = "session"
	nextOwn    = "next"
	gitsPartIn = 1 // Step of a journal: branch and tracked files are as they become
)

// journal is a rewind or an undo that was begun, and later what an undo of it needs.
type journal struct {
	Number  int       `json:"number"`
	To      string    `json:"to,omitempty"`     // the point of a rewind
	Undoes  int       `json:"undoes,omitempty"` // the number of what an undo takes back
	Note    string    `json:"note,omitempty"`
	Started string    `json:"started"`
	Step    int       `json:"step"`
	Cut     *cut      `json:"cut,omitempty"` // of a reset to the seed
	looked  bool      // by this process: all that it needs is there
	Before  condition `json:"before"`
	After   condition `json:"after"`
}

// condition is what a session is, beside the files that are moved.
type condition struct {
	Worktree      snapshot                    `json:"worktree"`
	Status        string                      `json:"status"`
	Conversations map[string]string           `json:"conversations"` // by task, in the text of checkpoint.json
	Counts        int64                       `json:"counts"`        // the record counts up to here
	Tasks         map[string]record.TaskState `json:"tasks"`
	Stop          *record.LastStop            `json:"stop,omitempty"`
}

// String names the operation.
func (j *journal) String() string {
	switch {
	case j.Cut != nil:
		return "the rewind to the seed"
	case j.Undoes > 0:
		return fmt.Sprintf("the undo of %d", j.Undoes)
	}
	return "the rewind to " + j.To
}

func undoDir(s *session.Session, n int) string { return s.Path(undosDir, strconv.Itoa(n)) }

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

func (h *Handle) saveJournal(j *journal) error {
	return h.change(func() error {
		return jsonl.WriteFile(h.S.Path(session.GoBackFile), append(record.JSON(j), '\n'))
	})
}

// undos lists the numbers in undo/, in order: those that are whole, and the others.
func undos(s *session.Session) (whole, broken []int) {
	entries, _ := os.ReadDir(s.Path(undosDir))
	for _, e := range entries {
		n, err := strconv.Atoi(e.Name())
		if err != nil || n < 1 {
			continue
		}
		if exists(filepath.Join(undoDir(s, n), undoFile)) {
			whole = append(whole, n)
		} else {
			broken = append(broken, n)
		}
	}
	slices.Sort(whole)
	return whole, broken
}

// UndoOf says what an undo of the session would take back, "" for nothing.
func UndoOf(s *session.Session) string {
	whole, _ := undos(s)
	if len(whole) == 0 {
		return ""
	}
	j, err := readUndo(filepath.Join(undoDir(s, whole[len(whole)-1]), undoFile))
	if err != nil {
		return err.Error()
	}
	began := record.ParseTime(j.Started).Local().Format("2006-01-02 15:04:05")
	return fmt.Sprintf("%s of %s: back to %.10s", j, began, j.Before.Worktree.Tip)
}

// condition writes down what the session is beside its files. What a process that died had spent is spent.
func (h *Handle) condition(tip string, c *condition) error {
	if err := h.settleTotals(); err != nil {
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
	*c = condition{Worktree: snapshot{Tip: tip, Files: tip}, Status: h.Checkpoint.Status, Stop: sum.Stop,
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

// clearUndos removes what is not whole in undo/, what was taken back, and all but the last few.
func (h *Handle) clearUndos() error {
	whole, gone := undos(h.S)
	if n := len(whole); n > 0 {
		last, err := readUndo(filepath.Join(undoDir(h.S, whole[n-1]), undoFile))
		if err == nil && last.Undoes > 0 {
			gone = append(gone, last.Undoes)
		}
		gone = append(gone, whole[:max(n-max(h.UndoKeep, 1), 0)]...)
		if err := proc.RemoveAll(filepath.Join(undoDir(h.S, whole[n-1]), nextOwn)); err != nil {
			return err
		}
	}
	for _, n := range gone {
		if err := h.dropUndo(n); err != nil {
			return err
		}
	}
	// Of one that a machine which died has lost the directory, the refs may be there.
	refs, _ := os.ReadDir(h.S.Path(keptGitDir, "refs/undo"))
	for _, e := range refs {
		if n, err := strconv.Atoi(e.Name()); err != nil || slices.Contains(whole, n) && !slices.Contains(gone, n) {
			continue
		}
		if err := proc.RemoveAll(h.S.Path(keptGitDir, "refs/undo", e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// dropUndo removes what an undo needs. The same objects may be the pack of another one.
func (h *Handle) dropUndo(n int) error {
	used := map[string]bool{}
	whole, _ := undos(h.S)
	pack := ""
	for _, other := range whole {
		j, err := readUndo(filepath.Join(undoDir(h.S, other), undoFile))
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
		if err := dropPack(h.S, pack); err != nil {
			return err
		}
	}
	refs := h.S.Path(keptGitDir, "refs/undo", strconv.Itoa(n))
	return errors.Join(proc.RemoveAll(refs), proc.RemoveAll(undoDir(h.S, n)))
}
