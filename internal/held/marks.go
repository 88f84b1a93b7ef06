package held

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
)

// An operation of several steps leaves one mark until it is finished. The next holder of the session finishes the
// operation, or names the command that does. The state on disk after each step is described next to the operation.
//
//	the mark                    the operation                      the next step
//	going-back.json (a journal) rewind, undo                       finished by each command that changes the session
//	  with "cut" in it          reset --to-seed                    the same
//	reset                       reset                              finished by reset
//	  with "fork" in it         fork, fetch                        removed by the next of them, doctor --fix, reset
//	.fork-<id>/                 a session without a name           removed by the next that is made, doctor --fix
//	remake                      a worktree made anew, or cleanse   a worktree that is made anew
//	entry/                      an entry for a worktree's files    made again, while that is not registered
//	taking.json                 a take, in a checkout              refused until a person has looked at the checkout
//
// A mark is written first, except for unreferenced objects, and removed last. Each step may be repeated.

// ForkMark is the second line of the mark of an incomplete session.
const ForkMark = "fork"

// Exists reports whether something is at path.
func Exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// ResetMark reads the mark of a teardown: the common directory, "" if unknown or not written; or that the session is an
// unfinished fork.
func ResetMark(s *session.Session) (common string, fork bool) {
	data, _ := os.ReadFile(s.Path(session.ResetMarkFile))
	common, fork = strings.CutSuffix(string(data), "\n"+ForkMark+"\n")
	return strings.TrimSuffix(common, "\n"), fork // a directory's name may hold a newline
}

// IsHalfEntry reports whether git's entry belongs to an unfinished newEntry.
func IsHalfEntry(s *session.Session, e gitx.WorktreeEntry) bool {
	return gitx.SamePath(e.Path, s.Path(entryDir, session.WorkspaceDir))
}

// Unfinished reports whether a rewind, an undo or a teardown of a session is unfinished.
func Unfinished(s *session.Session) bool {
	return Exists(s.Path(session.GoBackFile)) || Resetting(s)
}

// Resetting reports whether a teardown of the session has started.
func Resetting(s *session.Session) bool { return Exists(s.Path(session.ResetMarkFile)) }

// RemakeMark exists while the worktree is made again and is incomplete.
const RemakeMark = "remake"

// Remaking reports whether the worktree was being made again when a process died.
func Remaking(s *session.Session) bool { return Exists(s.Path(RemakeMark)) }

// entryDir is the directory of a session in which git creates a new entry for its worktree.
const entryDir = "entry"

// Unnamed returns directories of sessions that a killed process had not named yet. The root must be locked.
func Unnamed(store session.Store) []string {
	left, _ := filepath.Glob(filepath.Join(text.GlobQuote(store.Root), session.DraftPrefix+"*"))
	return slices.DeleteFunc(left, func(dir string) bool {
		id := strings.TrimPrefix(filepath.Base(dir), session.DraftPrefix)
		_, busy := (&session.Session{ID: id, Dir: dir}).Holder()
		return busy || !session.ValidID(id)
	})
}

// LockRoot locks the sessions root, because a new session directory without its lock looks like the leftover of a kill.
func LockRoot(root string) (release func(), err error) {
	return LockDir(root, rootPatience, fmt.Errorf("another process keeps %s locked", root))
}

// LockDir locks a directory, if its file system supports that. If another process keeps it locked for the whole
// patience, the error is busy.
func LockDir(dir string, patience time.Duration, busy error) (release func(), err error) {
	f, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	for end := time.Now().Add(patience); ; time.Sleep(rootPause) {
		switch err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); {
		case err != unix.EWOULDBLOCK && err != unix.EINTR:
			return func() { f.Close() }, nil
		case !time.Now().Before(end):
			return nil, errors.Join(busy, f.Close())
		}
	}
}

// A session gets its name within milliseconds. A process that locks the sessions root longer, such as a leftover
// worker, is not awaited.
var rootPatience, rootPause = 10 * time.Second, 5 * time.Millisecond

// InUse returns the error for a session that another process is making or has just made.
func InUse(s *session.Session) *session.BusyError {
	if holder, busy := s.Holder(); busy {
		return holder
	}
	return &session.BusyError{Session: s.ID}
}

// Lock takes the session's lock. A dry run refuses a session in use, but writes nothing, not even the lock.
func Lock(d Deps, s *session.Session) (unlock func(), err error) {
	if !d.Git.IsDryRun() {
		return s.Lock(d.Now())
	}
	if holder, busy := s.Holder(); busy {
		return nil, holder
	}
	return func() {}, nil
}

// UnderRoot calls do while no other process names a session in the root.
func UnderRoot(store session.Store, do func() error) error {
	release, err := LockRoot(store.Root)
	if err != nil {
		return err
	}
	defer release()
	return do()
}

// UnchangedSince starts reading a session without its lock. unchanged reports afterwards whether no process changed the
// session meanwhile; else the data read mixes two states.
func UnchangedSince(s *session.Session) (unchanged func() bool, err error) {
	if holder, busy := s.Holder(); busy {
		return nil, holder
	}
	was := s.Overview()
	return func() bool {
		_, busy := s.Holder()
		now := s.Overview()
		return !busy && Exists(s.Dir) && now.Status == was.Status && now.LastEventAt == was.LastEventAt
	}, nil
}
