//go:build linux && (amd64 || arm64)

package crashtest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// moving creates the world of a finished session with a commit of the user. Its base has moved in another checkout and
// conflicts with T-001.
func (f *fixtures) moving() (err error) {
	if f.moved, err = f.copy(f.prepared); err != nil {
		return err
	}
	if _, err = f.moved.expect([]int{0}, "run"); err != nil {
		return err
	}
	w := f.moved
	w.at, w.since = "here", ontoBranch
	for _, line := range []string{
		"git worktree add -q -b " + ontoBranch + " ../here",
		"cd ../here && echo other > alpha.txt && git add alpha.txt && git commit -q -m upstream",
		"cd " + w.workspace() + " && echo mine > mine && git add mine && git commit -q --no-verify -m mine",
	} {
		w.at = ""
		out, err := w.command("sh", "-c", line)
		if err != nil || out.code != 0 {
			return fmt.Errorf("%s: %s %w", line, out.errOut, err)
		}
	}
	w.at = "here"
	return os.WriteFile(filepath.Join(w.here(), "own"), []byte("own\n"), 0o644)
}

func moved(f *fixtures) *world { return f.moved }

// onBase continues after a killed update: with another update, or with a resume before it.
func onBase(_ *fixtures, w *world, turn int) error {
	if turn%2 == 1 {
		if _, err := w.expect([]int{0}, "resume"); err != nil {
			return err
		}
	}
	if _, err := w.expect([]int{0}, "update"); err != nil {
		return err
	}
	log, err := w.git("log", "--format=%s", ontoBranch+".."+w.branch())
	if err == nil && strings.Count(log, "mine\n") != 1 {
		err = fmt.Errorf("the branch has %q, want one commit of the user", log)
	}
	if base, e := w.git("merge-base", ontoBranch, w.branch()); e == nil && err == nil {
		if onto, _ := w.git("rev-parse", ontoBranch); base != onto {
			err = fmt.Errorf("the branch begins at %s, want %s", base, onto)
		}
	}
	if _, e := w.expect([]int{0}, "verify"); e != nil {
		err = errors.Join(err, e)
	}
	return errors.Join(err, w.allDone())
}
