//go:build linux && (amd64 || arm64)

package crashtest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// sideBySide creates the world of a killed run with three tasks in lanes.
func (f *fixtures) sideBySide() (err error) {
	if f.beside, err = f.copy(f.prepared); err != nil {
		return err
	}
	out, err := f.beside.trace(func(_ int, o op) way {
		if o.call == "exec" && strings.Contains(o.program, " commit-tree ") {
			return power
		}
		return live
	}, "run", "-j", "3")
	if lanes, _ := os.ReadDir(f.beside.file("lanes")); err == nil && (!out.killed || len(lanes) < 3) {
		err = fmt.Errorf("there are %d lanes: %s", len(lanes), out.output)
	}
	return err
}

func beside(f *fixtures) *world { return f.beside }

// resumedBeside continues after lanes, in lanes or with one task after another. In the end there is no lane.
func resumedBeside(_ *fixtures, w *world, turn int) error {
	if _, err := w.expect([]int{0}, "resume", "-j", []string{"3", "1"}[turn%2]); err != nil {
		return err
	}
	if err := w.allDone(); err != nil {
		return err
	}
	// If only the child died that commits a task, other tasks are committed first, and the task is judged again on
	// them.
	ended, accepted := map[string]int{}, map[string]int{}
	for _, e := range w.events() {
		task := e.Get("payload.task_id").Str
		switch {
		case e.Get("type").Str == "task_done":
			ended[task]++
		case e.Get("type").Str == "evaluator_verdict" && e.Get("payload.verdict").Str == "accept":
			accepted[task]++
		}
	}
	for task, n := range ended {
		if n != 1 && (!w.childDied || n > accepted[task]) {
			return fmt.Errorf("%s has %d task_done and one commit", task, n)
		}
	}
	if _, err := os.Lstat(w.file("lanes")); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("lanes are left: %w", err)
	}
	out, err := w.git("worktree", "list", "--porcelain")
	if n := strings.Count(out, "worktree "); err == nil && n != 2 {
		err = fmt.Errorf("there are %d worktrees:\n%s", n, out)
	}
	return err
}
