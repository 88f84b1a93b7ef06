package lifecycle

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/teardown"
)

// Draft is a session before it is made: a directory without a session's name, in which can be tried whether it could
// be run. Neither branch nor worktree nor record are there. It becomes a session by Create, or goes with Discard.
func Draft(d held.Deps, n New) (*held.Handle, error) {
	s, unlock, err := n.draft(d, session.NewID(d.Now()))
	if err != nil {
		return nil, err
	}
	h := &held.Handle{Deps: d, S: s, Common: n.Location.CommonDir, Base: n.Base, Unlock: unlock}
	h.Checkpoint = n.checkpoint(h)
	return h, nil
}

// Discard ends a draft that no session is made of.
func Discard(h *held.Handle) error {
	defer h.Close()
	return proc.RemoveAll(h.S.Dir)
}

// checkpoint is that of a session that is begun.
func (n New) checkpoint(h *held.Handle) *session.Checkpoint {
	return &session.Checkpoint{
		SessionID: h.S.ID, Source: n.Location.Source, GitCommonDir: n.Location.CommonDir,
		Workspace: h.S.Workspace(), Branch: h.S.Branch(), Status: session.Running,
		StartedAt: record.FormatTime(h.Now()), Label: n.Label, Anew: n.Anew,
	}
}

// directory makes the directory of a session. It gets its name after it is locked, because an unlocked one looks
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
		if errors.Is(err, fs.ErrExist) { // somebody else was quicker to make it
			err = held.InUse(&session.Session{ID: s.ID, Dir: dir})
		}
		return nil, nil, errors.Join(err, os.RemoveAll(draft))
	}
	s.Dir = dir
	return s, unlock, jsonl.SyncDir(n.Store.Root)
}

// draft makes the directory of a session that has no name yet, that of a fork marked, and locks it. What was killed
// over that goes.
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
		teardown.EndLeftovers(filepath.Join(dir, session.WorkspaceDir), filepath.Join(dir, session.JudgeDir))
		_ = proc.RemoveAll(dir)
	}
	s = &session.Session{ID: id, Dir: filepath.Join(n.Store.Root, session.DraftPrefix+id)}
	if err := os.Mkdir(s.Dir, 0o700); err != nil {
		return nil, nil, err
	}
	if n.making != "" {
		mark := []byte("\n" + n.making + "\n" + held.ForkMark + "\n")
		if err := jsonl.WriteFile(s.Path(session.ResetMarkFile), mark); err != nil {
			return nil, nil, errors.Join(err, os.RemoveAll(s.Dir))
		}
	}
	if unlock, err = s.Lock(d.Now()); err != nil {
		return nil, nil, errors.Join(err, os.RemoveAll(s.Dir))
	}
	return s, unlock, nil
}

// Checkout is the user's own checkout of the session's source, or the source itself where it has none. Hooks see it as
// they will see the worktree; nothing may be written in it.
func Checkout(h *held.Handle) (gitx.Worktree, error) {
	return h.Git.CheckoutAt(h.Common, h.Checkpoint.Source)
}
