// Package rewind returns a session to a point or to its seed, and undoes that.
package rewind

import (
	"cmp"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/lanes"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/snapshot"
)

// A rewind and an undo are one operation: it saves the session's state in undo/<n> and then replaces it, with a point
// of the record or with an earlier saved state. In undo/<n>:
//
//	index       the worktree's index; the commits since the seed, and contents of index and files that no commit has,
//	            are in kept.git, refs/undo/<n>/
//	files/      files without content in git: changed files, untracked ones that are not ignored
//	session/    prd.json, progress.txt, ledger/, conversation/, kept.git/refs/aside/
//	next/       until the end: the replacement of those after a rewind
//	undo.json   at the end: the journal
//
// The state on disk after each step. Before the journal the session is unchanged, and the next rewind or undo removes
// the leftovers. After it every command that changes the session first finishes the operation; `reset` removes it with
// the session, and `reset --to-seed` (toseed.go), with the same journal file, replaces it. Each step except the third
// may be repeated:
//  1. undo/<n> without files/               unchanged
//  2. going-back.json, the journal          from here on the operation is carried out
//  3. session_rewound or session_undone     recognised by its number
//  4. files/ filled                         moved files are not moved again
//  5. branch and tracked files in the new state
//  6. the journal says that 5 is done       repeating 5 would remove the files of the next step
//  7. loose files and index restored
//  8. session/ filled, its members replaced; the checkpoint; the roll-up
//  9. the journal is undo/<n>/undo.json     finished
// 10. undone and surplus entries removed

// keptFiles and TaskDirs are the session's files that a rewind saves.
var keptFiles = []string{session.TasksFile, session.ProgressFile}

// TaskDirs are a session's directories with files named after their tasks; keptDirs are those that a rewind saves.
var (
	TaskDirs = []string{session.LedgerDir, session.ConversationDir}
	keptDirs = append(slices.Clone(TaskDirs), session.AsideDir)
)

// Plan is a rewind to a point or an undo, as it would be carried out.
type Plan struct {
	What    string   // is done, in words
	From    string   // the commit that the branch is at
	SHA     string   // the one that it becomes
	Pending []string // the tasks that are to do then
	Begun   bool     // it was begun and not finished: the question was answered then
	Over    bool     // the last command did it: another undo of nothing would be in its undo's way

	Worktree gitx.Worktree
	RunBytes int64 // of the record that goes with a reset to the seed

	journal *journal
	seed    string
	tasks   []session.Task
	drop    []string // the tasks of which nothing is left at the point
	point   Point
}

// IsRewind reports whether the plan is a rewind and no undo.
func (p Plan) IsRewind() bool { return p.journal.Undoes == 0 }

// Kept reports whether files stay that were ignored when a reset to the seed began: only of those can one be untracked
// then.
func (p Plan) Kept() bool { return p.journal.Cut != nil && len(p.journal.Cut.Keep) > 0 }

// PlanTo plans a rewind to the named point. One that was begun and not finished is planned to its end; another
// operation that was is finished first. The errors are those of PlanToSeed.
func PlanTo(ctx context.Context, h *held.Handle, name, note string) (Plan, error) {
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
			name, Names(points))
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
		Worktree: snapshot.Snapshot{Tip: p.SHA, Files: p.SHA}, Status: session.Running, Counts: p.point.counts,
		Conversations: conversations(h.Checkpoint), Tasks: map[string]record.TaskState{},
	}
	for _, id := range p.drop {
		delete(p.journal.After.Conversations, id)
		p.journal.After.Tasks[id] = record.TaskState{Status: session.TaskPending}
	}
	return p, nil
}

// isAt reports whether nothing has happened, in the record and in the worktree, since a rewind to the plan's point with
// that note.
func isAt(ctx context.Context, h *held.Handle, p Plan, note string) (bool, error) {
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

// PlanUndo plans to take the last rewind or undo back. The errors are those of PlanToSeed.
func PlanUndo(ctx context.Context, h *held.Handle) (Plan, error) {
	if p, err := begun(ctx, h, func(j *journal) bool { return j.Undoes > 0 }); err != nil || p.Begun {
		return p, err
	}
	whole, _ := undos(h.S)
	if len(whole) == 0 {
		return Plan{}, held.Refuse("git tilth rewind -h", "session %s has nothing to undo", h.S.ID)
	}
	p, err := newPlan(ctx, h)
	if err != nil {
		return p, err
	}
	n := whole[len(whole)-1]
	last, err := readUndo(filepath.Join(snapshot.UndoDir(h.S, n), undoFile))
	if err != nil {
		return p, notRewound(h, "%s", err)
	}
	then, err := (&session.Session{Dir: filepath.Join(snapshot.UndoDir(h.S, n), keptOwn)}).StoredTasks()
	if err != nil {
		return p, notRewound(h, "%s", err)
	}
	p.journal.Undoes, p.journal.After = n, last.Before
	p.Pending, p.SHA, p.What = toDo(then), last.Before.Worktree.Tip, "take back "+last.String()
	return p, nil
}

// Names lists the names of points.
func Names(points []Point) string {
	var names []string
	for _, p := range points {
		names = append(names, p.Name)
	}
	return strings.Join(names, ", ")
}

// begun plans the rest of an unfinished operation if meant accepts it; it finishes another one.
func begun(ctx context.Context, h *held.Handle, meant func(*journal) bool) (p Plan, err error) {
	j, err := readJournal(h.S)
	if err != nil || j == nil {
		return p, err
	}
	if h.Common == "" {
		return p, notRewound(h, "%s", h.SourceErr)
	}
	if meant(j) || h.Git.IsDryRun() {
		return Plan{What: "finish " + j.String(), Begun: true, journal: j}, nil
	}
	return p, applyRewind(ctx, h, j)
}

// newPlan makes the pre-flight that a rewind and an undo share.
func newPlan(ctx context.Context, h *held.Handle) (p Plan, err error) {
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
	whole, broken := undos(h.S)
	p.journal = &journal{Number: 1 + slices.Max(append(append(whole, broken...), 0)),
		Started: record.FormatTime(h.Now())}
	return p, nil
}

// Execute carries the plan out. Where the handle's Git is a dry run, its commands are printed and no file is written.
func (p Plan) Execute(ctx context.Context, h *held.Handle) error {
	ctx = held.IgnoreFirstSignal(ctx)
	if !p.Begun {
		if p.journal.Cut == nil {
			if err := lanes.SetAllAside(ctx, h); err != nil {
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

// keep writes undo/<n>, and the session's condition into the journal.
func (p Plan) keep(ctx context.Context, h *held.Handle) error {
	j, dir := p.journal, snapshot.UndoDir(h.S, p.journal.Number)
	if err := h.Change(func() error { return clearUndos(h) }); err != nil {
		return err
	}
	if err := h.OpenRecord(); err != nil {
		return err
	}
	if err := describe(h, p.From, &j.Before); err != nil {
		return err
	}
	if err := h.Change(func() error { return p.backUpFiles(h, dir) }); err != nil {
		return err
	}
	var err error
	j.Before.Worktree, err = snapshot.Keep(ctx, h, p.Worktree, j.After.Worktree, p.seed, j.Number, j.Undoes)
	return err
}

// backUpFiles copies the session's files that will be replaced, and writes their replacements.
func (p Plan) backUpFiles(h *held.Handle, dir string) error {
	for _, part := range []string{keptOwn, nextOwn, keptLoose} {
		if err := os.MkdirAll(filepath.Join(dir, part), 0o700); err != nil {
			return err
		}
	}
	for _, name := range keptFiles {
		if err := jsonl.CopyFile(h.S.Path(name), filepath.Join(dir, keptOwn, name)); err != nil {
			return err
		}
	}
	for _, name := range keptDirs {
		if _, err := os.Lstat(h.S.Path(name)); err == nil {
			name = filepath.Dir(name) // it is moved there
		}
		if err := os.MkdirAll(filepath.Join(dir, keptOwn, name), 0o700); err != nil {
			return err
		}
	}
	if p.journal.Undoes > 0 {
		return nil
	}
	return p.layOutNext(h, &session.Session{ID: h.S.ID, Dir: filepath.Join(dir, nextOwn)})
}

// applyRewind takes the steps from the journal on.
func applyRewind(ctx context.Context, h *held.Handle, j *journal) error {
	ctx = held.IgnoreFirstSignal(ctx)
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
	dir, from := snapshot.UndoDir(h.S, j.Number), snapshot.UndoDir(h.S, j.Undoes)
	if j.Step < gitsPartIn {
		if err := moveLoose(h, j.Before.Worktree.Loose, wt.Path, filepath.Join(dir, keptLoose)); err != nil {
			return err
		}
		if err := snapshot.Restore(ctx, h, wt, j.After.Worktree, j.Undoes); err != nil {
			return err
		}
		j.Step = gitsPartIn
		if err := saveJournal(h, j); err != nil {
			return err
		}
	}
	if j.Undoes > 0 {
		if err := moveLoose(h, j.After.Worktree.Loose, filepath.Join(from, keptLoose), wt.Path); err != nil {
			return err
		}
		if err := snapshot.RestoreIndex(ctx, h.Git, wt, j.After.Worktree, from); err != nil {
			return err
		}
	}
	return h.Change(func() error { return endRewind(h, j, dir, from) })
}

// recordRewind puts the operation on record, once.
func recordRewind(h *held.Handle, j *journal) error {
	noted := false
	_, _, err := record.Scan(h.S.Path(session.RecordFile), j.Before.Counts, func(l record.Line) error {
		if _, back := l.WentBack(); back {
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
		Note: j.Note, Noted: j.Noted, Counts: to.Counts, Tasks: to.Tasks})
}

// endRewind takes the steps after git's.
func endRewind(h *held.Handle, j *journal, dir, from string) error {
	next := filepath.Join(dir, nextOwn)
	if j.Undoes > 0 {
		next = filepath.Join(from, keptOwn)
	}
	if err := replaceFiles(h, filepath.Join(dir, keptOwn), next); err != nil {
		return err
	}
	h.Checkpoint.Status, h.Checkpoint.Conversations = j.After.Status, map[string]json.RawMessage{}
	for id, text := range j.After.Conversations {
		h.Checkpoint.Conversations[id] = json.RawMessage(text)
	}
	tasks, err := h.S.StoredTasks()
	if err != nil {
		return err
	}
	h.NoteStatuses(tasks)
	if err := h.Save(); err != nil {
		return err
	}
	if err := h.S.WriteSummary(); err != nil {
		return err
	}
	if err := os.Rename(h.S.Path(session.GoBackFile), filepath.Join(dir, undoFile)); err != nil {
		return err
	}
	if err := cmp.Or(jsonl.SyncDir(dir), jsonl.SyncDir(h.S.Dir)); err != nil {
		return err
	}
	return clearUndos(h)
}
