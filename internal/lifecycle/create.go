package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
)

// New describes a session to make.
type New struct {
	Store    session.Store
	Location gitx.Location
	Base     string              // commit at which the branch begins
	Label    string              // a few words for lists
	Recreate string              // command that creates the session again; "" for an interview
	Start    record.SessionStart // agents and limits
	Draft    *held.Handle        // draft of the session, or nil
	making   string              // repository of a session that counts as torn down until it is complete, or ""
}

// Create makes a session directory, its branch and its worktree, and locks the session.
//
// The state on disk after each step, and the next command's reaction:
//  1. .fork-<id>/, locked (Draft)       no session; the next import removes it
//     <id>/                             list calls it damaged; reset removes it
//  2. checkpoint.json, running          list: no seed; resume refuses and names reset
//  3. session_start
//  4. branch and worktree (one git command; a kill may leave only the branch)
//     reset removes both
//
// The status becomes prepared only after the seed's commit is on record (CommitSeed). A dry run makes nothing, and the
// session is called <id>.
func Create(ctx context.Context, d held.Deps, n New) (*held.Handle, error) {
	s, unlock, err := n.directory(d, newID(d))
	if err != nil {
		return nil, err
	}
	h := &held.Handle{Deps: d, S: s, Common: n.Location.CommonDir, Base: n.Base, Unlock: unlock}
	h.Checkpoint = n.checkpoint(ctx, h)
	if err = h.Save(); err == nil {
		err = begin(h, n)
	}
	if err == nil {
		_, err = h.Git.AddWorktree(ctx, h.Common, h.Path(), h.S.Branch(), n.Base, true)
	}
	if err != nil {
		undoCreate(ctx, h)
		h.Close()
		return nil, err
	}
	return h, nil
}

// newID returns the id of a session that is made now.
func newID(d held.Deps) string {
	if d.Git.IsDryRun() {
		return "<id>"
	}
	return session.NewID(d.Now())
}

// begin writes the first line of the record.
func begin(h *held.Handle, n New) error {
	start := n.Start
	start.Phase, start.Base = cmp.Or(start.Phase, "prep-feature"), cmp.Or(start.Base, n.Base)
	start.Source, start.Worktree, start.Branch = h.Checkpoint.Source, h.Checkpoint.Workspace, h.Checkpoint.Branch
	return h.Append(&start)
}

// undoCreate deletes a session without any work.
func undoCreate(ctx context.Context, h *held.Handle) {
	if h.Git.IsDryRun() {
		return
	}
	ctx = proc.IgnoreFirstSignal(ctx)
	// Errors are ignored. The directory is removed last: reset, and for a fork the next fork and doctor, use it to find
	// the parts that git would not remove.
	err := h.Git.RemoveWorktree(ctx, h.Common, h.Path())
	if err == nil {
		_, err = h.Git.DeleteBranch(ctx, h.Common, h.S.Branch())
	}
	if err == nil {
		_ = removeDir(h.S)
	}
}

// CommitSeed makes the session's seed commit: a commit of the acceptance tests, or without tests the branch's base, or
// with KeepEmptySeed an empty commit. Before the call prd.json and the test files must be installed.
//
// The state on disk after each step:
//  1. session_prepared      a session with a finished interview and without a seed: reset
//  2. the commit            the same; the branch has nothing else
//  3. seed_committed        the seed is complete; resume treats it as prepared
//  4. checkpoint prepared
func CommitSeed(ctx context.Context, h *held.Handle, tasks, tests int, prepared record.SessionPrepared) error {
	ctx = proc.IgnoreFirstSignal(ctx)
	wt, err := h.Worktree(ctx)
	if err != nil {
		return err
	}
	prepared.PRDEntries, prepared.TestFiles = tasks, tests
	// A rewind restores them.
	prepared.TokensUsed, prepared.Usage = &h.Checkpoint.TokensUsed, record.JSON(h.Checkpoint.Usage)
	prepared.StartedAt = h.Checkpoint.StartedAt
	if err := h.Append(&prepared); err != nil {
		return err
	}
	parent, there, err := h.Git.BranchTip(ctx, h.Common, h.S.Branch())
	if err != nil {
		return err
	}
	if !there {
		parent = h.Base // base of a dry run
	}
	sha := parent // without a seed commit, the seed is the branch's base
	if tests > 0 || h.KeepEmptySeed {
		tree, _, err := h.Git.StageAll(ctx, wt, parent)
		if err == nil {
			sha, err = commitSeed(ctx, h, wt, gitx.TreeCommit{Tree: tree, Parent: parent}, tasks, tests)
		}
		if err != nil {
			undoSeed(ctx, h, wt, parent)
			return err
		}
	}
	if err = noteSeed(h, sha); err != nil && !held.Seeded(h.S) {
		undoSeed(ctx, h, wt, parent)
	}
	return err
}

// commitSeed commits the seed's tree on its parent.
func commitSeed(ctx context.Context, h *held.Handle, wt gitx.Worktree, c gitx.TreeCommit, tasks, tests int) (string,
	error) {
	mark, err := h.RecordMark()
	if err != nil {
		return "", err
	}
	c.Message = held.SeedMessage(h.S.ID, tasks, tests, mark, h.SignedOff(ctx, h.Common))
	c.Reflog, c.Sign = "tilth: seed", h.Sign
	return h.Git.CommitTree(ctx, wt, c)
}

// undoSeed removes an unrecorded seed from the branch and the index. It ignores errors, because reset removes the rest.
func undoSeed(ctx context.Context, h *held.Handle, wt gitx.Worktree, parent string) {
	if tip, _, err := h.Git.BranchTip(ctx, h.Common, h.S.Branch()); err == nil && tip != parent {
		_ = h.Git.Reset(ctx, wt, parent, false)
	}
	if tree, err := h.Git.RevParse(ctx, h.Common, parent+"^{tree}"); err == nil {
		_ = h.Git.ReadTree(ctx, wt, tree, false)
	}
}

// Reopen continues a preparation without a seed: the session is running again, and the index is reset to the branch.
func Reopen(ctx context.Context, h *held.Handle) error {
	wt, err := h.Worktree(ctx)
	if err != nil {
		return err
	}
	tree, err := h.Git.RevParse(ctx, h.Common, h.S.Branch()+"^{tree}")
	if err != nil {
		return err
	}
	if err := h.Git.ReadTree(ctx, wt, tree, false); err != nil {
		return err
	}
	if err := h.OpenRecord(); err != nil {
		return err
	}
	h.Checkpoint.Status = session.Running
	return h.Save()
}

// Fail ends a preparation without a seed.
func Fail(h *held.Handle, reason string, cause error) error {
	stop := record.Stop{Reason: reason}
	if cause != nil {
		stop.Error = cause.Error()
	}
	if err := h.OpenRecord(); err != nil {
		return fmt.Errorf("the record of %s: %w", h.S.ID, err)
	}
	return Stopped(h, session.Failed, stop)
}

// Draft makes the draft of a session: a directory without a session's name, for checks before the session exists. It
// has no branch, worktree or record. Create turns it into a session; Discard removes it.
func Draft(ctx context.Context, d held.Deps, n New) (*held.Handle, error) {
	s, unlock, err := n.draft(d, session.NewID(d.Now()))
	if err != nil {
		return nil, err
	}
	h := &held.Handle{Deps: d, S: s, Common: n.Location.CommonDir, Base: n.Base, Unlock: unlock}
	h.Checkpoint = n.checkpoint(ctx, h)
	return h, nil
}

// Discard deletes a draft that will not become a session.
func Discard(h *held.Handle) error {
	defer h.Close()
	return proc.RemoveAll(h.S.Dir)
}

// checkpoint returns the first checkpoint of a session.
func (n New) checkpoint(ctx context.Context, h *held.Handle) *session.Checkpoint {
	h.S.SetBranch(n.branch(ctx, h))
	return &session.Checkpoint{
		SessionID: h.S.ID, Source: n.Location.Source, GitCommonDir: n.Location.CommonDir,
		Workspace: h.S.Workspace(), Branch: h.S.Branch(), Status: session.Running,
		StartedAt: record.FormatTime(h.Now()), Label: n.Label, Recreate: n.Recreate,
	}
}

// branch returns the name of the session's branch by tilth.branch. It adds the session's id to a name that is in use.
func (n New) branch(ctx context.Context, h *held.Handle) string {
	if h.BranchForm == "" {
		return session.DefaultBranch(h.S.ID)
	}
	name := strings.NewReplacer("{id}", h.S.ID, "{label}", cmp.Or(slug(n.Label), h.S.ID),
		"{date}", h.Now().Format("2006-01-02")).Replace(h.BranchForm)
	if _, taken, err := h.Git.BranchTip(ctx, h.Common, name); err == nil && taken && !strings.Contains(name, h.S.ID) {
		name += "-" + h.S.ID
	}
	return name
}

// maxSlug limits a label in a branch name, in characters.
const maxSlug = 40

// slug turns a label into a part of a branch name: lower case letters, digits and dashes.
func slug(label string) string {
	words := strings.FieldsFunc(strings.ToLower(label), func(c rune) bool {
		return !unicode.IsLetter(c) && !unicode.IsDigit(c)
	})
	out := ""
	for i, w := range words {
		if i > 0 && utf8.RuneCountInString(out+w) >= maxSlug {
			break
		}
		out += "-" + w
	}
	return strings.TrimPrefix(text.Head(out, 2*maxSlug), "-")
}

// directory creates a session's directory. It locks the directory before naming it, because an unlocked one looks
// damaged.
func (n New) directory(d held.Deps, id string) (s *session.Session, unlock func(), err error) {
	switch {
	case d.Git.IsDryRun():
		return &session.Session{ID: id, Dir: filepath.Join(n.Store.Root, id)}, func() {}, nil
	case n.Draft != nil:
		s, unlock = n.Draft.S, n.Draft.Unlock
	default:
		if s, unlock, err = n.draft(d, id); err != nil {
			return nil, nil, err
		}
	}
	release, err := held.LockRoot(n.Store.Root)
	if err != nil {
		unlock()
		return nil, nil, err
	}
	defer release()
	draft, dir := s.Dir, filepath.Join(n.Store.Root, s.ID)
	if err := os.Rename(draft, dir); err != nil {
		unlock()
		if errors.Is(err, fs.ErrExist) { // another process made it first
			err = held.InUse(&session.Session{ID: s.ID, Dir: dir})
		}
		return nil, nil, errors.Join(err, os.RemoveAll(draft))
	}
	s.Dir = dir
	return s, unlock, jsonl.SyncDir(n.Store.Root)
}

// draft creates and locks a session directory without a name, marked for a fork. It removes leftovers of killed
// processes.
func (n New) draft(d held.Deps, id string) (s *session.Session, unlock func(), err error) {
	if err := os.MkdirAll(n.Store.Root, 0o700); err != nil {
		return nil, nil, err
	}
	release, err := held.LockRoot(n.Store.Root)
	if err != nil {
		return nil, nil, err
	}
	defer release()
	for _, dir := range held.Unnamed(n.Store) {
		endLeftovers(filepath.Join(dir, session.WorkspaceDir), filepath.Join(dir, session.JudgeDir))
		_ = proc.RemoveAll(dir)
	}
	s = &session.Session{ID: id, Dir: filepath.Join(n.Store.Root, session.DraftPrefix+id)}
	if err := os.Mkdir(s.Dir, 0o700); err != nil {
		return nil, nil, err
	}
	if n.making != "" {
		mark := []byte(n.making + "\n" + held.ForkMark + "\n")
		if err := jsonl.WriteFile(s.Path(session.ResetMarkFile), mark); err != nil {
			return nil, nil, errors.Join(err, os.RemoveAll(s.Dir))
		}
	}
	if unlock, err = s.Lock(d.Now()); err != nil {
		return nil, nil, errors.Join(err, os.RemoveAll(s.Dir))
	}
	return s, unlock, nil
}

// Checkout is the user's checkout of the session's source, or the source itself. Hooks see it as they will see the
// worktree. It must not be changed.
func Checkout(h *held.Handle) (gitx.Worktree, error) {
	return h.Git.CheckoutAt(h.Common, h.Checkpoint.Source)
}

// HasRun reports whether a run, also an undone one or that of a forked session, has worked on the seed. It must then
// not be replaced.
func HasRun(ctx context.Context, h *held.Handle) (ran bool, err error) {
	if h.Checkpoint.Status != session.Prepared || held.Unfinished(h.S) {
		return true, nil
	}
	state, err := h.S.State()
	if err != nil || state.Resumed {
		return state != nil, err
	}
	old, _, err := h.SeedCommit(ctx)
	if err != nil {
		return false, err
	}
	tip, there, err := h.Git.BranchTip(ctx, h.Common, h.S.Branch())
	return there && tip != old, err
}

// Reseed adopts an edited plan before any work was done: the seed is committed again on the same parent.
//
// The state on disk after each step:
//  1. prd.json                  the new plan over the old seed commit, with the same tests
//  2. the branch at a new seed  recordSeed finds it
//  3. seed_committed            done
func Reseed(ctx context.Context, h *held.Handle, tasks []session.Task, tests int) error {
	ctx = proc.IgnoreFirstSignal(ctx)
	wt, err := h.Worktree(ctx)
	if err != nil {
		return err
	}
	old, base, err := h.SeedCommit(ctx)
	if err != nil {
		return err
	}
	if base == "" {
		return cmp.Or(h.WriteViews(tasks), h.Sync())
	}
	tree, err := h.Git.RevParse(ctx, h.Common, old+"^{tree}")
	if err != nil {
		return err
	}
	if err := h.S.SaveTasks(tasks); err != nil {
		return err
	}
	made, err := commitSeed(ctx, h, wt, gitx.TreeCommit{Tree: tree, Parent: base, Over: old}, len(tasks), tests)
	if err != nil {
		return err
	}
	return noteSeed(h, made)
}

// noteSeed records the seed's commit. From then on the session is prepared.
func noteSeed(h *held.Handle, sha string) error {
	if err := h.Append(&record.SeedCommitted{SHA: sha, Branch: h.S.Branch()}); err != nil {
		return err
	}
	h.Checkpoint.Recreate = ""
	return h.Change(func() error { return writeViews(h) })
}

// recordSeed records a seed commit after a kill between the commit and the record.
func recordSeed(ctx context.Context, h *held.Handle) error {
	if h.Common == "" {
		return nil
	}
	sha, err := unrecordedSeed(ctx, h.Git, h.S, h.Checkpoint, h.Common)
	if err != nil || sha == "" {
		return err
	}
	return noteSeed(h, sha)
}

// unrecordedSeed returns an unrecorded seed commit at the tip of the branch, or "". Such a commit has this session's
// trailer and names no task, and nothing has run yet. unrecordedSeed changes nothing, because a dry run uses it too.
func unrecordedSeed(ctx context.Context, g *gitx.Git, s *session.Session, check *session.Checkpoint,
	common string) (string, error) {
	state, err := s.State()
	if err != nil {
		return "", err
	}
	recorded := ""
	if state.Seed != nil {
		recorded = state.Seed.SHA
	}
	if recorded != "" && check.Status != session.Prepared || held.Unfinished(s) {
		return "", nil
	}
	tip, ok, err := g.BranchTip(ctx, common, s.Branch())
	if err != nil || !ok || recorded != "" && (!text.IsSHA(recorded) || strings.HasPrefix(tip, recorded)) {
		return "", err
	}
	commits, err := g.Log(ctx, common, tip, "", 1)
	if err != nil || len(commits) == 0 {
		return "", err
	}
	c := commits[0]
	if of := held.SignatureOf(c); of.Session != s.ID || of.Task != "" || !strings.HasPrefix(c.Subject, "seed: ") {
		return "", nil
	}
	if _, err := s.Tasks(); err != nil {
		return "", nil // a seed needs its tasks
	}
	return tip, nil
}
