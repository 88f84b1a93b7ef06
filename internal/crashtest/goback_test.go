//go:build linux && (amd64 || arm64)

package crashtest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/tidwall/gjson"
)

// goingBack creates the worlds of rewind and undo, and describes the session before and after them.
func (f *fixtures) goingBack() (err error) {
	if f.dirtyState, err = f.dirty.state(); err != nil {
		return err
	}
	if f.back, err = f.copy(f.dirty); err != nil {
		return err
	}
	if _, err = f.back.expect([]int{0}, "rewind", "-y", "T-002"); err != nil {
		return err
	}
	f.backState, err = f.back.state()
	return err
}

func back(f *fixtures) *world { return f.back }

// state describes the parts of a session that a rewind changes: branch, index, files, tasks, ledgers and conversations.
func (w *world) state() (string, error) {
	names := []string{"workspace", "prd.json", "progress.txt", "ledger", "conversation"}
	out, err := w.described(names, "ls-files", "--stage")
	return strings.ReplaceAll(out, w.dir, "."), err
}

func (w *world) isGoingBack() bool {
	_, err := os.Lstat(w.file("going-back.json"))
	return err == nil
}

// becomes runs a command and checks the state of the session afterwards.
func (w *world) becomes(want string, codes []int, args ...string) error {
	if _, err := w.expect(codes, args...); err != nil {
		return err
	}
	is, err := w.state()
	return errors.Join(err, differ("the session", want, is), w.leftLocks(), w.wholeFiles(false))
}

// between checks that a session without an unfinished operation is in the state before or after it.
func between(f *fixtures, w *world) error {
	if w.isGoingBack() {
		return nil
	}
	is, err := w.state()
	if err == nil && is != f.dirtyState && is != f.backState {
		err = errors.Join(differ("the session before", f.dirtyState, is), differ("the session after", f.backState, is))
	}
	return err
}

// wentBack continues after a killed rewind: with the same command, with an undo, or with a resume.
func wentBack(f *fixtures, w *world, turn int) error {
	switch turn % 3 {
	case 1:
		return w.becomes(f.dirtyState, []int{0, 2}, "undo", "-y")
	case 2:
		if is, err := w.state(); err != nil {
			return err
		} else if is == f.dirtyState && !w.isGoingBack() {
			if err := w.sweep(); err != nil {
				return err
			}
		}
		return resumed(f, w, turn)
	}
	return w.becomes(f.backState, []int{0}, "rewind", "-y", "T-002")
}

// undone continues after a killed undo: with the same command, or with the undone rewind.
func undone(f *fixtures, w *world, turn int) error {
	is, err := w.state()
	if err != nil {
		return err
	}
	if turn%2 == 0 && (w.isGoingBack() || is == f.backState) {
		return w.becomes(f.dirtyState, []int{0}, "undo", "-y")
	}
	return w.becomes(f.backState, []int{0}, "rewind", "-y", "T-002")
}

// untouched checks that the forked session has not changed.
func untouched(f *fixtures, w *world) error {
	is, err := w.state()
	return errors.Join(err, differ("the session that is forked", f.dirtyState, is))
}

// forked continues after a killed fork: another fork removes the incomplete one.
func forked(f *fixtures, w *world, _ int) error {
	w.id = f.dirty.id // the fork is the newest
	made, err := w.expect([]int{0}, "fork", "--at", "T-002", w.id)
	if err != nil {
		return err
	}
	list, err := w.expect([]int{0}, "list", "--json", "--all")
	if err != nil {
		return err
	}
	branches, err := w.git("for-each-ref", "--format=%(refname)", "refs/heads/session/")
	if err != nil {
		return err
	}
	rows := gjson.Parse(list.out).Array()
	entries, _ := os.ReadDir(filepath.Join(w.dir, "sessions"))
	if len(rows) > 3 || strings.Count(branches, "\n") != len(rows) || len(entries) != len(rows)+1 {
		return fmt.Errorf("%d sessions, in %v, with the branches\n%s", len(rows), entries, branches)
	}
	for _, row := range rows {
		id := row.Get("session_id").Str
		if id == w.id {
			continue
		}
		if row.Get("state").Str != "prepared" || row.Get("tasks.done").Int() != 1 {
			return fmt.Errorf("a fork is not whole: %s", row.Raw)
		}
		if id == strings.TrimSpace(made.out) {
			if _, err := w.expect([]int{0}, "resume", id); err != nil {
				return err
			}
		}
		if _, err := w.expect([]int{0}, "reset", "-y", id); err != nil {
			return err
		}
	}
	return errors.Join(untouched(f, w), w.leftLocks())
}
