package lifecycle

import (
	"cmp"
	"context"
	"reflect"
	"slices"

	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
)

// The user's marks, besides done, which is a commit (loop.Done).
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
	if err := h.Append(&record.TaskMarked{Scope: record.Scope{TaskID: task}, Mark: mark, Note: note}); err != nil {
		return err
	}
	if mark == MarkRetry {
		if err := h.Change(func() error { return prepareRetry(h, task) }); err != nil {
			return err
		}
	}
	tasks, err := h.S.StoredTasks()
	if err != nil {
		return err
	}
	return saveTasks(h, tasks)
}

func saveTasks(h *held.Handle, tasks []session.Task) error {
	return h.Change(func() error { return cmp.Or(h.WriteViews(tasks), h.Sync(), h.S.WriteSummary()) })
}

func prepareRetry(h *held.Handle, task string) error {
	if _, err := h.WriteLedger(task); err != nil {
		return err
	}
	conversation := h.Checkpoint.Conversation(task)
	if conversation == nil {
		return nil
	}
	conversation.Over = true
	return h.Checkpoint.SetConversation(task, conversation)
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
	begun, err := held.BegunLanes(ctx, h.Git, h.S, h.Common)
	if err != nil {
		return err
	}
	changes := differences(before, edited)
	for _, m := range changes {
		if m.Mark == "removed" && slices.Contains(begun, m.TaskID) {
			if err := held.StashLane(ctx, h, m.TaskID, state.Tasks[m.TaskID].Attempt); err != nil {
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
