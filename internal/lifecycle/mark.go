package lifecycle

import (
	"context"
	"errors"
	"reflect"
	"slices"

	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/lanes"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
)

// The marks of a person, beside done, which is a commit (loop.Done).
const (
	MarkDone    = "done"
	MarkSkipped = "skipped"
	MarkRetry   = "retry"
)

// Mark skips or retries a task, with a note to worker and evaluator.
//
// The state on disk after each step; repeating the command after a crash finishes it:
//  1. task_marked
//  2. for retry: the note in the ledger; the stored conversation is dropped
//  3. prd.json
//
// The next resume stashes a skipped task's work in the worktree or in a placeholder (Plan.SetAside).
func Mark(h *held.Handle, task, mark, note string) error {
	if err := adoptEdits(h, nil); err != nil {
		return err
	}
	tasks, err := h.S.Tasks()
	if err != nil {
		return err
	}
	i := session.IndexOf(tasks, task)
	marked := &record.TaskMarked{Scope: record.Scope{TaskID: task}, Mark: mark, Note: note}
	if err := h.Append(marked); err != nil {
		return err
	}
	tasks[i].Status = session.TaskSkipped
	if mark == MarkRetry {
		tasks[i].Status = session.TaskPending
		if err := h.Change(func() error { return prepareRetry(h, task, note) }); err != nil {
			return err
		}
	}
	return saveTasks(h, tasks)
}

func saveTasks(h *held.Handle, tasks []session.Task) error {
	return h.Change(func() error {
		if state, err := h.S.State(); err == nil && state.Seed != nil {
			h.Checkpoint.Status = state.SessionStatus()
		}
		if err := errors.Join(h.SaveTasks(tasks), h.Save()); err != nil {
			return err
		}
		return h.S.WriteSummary()
	})
}

func prepareRetry(h *held.Handle, task, note string) error {
	entries, err := h.S.ReadLedger(task, 1)
	if err != nil {
		return err
	}
	there := func(e session.LedgerEntry) bool { return e.Note == note }
	if note != "" && !slices.ContainsFunc(entries, there) {
		if err := h.AppendNote(h.S, record.FormatTime(h.Now()), task, note); err != nil {
			return err
		}
	}
	conversation := h.Checkpoint.Conversation(task)
	if conversation == nil {
		return nil
	}
	conversation.Over = true
	if err := h.Checkpoint.SetConversation(task, conversation); err != nil {
		return err
	}
	return h.Save()
}

// Replan adopts a plan that the user edited between two runs. The state on disk after each step: the lanes' work of
// removed tasks stashed, while the record has their bases; task_marked for each task that was added, changed, moved or
// removed; prd.json.
func Replan(ctx context.Context, h *held.Handle, edited []session.Task) error {
	if err := adoptEdits(h, nil); err != nil {
		return err
	}
	before, err := h.S.Tasks()
	if err != nil {
		return err
	}
	state, err := h.S.State()
	if err != nil {
		return err
	}
	begun, err := lanes.Begun(ctx, h.Git, h.S, h.Common)
	if err != nil {
		return err
	}
	changes := differences(before, edited)
	for _, m := range changes {
		if m.Mark == "removed" && slices.Contains(begun, m.TaskID) {
			if err := lanes.SetAside(ctx, h, m.TaskID, state.Tasks[m.TaskID].Attempt); err != nil {
				return err
			}
		}
	}
	for _, m := range changes {
		if err := h.Append(&m); err != nil {
			return err
		}
	}
	return saveTasks(h, edited)
}

// differences returns an edit's changes to each task.
func differences(before, after []session.Task) (out []record.TaskMarked) {
	mark := func(id, what string) {
		out = append(out, record.TaskMarked{Scope: record.Scope{TaskID: id}, Mark: what})
	}
	stays := func(in []session.Task) (ids []string) {
		for _, t := range in {
			if session.IndexOf(before, t.ID) >= 0 && session.IndexOf(after, t.ID) >= 0 {
				ids = append(ids, t.ID)
			}
		}
		return ids
	}
	was, is := stays(before), stays(after)
	for _, t := range after {
		switch i := session.IndexOf(before, t.ID); {
		case i < 0:
			mark(t.ID, "added")
		case !reflect.DeepEqual(before[i], t):
			mark(t.ID, "changed")
		case slices.Index(was, t.ID) != slices.Index(is, t.ID):
			mark(t.ID, "moved")
		}
	}
	for _, t := range before {
		if session.IndexOf(after, t.ID) < 0 {
			mark(t.ID, "removed")
		}
	}
	return out
}
