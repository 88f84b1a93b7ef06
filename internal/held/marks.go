package held

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

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

// ForkMark is the third line of the mark of a session that is not whole yet.
const ForkMark = "fork"

// Exists reports whether something is at path.
func Exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// ResetMark reads the mark of a teardown: the worktree's admin directory and the common directory, each "" if unknown
// or not written; or that the session is an unfinished fork.
func ResetMark(s *session.Session) (admin, common string, fork bool) {
	data, _ := os.ReadFile(s.Path(session.ResetMarkFile))
	text, fork := strings.CutSuffix(string(data), "\n"+ForkMark+"\n")
	admin, common, _ = strings.Cut(strings.TrimSuffix(text, "\n"), "\n") // a directory's name may hold a newline
	return admin, common, fork
}

// IsHalfEntry reports whether git's entry belongs to an unfinished NewEntry.
func IsHalfEntry(s *session.Session, e gitx.WorktreeEntry) bool {
	return gitx.SamePath(e.Path, s.Path(EntryDir, session.WorkspaceDir))
}

// Unfinished reports whether a rewind, an undo or a teardown of a session was begun and not finished.
func Unfinished(s *session.Session) bool {
	return Exists(s.Path(session.GoBackFile)) || Resetting(s)
}

// Resetting reports whether a teardown of the session was begun.
func Resetting(s *session.Session) bool { return Exists(s.Path(session.ResetMarkFile)) }

// RemakeMark exists while the worktree is made again and is incomplete.
const RemakeMark = "remake"

// Remaking reports whether the worktree was being made again when a process died.
func Remaking(s *session.Session) bool { return Exists(s.Path(RemakeMark)) }

// EntryDir is the directory of a session in which a new entry of git's is made for its worktree.
const EntryDir = "entry"

// Unnamed returns directories of sessions that a killed process had not named yet. The root must be locked.
func Unnamed(store session.Store) []string {
	left, _ := filepath.Glob(filepath.Join(text.GlobQuote(store.Root), session.DraftPrefix+"*"))
	return slices.DeleteFunc(left, func(dir string) bool {
		id := strings.TrimPrefix(filepath.Base(dir), session.DraftPrefix)
		_, busy := (&session.Session{ID: id, Dir: dir}).Holder()
		return busy || !session.ValidID(id)
	})
}
