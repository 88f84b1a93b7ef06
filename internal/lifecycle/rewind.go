package lifecycle

import (
	"cmp"
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
)

// A rewind and an undo are one operation. It saves the session's state in kept.git, as undo n (held.Snapshot). Then it
// restores a point of the record or an earlier saved state.
//
// The state on disk after each step. Before the journal the session is unchanged. After it every command that changes
// the session first finishes the operation; `reset` removes it with the session, and `reset --to-seed` (toseed.go),
// with the same journal file, replaces it. Each step may be repeated:
//  1. the snapshot's pack in kept.git       unchanged; the next snapshot of this number gets another pack
//  2. going-back.json, the journal          from here on the operation is carried out
//  3. session_rewound or session_undone     recognised by its number
//  4. the worktree without untracked files
//  5. branch and tracked files in the new state
//  6. no files of pending tasks; after an undo, untracked files, files of tasks and index restored
//  7. the views and the roll-up written
//  8. refs/undo/<n>/                        the snapshot is an undo
//  9. no journal                            finished
// 10. undone and surplus undos removed

// TaskDirs are a session's directories with one file per task. keptDirs are those that a rewind saves.
var (
	TaskDirs = []string{session.LedgerDir, session.ConversationDir}
	keptDirs = append(slices.Clone(TaskDirs), session.AsideDir)
)

// GoBack is a planned rewind to a point, or undo.
type GoBack struct {
	What    string   // description of the operation
	From    string   // the branch's current tip
	SHA     string   // the new commit
	Pending []string // the pending tasks after it
	Begun   bool     // unfinished; the user has confirmed it
	Over    bool     // the last command did this already; repeating it would only add an undo

	Worktree gitx.Worktree
	RunBytes int64 // bytes of the record that a reset to the seed cuts

	journal *journal
	seed    string
	tasks   []session.Task
	drop    []string // tasks that the point removes
	point   Point
}

// IsRewind reports whether the plan is a rewind, not an undo.
func (p GoBack) IsRewind() bool { return p.journal.Undoes == 0 }

// Kept reports whether files stay that were ignored when a reset to the seed began. Only such files can become
// untracked.
func (p GoBack) Kept() bool { return p.journal.Cut != nil && len(p.journal.Cut.Keep) > 0 }

// PlanRewind plans a rewind to the named point, or the rest of an unfinished rewind to that point. It first finishes
// any other unfinished operation. The errors are those of PlanToSeed.
func PlanRewind(ctx context.Context, h *held.Handle, name, note string) (GoBack, error) {
	if p, err := begun(ctx, h, func(j *journal) bool { return j.To == name }); err != nil || p.Begun {
		return p, err
	}
	p, err := newPlan(ctx, h)
	if err != nil {
		return p, err
	}
	points, err := Points(ctx, h.Git, h.S, h.Common)
	if err != nil {
		return p, notLooked(h, "the points", err)
	}
	i := slices.IndexFunc(points, func(at Point) bool { return at.Name == name })
	if i < 0 {
		return p, held.Refuse("git tilth show "+h.S.ID, "session %s has no point %q; its points are %s", h.S.ID,
			name, pointNames(points))
	}
	p.point = points[i]
	if p.Over, err = isAt(ctx, h, p, note); err != nil {
		return p, err
	}
	p.tasks, p.drop = p.point.At(p.tasks)
	p.Pending, p.SHA, p.What = toDo(p.tasks), p.point.SHA, "rewind to "+name
	p.journal.To, p.journal.Note = name, note
	if note != "" {
		p.journal.Noted = p.tasks[p.point.index].ID
	}
	p.journal.After = condition{
		Worktree: held.Snapshot{Tip: p.SHA}, Counts: p.point.counts,
		Conversations: conversations(h.Checkpoint), Tasks: map[string]record.TaskState{},
	}
	for _, id := range p.drop {
		delete(p.journal.After.Conversations, id)
		p.journal.After.Tasks[id] = record.TaskState{Status: session.TaskPending}
	}
	return p, nil
}

// isAt reports whether record and worktree have not changed since a rewind to the plan's point with that note.
func isAt(ctx context.Context, h *held.Handle, p GoBack, note string) (bool, error) {
	is := false
	_, err := record.Tail(h.S.Path(session.RecordFile), func(l record.Line) bool {
		e, rewound := l.Event().(*record.SessionRewound)
		is = rewound && e.To == p.point.Name && e.Note == note && e.SHA == p.From
		return false
	})
	if err != nil || !is {
		return false, err
	}
	dirty, err := h.Git.IsDirty(ctx, p.Worktree.Path)
	return !dirty, err
}

// PlanUndo plans to undo the last rewind or undo. The errors are those of PlanToSeed.
func PlanUndo(ctx context.Context, h *held.Handle) (GoBack, error) {
	if p, err := begun(ctx, h, func(j *journal) bool { return j.Undoes > 0 }); err != nil || p.Begun {
		return p, err
	}
	undos := held.Undos(h.S)
	if len(undos) == 0 {
		return GoBack{}, held.Refuse("git tilth rewind -h", "session %s has nothing to undo", h.S.ID)
	}
	p, err := newPlan(ctx, h)
	if err != nil {
		return p, err
	}
	n := undos[len(undos)-1]
	last, err := readUndo(ctx, h.Git, h.S, n)
	if err != nil {
		return p, notRewound(h, "%s", err)
	}
	then := slices.Clone(p.tasks)
	for i := range then {
		then[i].Status = last.Before.Tasks[then[i].ID].Status
	}
	p.journal.Undoes, p.journal.After = n, last.Before
	p.Pending, p.SHA, p.What = toDo(then), last.Before.Worktree.Tip, "take back "+last.String()
	return p, nil
}

// pointNames lists the names of points.
func pointNames(points []Point) string {
	var names []string
	for _, p := range points {
		names = append(names, p.Name)
	}
	return strings.Join(names, ", ")
}

// begun plans the rest of an unfinished operation if meant accepts it, and finishes any other one.
func begun(ctx context.Context, h *held.Handle, meant func(*journal) bool) (p GoBack, err error) {
	j, err := readJournal(h.S)
	if err != nil || j == nil {
		return p, err
	}
	if h.Common == "" {
		return p, notRewound(h, "%s", h.SourceErr)
	}
	if meant(j) || h.Git.IsDryRun() {
		return GoBack{What: "finish " + j.String(), Begun: true, journal: j}, nil
	}
	return p, applyRewind(ctx, h, j)
}

// newPlan checks the conditions of a rewind or an undo.
func newPlan(ctx context.Context, h *held.Handle) (p GoBack, err error) {
	recorded, err := held.SeedOf(h.S)
	if err != nil {
		return p, notRewound(h, "%s", err)
	}
	if p.seed, p.From, err = preflight(ctx, h, recorded); err != nil {
		return p, err
	}
	if p.Worktree, err = h.Worktree(ctx); err != nil {
		if _, elsewhere := h.Elsewhere(ctx); elsewhere {
			return p, held.Refuse(held.GitLine(h.Path(), "switch", h.S.Branch()), "session %s cannot be rewound: %s",
				h.S.ID, err)
		}
		return p, held.Refuse("git tilth resume "+h.S.ID, "session %s cannot be rewound: %s; a resume creates it again",
			h.S.ID, err)
	}
	if p.tasks, err = h.S.Tasks(); err != nil {
		return p, err
	}
	p.journal = &journal{Number: 1 + slices.Max(append(held.Undos(h.S), 0)), Started: record.FormatTime(h.Now())}
	return p, nil
}

// Execute carries the plan out. Where the handle's Git is a dry run, its commands are printed and no file is written.
func (p GoBack) Execute(ctx context.Context, h *held.Handle) error {
	ctx = proc.IgnoreFirstSignal(ctx)
	if !p.Begun {
		if p.journal.Cut == nil {
			if err := held.StashLanes(ctx, h); err != nil {
				return err
			}
		}
		keep := p.keep
		if p.journal.Cut != nil {
			keep = p.keepIgnored
		}
		if err := keep(ctx, h); err != nil {
			return err
		}
		if err := saveJournal(h, p.journal); err != nil {
			return err
		}
	}
	return applyRewind(ctx, h, p.journal)
}

// keep saves the session's state as an undo, and notes its condition in the journal.
func (p GoBack) keep(ctx context.Context, h *held.Handle) error {
	j := p.journal
	if err := h.Change(func() error { return clearUndos(ctx, h) }); err != nil {
		return err
	}
	if err := h.OpenRecord(); err != nil {
		return err
	}
	if err := describe(h, p.From, &j.Before); err != nil {
		return err
	}
	if j.Onto != nil {
		j.After.Counts = j.Before.Counts
	}
	var err error
	j.Before.Worktree, j.Refs, err = held.TakeSnapshot(ctx, h, p.Worktree, held.SnapshotRequest{
		Number: j.Number, Becomes: j.After.Worktree, Of: j.Undoes, Base: p.seed, Dirs: keptDirs,
		Note: func(s held.Snapshot) any {
			j.Before.Worktree = s
			return j
		},
	})
	return err
}

// applyRewind executes the steps after the journal.
func applyRewind(ctx context.Context, h *held.Handle, j *journal) error {
	ctx = proc.IgnoreFirstSignal(ctx)
	if j.Cut != nil {
		return forgetRun(ctx, h, j)
	}
	if err := h.OpenRecord(); err != nil {
		return err
	}
	if err := recordRewind(h, j); err != nil {
		return err
	}
	wt, err := h.WholeWorktree(ctx)
	if err != nil {
		return err
	}
	if err := held.Restore(ctx, h, wt, j.Before.Worktree, j.After.Worktree, j.Undoes, keptDirs); err != nil {
		return err
	}
	if j.Undoes == 0 {
		if err := h.Change(func() error { return dropTasks(h, j.After.Tasks) }); err != nil {
			return err
		}
	}
	return h.Change(func() error { return endRewind(ctx, h, j) })
}

// recordRewind puts the operation on record, once.
func recordRewind(h *held.Handle, j *journal) error {
	noted := false
	_, _, err := record.Scan(h.S.Path(session.RecordFile), j.Before.Counts, func(l record.Line) error {
		if _, _, back := l.WentBack(); back {
			noted = true
		}
		return nil
	})
	if err != nil || noted {
		return err
	}
	to := j.After
	if j.Undoes > 0 {
		return h.Append(&record.SessionUndone{Undo: j.Undoes, Redo: j.Number, Counts: to.Counts, Tasks: to.Tasks})
	}
	return h.Append(&record.SessionRewound{To: j.To, From: j.Before.Worktree.Tip, SHA: to.Worktree.Tip, Undo: j.Number,
		Note: j.Note, Noted: j.Noted, Counts: to.Counts, Tasks: to.Tasks, Onto: j.Onto})
}

// endRewind executes the steps after those of git.
func endRewind(ctx context.Context, h *held.Handle, j *journal) error {
	dropEmpty(h.S)
	h.Checkpoint.Conversations = map[string]json.RawMessage{}
	for id, text := range j.After.Conversations {
		h.Checkpoint.Conversations[id] = json.RawMessage(text)
	}
	if j.Noted != "" {
		if _, err := h.WriteLedger(j.Noted); err != nil {
			return err
		}
	}
	if err := cmp.Or(writeViews(h), h.S.WriteSummary()); err != nil {
		return err
	}
	unix.Sync() // the next undo removes the only other copy of the restored files
	if err := held.FinishUndo(h, j.Number, j.Refs); err != nil {
		return err
	}
	if err := os.Remove(h.S.Path(session.GoBackFile)); err != nil {
		return err
	}
	if err := h.Sync(); err != nil {
		return err
	}
	return clearUndos(ctx, h)
}
