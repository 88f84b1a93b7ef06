//go:build linux && (amd64 || arm64)

package crashtest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// ontoBranch is the user's branch for take. It is not part of the user's state.
const ontoBranch = "onto"

// beingTaken creates the worlds before and after a take.
func (f *fixtures) beingTaken() (err error) {
	if f.taking, err = f.copy(f.aside); err != nil {
		return err
	}
	if _, err = f.taking.git("branch", ontoBranch); err != nil {
		return err
	}
	if f.takingHere, err = f.copy(f.taking); err != nil {
		return err
	}
	here := filepath.Join(f.takingHere.dir, "here")
	if _, err = f.takingHere.git("worktree", "add", "-q", here, ontoBranch); err != nil {
		return err
	}
	f.takingHere.at = "here"
	if err = os.WriteFile(filepath.Join(f.takingHere.here(), "mine"), []byte("mine\n"), 0o644); err != nil {
		return err
	}
	if f.taken, err = f.copy(f.taking); err != nil {
		return err
	}
	_, err = f.taken.expect([]int{0}, "take", "--onto", ontoBranch)
	return err
}

func taking(f *fixtures) *world     { return f.taking }
func takingHere(f *fixtures) *world { return f.takingHere }
func taken(f *fixtures) *world      { return f.taken }

// takenOrNot checks that the branch has all or none of the taken tasks.
func takenOrNot(f *fixtures, w *world) error {
	n, err := w.onBranch()
	if err == nil && n != 0 && n != 2 {
		err = fmt.Errorf("%d tasks are on the branch", n)
	}
	if err == nil {
		err = consistent(f, w)
	}
	return err
}

// onBranch counts the tasks' commits on ontoBranch.
func (w *world) onBranch() (int, error) {
	log, err := w.git("log", "--format=%(trailers:key=Tilth-Task,valueonly)", ontoBranch)
	return strings.Count(log, "T-"), err
}

// tookAll continues after a killed take: another take brings the rest, and nothing twice; then cleanse works.
func tookAll(f *fixtures, w *world, turn int) error {
	if _, err := w.expect([]int{0}, "take", "--pick", "--onto", ontoBranch); err != nil {
		return err
	}
	if n, err := w.onBranch(); err != nil || n != 2 {
		return fmt.Errorf("%d tasks are on the branch: %w", n, err)
	}
	return cleansed(f, w, turn)
}

// tookHere continues after a killed take into a checked out branch. Another take brings the rest, or prints how to
// stash half-written files and then brings it. The user's files in the checkout stay.
func tookHere(f *fixtures, w *world, turn int) error {
	again, err := w.expect([]int{0, 2}, "take", "--pick")
	if err != nil {
		return err
	}
	if again.code == 2 {
		_, hint, _ := strings.Cut(again.errOut, "hint: ")
		command, _, ok := strings.Cut(hint, " && git tilth take ")
		if !ok || !strings.Contains(again.errOut, "cut off") {
			return fmt.Errorf("it is not said what to do: %s", again.errOut)
		}
		mineAgain := "git checkout -q stash^3 -- mine && git reset -q && git stash drop -q"
		if r, err := w.command("sh", "-c", command+" && "+mineAgain); err != nil || r.code != 0 {
			return fmt.Errorf("%s: %s %w", command, r.errOut, err)
		}
		if _, err := w.expect([]int{0}, "take", "--pick"); err != nil {
			return err
		}
	}
	if n, err := w.onBranch(); err != nil || n != 2 {
		return fmt.Errorf("%d tasks are on the branch: %w", n, err)
	}
	r, err := w.command("git", "status", "--porcelain")
	if err != nil || r.out != "?? mine\n" {
		return fmt.Errorf("the checkout is not as it should be: %q %w", r.out, err)
	}
	return errors.Join(w.leftLocks(), cleansed(f, w, turn))
}

// cleansed continues after a killed cleanse. The same command finishes it, and the record stays.
func cleansed(_ *fixtures, w *world, _ int) error {
	if _, err := w.expect([]int{0}, "cleanse"); err != nil {
		return err
	}
	if _, err := os.Lstat(w.workspace()); err == nil {
		return fmt.Errorf("the worktree is there")
	}
	if refs, err := w.git("for-each-ref", "refs/heads/session/"); err != nil || refs != "" {
		return fmt.Errorf("branches are left: %s %w", refs, err)
	}
	if list, err := w.git("worktree", "list", "--porcelain"); err != nil || strings.Contains(list, w.id) {
		return fmt.Errorf("an entry of the worktree is left: %s %w", list, err)
	}
	_, err := os.Stat(w.file("events.jsonl"))
	return err
}
