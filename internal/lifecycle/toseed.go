package lifecycle

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/tidwall/gjson"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
)

// The reset to the seed uses the journal of rewind and undo (rewind.go) and keeps nothing: the run's files are deleted,
// and the record is cut.
//
// The state on disk after each step; every step may be repeated:
//  1. the journal                          nothing is undone yet, but the reset can no longer be cancelled
//  2. worktree and branch at the seed; then judge/ is removed
//  3. the run's files deleted
//  4. the record cut, and for a fork its tasks marked as pending
//  5. prd.json all pending, checkpoint prepared
//  6. no journal                           finished

// rewoundFiles are the files of a run besides the record.
var rewoundFiles = []string{
	session.LedgerDir, session.ConversationDir, session.KeptGitDir,
	session.ProgressFile, session.LearningsFile, session.SummaryFile, session.ChatHTMLFile, session.AgentDir, RunLog,
}

// RunLog is the file with the output of a detached run.
const RunLog = "run.log"

// cut has the new end of the record and the new checkpoint of a reset to the seed.
type cut struct {
	RecordLen  int64           `json:"record_len"` // bytes of events.jsonl that stay
	TokensUsed int64           `json:"tokens_used"`
	Usage      json.RawMessage `json:"usage"`
	StartedAt  string          `json:"started_at,omitempty"` // the checkpoint's value at the end of the preparation
	// Keep are the paths that were ignored when it began and stay, relative to the worktree. They are bytes, because
	// names need not be UTF-8.
	Keep [][]byte `json:"keep,omitempty"`
}

// notRewound returns the error of a session that cannot be rewound. Nothing has changed.
func notRewound(h *held.Handle, format string, args ...any) error {
	return held.Refuse("git tilth reset "+h.S.ID+" && git tilth prep-feature", "session %s cannot be rewound: %s",
		h.S.ID, fmt.Sprintf(format, args...))
}

// notLooked is an error of git or of the file system, independent of the session.
func notLooked(h *held.Handle, what string, err error) error {
	return &held.StepError{Step: "looking at " + what + " of session " + h.S.ID, Err: err,
		Hint: "git tilth reset --to-seed " + h.S.ID}
}

// preflight refuses a rewind, or the rest of one, without a repository that has the seed and the branch, or with an
// unreadable task list. It returns the seed's full id and the branch's tip.
func preflight(ctx context.Context, h *held.Handle, sha string) (full, tip string, err error) {
	switch {
	case held.Resetting(h.S):
		return "", "", notRewound(h, "its reset was not finished")
	case errors.Is(h.SourceErr, held.ErrSourceGone):
		return "", "", held.Refuse(held.SourceHint(h.S, h.Path())+" and git tilth prep-feature",
			"session %s cannot be rewound: %s", h.S.ID, h.SourceErr)
	case errors.Is(h.SourceErr, held.ErrSourceUnknown):
		return "", "", notRewound(h, "%s", h.SourceErr)
	case h.SourceErr != nil:
		return "", "", notLooked(h, "the source", h.SourceErr)
	case !text.IsSHA(sha):
		return "", "", notRewound(h, "its seed is recorded as %q, which is not a commit id", sha)
	}
	full, err = held.ResolveSeed(ctx, h.Git, h.Common, sha)
	if errors.Is(err, gitx.ErrNotFound) {
		return "", "", notRewound(h, "its seed %s is not a commit of the repository", sha)
	}
	if err != nil {
		return "", "", notLooked(h, "the seed", err)
	}
	tip, ok, err := h.Git.BranchTip(ctx, h.Common, h.S.Branch())
	if err != nil {
		return "", "", notLooked(h, "the branch", err)
	}
	if !ok {
		return "", "", notRewound(h, "its branch %s is gone", h.S.Branch())
	}
	tasks, err := h.S.Tasks()
	if err != nil {
		return "", "", notRewound(h, "%s", err)
	}
	if broken := session.ValidateTasks(tasks); len(broken) > 0 {
		return "", "", notRewound(h, "%s: %s", h.S.Path(session.TasksFile), broken[0])
	}
	stored, err := os.ReadFile(h.S.Path(session.TasksFile))
	for i, entry := range gjson.ParseBytes(stored).Array() {
		if !entry.Get("description").Exists() {
			return "", "", notRewound(h, "%s: entry %d has no description", h.S.Path(session.TasksFile), i+1)
		}
	}
	return full, tip, err
}

// PlanToSeed checks a reset to the seed, or the rest of an unfinished one; it replaces an unfinished rewind or undo. A
// refusal is a *held.RefusedError, a failed check a *held.StepError. It changes nothing.
func PlanToSeed(ctx context.Context, h *held.Handle) (p GoBack, err error) {
	if j, _ := readJournal(h.S); j != nil && j.Cut != nil {
		return GoBack{What: "finish " + j.String(), Begun: true, SHA: j.After.Worktree.Tip, journal: j},
			checkCut(ctx, h, j)
	}
	if held.Resetting(h.S) {
		return p, notRewound(h, "its reset was not finished")
	}
	begun, err := record.ReadBeginning(h.S.Path(session.RecordFile)) // the original base, before any update
	if err != nil {
		return p, notLooked(h, "the record", err)
	}
	seed, prepared := begun.Seed, begun.Prepared
	switch {
	case seed == nil:
		return p, notRewound(h, "%s", held.ErrNoSeed)
	case seed.Branch != h.S.Branch():
		return p, notRewound(h, "its seed was committed on %q, which is not its branch", seed.Branch)
	case prepared == nil:
		return p, notRewound(h, "no session_prepared event with tokens_used in the record")
	}
	if p.SHA, p.From, err = preflight(ctx, h, seed.SHA); err != nil {
		return p, err
	}
	base, err := h.MergeBase(ctx, p.SHA, p.From)
	if err != nil {
		return p, notLooked(h, "the branch", err)
	}
	if base != p.SHA {
		return p, notRewound(h, "its branch does not contain the seed %s", p.SHA)
	}
	if p.Worktree, err = h.Worktree(ctx); err != nil {
		return p, notRewound(h, "%s", err)
	}
	// The seed's line stays, with its newline.
	end, err := lineEnd(h.S, begun.SeedAt)
	if err != nil {
		return p, err
	}
	p.journal = &journal{Started: record.FormatTime(h.Now()), Cut: &cut{RecordLen: end,
		TokensUsed: *prepared.TokensUsed, Usage: prepared.Usage, StartedAt: prepared.StartedAt}}
	p.journal.After.Worktree = held.Snapshot{Tip: p.SHA}
	if fi, err := os.Stat(h.S.Path(session.RecordFile)); err == nil {
		p.RunBytes = fi.Size() - end
	}
	return p, nil
}

// lineEnd returns the end of the record's line that begins at off, including its newline.
func lineEnd(s *session.Session, off int64) (int64, error) {
	end, _, err := jsonl.Scan(s.Path(session.RecordFile), off, func(int64, []byte) error { return jsonl.ErrStop })
	return end, err
}

// keepIgnored notes the ignored files that stay. In an unfinished reset the ignore rules may already be the seed's.
func (p GoBack) keepIgnored(ctx context.Context, h *held.Handle) error {
	keep, err := h.Git.IgnoredBefore(ctx, p.Worktree, p.SHA)
	for _, path := range keep {
		p.journal.Cut.Keep = append(p.journal.Cut.Keep, []byte(path))
	}
	return err
}

// checkCut checks an unfinished reset to the seed for damage since it began. Before the first step it checks
// everything that later steps need. The errors are those of PlanToSeed.
func checkCut(ctx context.Context, h *held.Handle, j *journal) error {
	if _, _, err := preflight(ctx, h, j.After.Worktree.Tip); err != nil {
		return err
	}
	fi, err := os.Lstat(h.S.Path(session.RecordFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return notRewound(h, "its record is gone")
	case err != nil:
		return notLooked(h, "the record", err)
	case !fi.Mode().IsRegular() || fi.Size() < j.Cut.RecordLen:
		return notRewound(h, "its record is damaged: it is shorter than it was when the rewind began")
	}
	return nil
}

// forgetRun executes the steps after the journal.
func forgetRun(ctx context.Context, h *held.Handle, j *journal) error {
	if err := checkCut(ctx, h, j); err != nil {
		return err
	}
	if h.Record != nil {
		h.Record.Close()
		h.Record = nil
	}
	wt, err := h.WholeWorktree(ctx)
	if err != nil {
		return err
	}
	var keep []string
	for _, path := range j.Cut.Keep {
		keep = append(keep, string(path))
	}
	if err := held.RemoveLanes(ctx, h); err != nil {
		return err
	}
	if err := h.Git.RewindTree(ctx, wt, j.After.Worktree.Tip, keep); err != nil {
		return err
	}
	if err := h.Change(func() error { return removeJudged(h) }); err != nil {
		return err
	}
	return h.Change(func() error { return rewindFiles(h, j) })
}

// removeJudged removes the judged checkout with its link to the repository. Caches stay: setup may have filled them.
func removeJudged(h *held.Handle) error {
	link := session.RepoLink(h.Path())
	err := errors.Join(proc.RemoveAll(h.S.Path(session.JudgeDir)), proc.RemoveAll(link))
	_ = os.Remove(filepath.Dir(link)) // if it is empty
	return err
}

// rewindFiles executes the steps of a reset to the seed after those of git.
func rewindFiles(h *held.Handle, j *journal) error {
	paths := held.MovedAside(h.S)
	for _, name := range rewoundFiles {
		paths = append(paths, h.S.Path(name))
	}
	for _, path := range paths {
		if err := proc.RemoveAll(path); err != nil {
			return err
		}
	}
	tasks, err := h.S.StoredTasks()
	if err != nil {
		return err
	}
	if err := cutFile(h.S.Path(session.RecordFile), j.Cut.RecordLen); err != nil {
		return err
	}
	if err := forgetShared(h, j, tasks); err != nil {
		return err
	}
	h.Checkpoint.TokensUsed = j.Cut.TokensUsed
	h.Checkpoint.Usage = session.Usage{}
	_ = json.Unmarshal(j.Cut.Usage, &h.Checkpoint.Usage) // nothing without an interview
	if j.Cut.StartedAt != "" {
		h.Checkpoint.StartedAt = j.Cut.StartedAt
	}
	h.Checkpoint.Conversations, h.Checkpoint.Preflight = nil, ""
	if err := cmp.Or(h.WriteViews(tasks), h.Sync()); err != nil {
		return err
	}
	return errors.Join(os.Remove(h.S.Path(session.GoBackFile)), h.Sync())
}

// forgetShared records that the tasks that a fork started with are pending again. Their events are before the seed's,
// so cutting the record keeps them.
func forgetShared(h *held.Handle, j *journal, tasks []session.Task) error {
	if at := h.Checkpoint.ForkedAt; at == "" || at == j.After.Worktree.Tip {
		return nil
	}
	e := record.SessionRewound{To: PointSeed, From: h.Checkpoint.ForkedAt, SHA: j.After.Worktree.Tip,
		Counts: j.Cut.RecordLen, Tasks: map[string]record.TaskState{}}
	for _, t := range tasks {
		e.Tasks[t.ID] = record.TaskState{Status: session.TaskPending}
	}
	return h.Append(&e)
}

// cutFile shortens a file to n bytes, durably. It does not change a shorter file.
func cutFile(path string, n int64) error {
	f, err := jsonl.OpenFile(path, os.O_RDWR)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return err
	}
	if fi.Size() <= n {
		return nil
	}
	if err := f.Truncate(n); err != nil {
		return err
	}
	return f.Sync()
}
