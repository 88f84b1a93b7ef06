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

// What takes more than one step leaves a mark until it is over, and one mark says it all: whoever holds the session
// next finishes what was begun, or says what does. What is on disk after each step stands where the operation is.
//
//	the mark                    was begun                          and is then
//	going-back.json (a journal) rewind, undo                       finished by each command that changes the session
//	  with "cut" in it          reset --to-seed                    the same
//	reset                       reset                              finished by reset
//	  with "fork" in it         fork, fetch                        removed by the next of them, doctor --fix, reset
//	.fork-<id>/                 a session without a name           removed by the next that is made, doctor --fix
//	remake                      a worktree made anew, or cleanse   a worktree that is made anew
//	entry/                      an entry for a worktree's files    made again, while that is not registered
//	taking.json                 a take, in a checkout              refused until a person has looked at the checkout
//
// A mark comes before all else, but for objects that nothing refers to, and goes last. Each step may be done twice.

// ForkMark is the third line of the mark of a session that is not whole yet.
const ForkMark = "fork"

// Exists reports whether something is at path.
func Exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// ResetMark reads what a teardown wrote down first: the worktree's admin directory and the common directory, each ""
// if it was not known or did not get to the disk; or that the session is a fork that is not whole.
func ResetMark(s *session.Session) (admin, common string, fork bool) {
	data, _ := os.ReadFile(s.Path(session.ResetMarkFile))
	text, fork := strings.CutSuffix(string(data), "\n"+ForkMark+"\n")
	admin, common, _ = strings.Cut(strings.TrimSuffix(text, "\n"), "\n") // a directory's name may hold a newline
	return admin, common, fork
}

// IsHalfEntry reports whether git's entry is one that NewEntry was making.
func IsHalfEntry(s *session.Session, e gitx.WorktreeEntry) bool {
	return gitx.SamePath(e.Path, s.Path(EntryDir, session.WorkspaceDir))
}

// Unfinished reports whether a rewind, an undo or a teardown of a session was begun and not finished.
func Unfinished(s *session.Session) bool {
	return Exists(s.Path(session.GoBackFile)) || Resetting(s)
}

// Resetting reports whether a teardown of the session was begun.
func Resetting(s *session.Session) bool { return Exists(s.Path(session.ResetMarkFile)) }

// RemakeMark is there while the worktree is made again: what stands in its place is not whole.
const RemakeMark = "remake"

// Remaking reports whether the worktree was being made again when a process died.
func Remaking(s *session.Session) bool { return Exists(s.Path(RemakeMark)) }

// EntryDir is the directory of a session in which a new entry of git's is made for its worktree.
const EntryDir = "entry"

// Unnamed are the directories of sessions whose makers were killed before they had a name, where the root is locked.
func Unnamed(store session.Store) []string {
	left, _ := filepath.Glob(filepath.Join(text.GlobQuote(store.Root), session.DraftPrefix+"*"))
	return slices.DeleteFunc(left, func(dir string) bool {
		id := strings.TrimPrefix(filepath.Base(dir), session.DraftPrefix)
		_, busy := (&session.Session{ID: id, Dir: dir}).Holder()
		return busy || !session.ValidID(id)
	})
}
