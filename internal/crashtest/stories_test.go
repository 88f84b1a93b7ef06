//go:build linux && (amd64 || arm64)

package crashtest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/tidwall/gjson"
)

// story is a command to kill, with the expected results.
type story struct {
	name  string
	from  func(*fixtures) *world
	args  []string
	code  int // exit code of the command without a kill
	few   int // points in a bounded run
	most  int // points in a full run if their order varies; 0 for all
	turns int // number of ways to continue after a kill
	after func(f *fixtures, w *world) error
	next  func(f *fixtures, w *world, turn int) error
}

var stories = []story{
	{name: "prep", from: bare, args: []string{"prep", "--from", "../tasks/prd.json"}, few: 2, turns: 2, after: nothing,
		next: prepped},
	{name: "seed-edit", from: prepared, args: []string{"seed", "edit"}, few: 2, turns: 2, after: consistent,
		next: edited},
	{name: "run", from: prepared, args: []string{"run"}, few: 4, turns: 1, after: consistent, next: resumed},
	{name: "run-twice", from: prepared, args: []string{"run"}, few: 2, turns: 1, after: consistent, next: resumedTwice},
	{name: "run-lanes", from: prepared, args: []string{"run", "-j", "3"}, few: 3, most: 300, turns: 1,
		after: consistent, next: resumedBeside},
	{name: "resume-lanes", from: beside, args: []string{"resume", "-j", "3"}, few: 2, most: 300,
		turns: 1, after: consistent, next: resumedBeside},
	{name: "reset-lanes", from: prepared, args: []string{"run", "-j", "3"}, few: 2, most: 150, turns: 1,
		after: consistent, next: tornDown},
	{name: "resume-failed", from: failed, args: []string{"resume"}, few: 2, turns: 1, after: consistent, next: resumed},
	{name: "resume-crashed", from: crashed, args: []string{"resume"}, few: 2, turns: 1, after: consistent,
		next: resumed},
	{name: "resume-lost", from: lost, args: []string{"resume"}, few: 2, turns: 1, after: consistent, next: recovered},
	{name: "resume-unregistered", from: unregistered, args: []string{"resume"}, few: 2, turns: 1, after: consistent,
		next: recovered},
	{name: "reset", from: dirty, args: []string{"reset", "-y"}, few: 2, turns: 1, after: nothing, next: tornDown},
	{name: "reset-to-seed", from: dirty, args: []string{"reset", "--to-seed", "-y"}, few: 3, turns: 3,
		after: consistent, next: rewound},
	{name: "rewind", from: dirty, args: []string{"rewind", "-y", "T-002"}, few: 3, turns: 3, after: between,
		next: wentBack},
	{name: "undo", from: back, args: []string{"undo", "-y"}, few: 3, turns: 2, after: between, next: undone},
	{name: "update", from: moved, args: []string{"update"}, few: 6, most: 300, turns: 2, after: consistent,
		next: onBase},
	{name: "fork", from: dirty, args: []string{"fork", "--at", "T-002"}, few: 3, turns: 1, after: untouched,
		next: forked},
	{name: "keep-going", from: prepared, args: []string{"run", "-k", "--max-iterations", "1"}, code: 1, few: 3,
		turns: 1, after: consistent, next: resumed},
	{name: "resume-aside", from: aside, args: []string{"resume"}, few: 2, turns: 1, after: consistent, next: resumed},
	{name: "done", from: byHand, args: []string{"done", "-m", "by hand", "T-002"}, few: 2, turns: 1, after: consistent,
		next: resumed},
	{name: "retry", from: aside, args: []string{"retry", "-m", "larger", "T-002"}, few: 2, turns: 1, after: consistent,
		next: resumed},
	{name: "skip", from: failed, args: []string{"skip", "T-002"}, few: 2, turns: 1, after: consistent, next: leftOut},
	{name: "resume-skipped", from: skipped, args: []string{"resume"}, few: 2, turns: 1, after: consistent,
		next: leftOut},
	{name: "take", from: taking, args: []string{"take", "--pick", "--onto", ontoBranch}, few: 3, turns: 1,
		after: takenOrNot, next: tookAll},
	{name: "take-here", from: takingHere, args: []string{"take", "--pick"}, few: 3, turns: 1, after: consistent,
		next: tookHere},
	{name: "cleanse", from: taken, args: []string{"cleanse"}, few: 3, turns: 1, after: nothing, next: cleansed},
	{name: "push", from: pushable, args: []string{"push"}, few: 2, turns: 2, after: wholeThere, next: pushedAgain},
	{name: "fetch", from: fetchable, args: []string{"fetch"}, few: 2, turns: 2, after: wholeThere, next: fetchedAgain},
	{name: "resume-claimed", from: pushed, args: []string{"resume"}, few: 2, turns: 1, after: wholeThere,
		next: claimedAgain},
	{name: "plan", from: failed, args: []string{"plan"}, few: 2, turns: 1, after: consistent, next: replanned},
	{name: "commit-refused", from: refusing, args: []string{"resume"}, code: 1, few: 1, turns: 2, after: consistent,
		next: let},
	{name: "commit-refused-on", from: refusing, args: []string{"resume", "-k"}, code: 1, few: 1, turns: 1,
		after: consistent, next: letOn},
	{name: "preflight", from: unable, args: []string{"run"}, code: 2, few: 1, turns: 2, after: consistent,
		next: mended},
	{name: "waiting", from: limited, args: []string{"resume", "--wait"}, few: 1, turns: 1, after: consistent,
		next: waited},
	{name: "auto-resume", from: faulty, args: []string{"resume", "--auto-resume", "1"}, few: 1, turns: 1,
		after: consistent, next: again},
}

// fixtures are the worlds that the stories begin with.
type fixtures struct {
	bare, prepared, failed, crashed, lost, unregistered, dirty, aside, byHand, skipped *world
	taking, takingHere, taken, refusing, unable, limited, faulty                       *world
	pushable, pushed, fetchable, beside, moved                                         *world

	user string // the user's state in all of them
	seed string // the session's, at the end of its preparation
	base string
	made atomic.Int64

	back                  *world // dirty, rewound to T-002
	dirtyState, backState string
}

func bare(f *fixtures) *world         { return f.bare }
func dirty(f *fixtures) *world        { return f.dirty }
func lost(f *fixtures) *world         { return f.lost }
func unregistered(f *fixtures) *world { return f.unregistered }
func prepared(f *fixtures) *world     { return f.prepared }
func failed(f *fixtures) *world       { return f.failed }
func aside(f *fixtures) *world        { return f.aside }
func byHand(f *fixtures) *world       { return f.byHand }
func skipped(f *fixtures) *world      { return f.skipped }
func crashed(f *fixtures) *world      { return f.crashed }

// place is a directory for another world; all have the same length.
func (f *fixtures) place() string { return filepath.Join(f.base, fmt.Sprintf("w%06d", f.made.Add(1))) }

func (f *fixtures) copy(w *world) (*world, error) { return w.copyTo(f.place()) }

func newFixtures(base, binary, url string, r *remotes) (*fixtures, error) {
	f := &fixtures{base: base}
	var err error
	if f.bare, err = newWorld(f.place(), binary, url); err != nil {
		return nil, err
	}
	if f.prepared, err = f.copy(f.bare); err != nil {
		return nil, err
	}
	if err = f.prepared.prepare(); err != nil {
		return nil, err
	}
	if f.user, err = f.prepared.userState(); err != nil {
		return nil, err
	}
	if f.seed, err = f.prepared.snapshot(); err != nil {
		return nil, err
	}
	if f.failed, err = f.copy(f.prepared); err != nil {
		return nil, err
	}
	if _, err = f.failed.expect([]int{1}, "run", "--max-iterations", "1"); err != nil {
		return nil, err
	}
	if f.dirty, err = f.copy(f.failed); err != nil {
		return nil, err
	}
	if err = f.dirty.litter(); err != nil {
		return nil, err
	}
	if err = f.betweenRuns(); err != nil {
		return nil, err
	}
	if err = f.atNight(); err != nil {
		return nil, err
	}
	if err = f.goingBack(); err != nil {
		return nil, err
	}
	if err = f.sideBySide(); err != nil {
		return nil, err
	}
	if err = f.beingTaken(); err != nil {
		return nil, err
	}
	if err = f.moving(); err != nil {
		return nil, err
	}
	if err = f.travelling(r); err != nil {
		return nil, err
	}
	if f.crashed, err = f.copy(f.prepared); err != nil {
		return nil, err
	}
	out, err := f.crashed.trace(func(_ int, o op) way {
		if o.call == "exec" && strings.Contains(o.program, " commit-tree ") && f.crashed.accepted("T-002") {
			return power // before its commit
		}
		return live
	}, "run")
	if err == nil && !out.killed {
		err = fmt.Errorf("no commit of T-002: %s", out.output)
	}
	if err != nil {
		return nil, err
	}
	if f.lost, err = f.copy(f.crashed); err != nil {
		return nil, err
	}
	if f.unregistered, err = f.copy(f.crashed); err != nil {
		return nil, err
	}
	return f, errors.Join(os.RemoveAll(f.lost.workspace()),
		os.RemoveAll(filepath.Join(f.unregistered.repo(), ".git", "worktrees")))
}

// betweenRuns creates the worlds in which a run continued without T-002, the user has done T-002, and the user skips
// it.
func (f *fixtures) betweenRuns() (err error) {
	if f.aside, err = f.copy(f.prepared); err != nil {
		return err
	}
	if _, err = f.aside.expect([]int{1}, "run", "-k", "--max-iterations", "1"); err != nil {
		return err
	}
	if f.byHand, err = f.copy(f.aside); err != nil {
		return err
	}
	work := filepath.Join(f.byHand.workspace(), "beta.txt")
	if err = os.WriteFile(work, []byte("beta = 2\n"), 0o644); err != nil {
		return err
	}
	if f.skipped, err = f.copy(f.failed); err != nil {
		return err
	}
	_, err = f.skipped.expect([]int{0}, "skip", "T-002")
	return err
}

func nothing(*fixtures, *world) error { return nil }

// consistent checks the invariants while the session exists.
func consistent(_ *fixtures, w *world) error {
	if _, err := os.Stat(w.file("checkpoint.json")); err != nil || w.isGoingBack() {
		return err
	}
	return w.tasksAndCommits()
}

func resumed(_ *fixtures, w *world, _ int) error {
	if _, err := w.expect([]int{0}, "resume"); err != nil {
		return err
	}
	return w.allDone()
}

// leftOut continues after T-002 was skipped. The others are done, and no commit has its partial work.
func leftOut(_ *fixtures, w *world, _ int) error {
	status, err := w.status()
	if err == nil && status["T-002"] != "skipped" {
		_, err = w.expect([]int{0}, "skip", "T-002")
	}
	if err == nil {
		_, err = w.expect([]int{0}, "resume")
	}
	if err != nil {
		return err
	}
	if _, err := os.Stat(w.file("kept.git/refs/aside/T-002")); err != nil {
		return err
	}
	status, err = w.status()
	if err == nil && (status["T-001"] != "done" || status["T-002"] != "skipped" || status["T-003"] != "done") {
		err = fmt.Errorf("the statuses are %v", status)
	}
	return errors.Join(err, w.tasksAndCommits(), w.leftLocks())
}

// replanned continues after a killed edit of the plan.
func replanned(f *fixtures, w *world, turn int) error {
	if _, err := w.expect([]int{0}, "plan"); err != nil {
		return err
	}
	if data, err := os.ReadFile(w.file("prd.json")); err != nil || gjson.GetBytes(data, "2.title").Str != "Gimel" {
		return fmt.Errorf("the edit is not in the plan: %s %w", data, err)
	}
	return resumed(f, w, turn)
}

// recovered continues after the loss of the worktree, or its entry, of an accepted and uncommitted task: the accepted
// change is committed, and no worker is asked for it again.
func recovered(f *fixtures, w *world, turn int) error {
	if err := resumed(f, w, turn); err != nil {
		return err
	}
	begun := 0
	for _, e := range w.events() {
		if e.Get("type").Str == "context_reset" && e.Get("payload.task_id").Str == "T-002" {
			begun++
		}
	}
	if begun != 1 && !w.childDied {
		return fmt.Errorf("T-002 was begun %d times", begun)
	}
	return nil
}

// resumedTwice kills the resume as well, anywhere.
func resumedTwice(f *fixtures, w *world, turn int) error {
	at := turn * 37 % 300
	out, err := w.trace(func(n int, _ op) way {
		if n == at {
			return power
		}
		return live
	}, "resume")
	if err == nil {
		err = errors.Join(w.wholeFiles(true), w.shown(), consistent(f, w))
	}
	if err != nil {
		return fmt.Errorf("the resume, killed at op %d: %w\n%s", at, err, clip(out.output))
	}
	return resumed(f, w, turn)
}

// prepped continues after a killed preparation: it removes the session, or runs it if it is prepared.
func prepped(f *fixtures, w *world, turn int) error {
	if w.id == "" {
		return w.gone()
	}
	list, err := w.expect([]int{0}, "list", "--json", "--all")
	if err != nil {
		return err
	}
	if gjson.Get(list.out, "0.status").Str == "prepared" && turn%2 == 0 {
		if _, err := w.expect([]int{0}, "run"); err != nil {
			return err
		}
		return w.allDone()
	}
	if _, err := w.expect([]int{0, 2}, "resume", w.id); err != nil {
		return err
	}
	return tornDown(f, w, turn)
}

// edited continues after a killed edit of the seed: with another edit, or at once with the run.
func edited(_ *fixtures, w *world, turn int) error {
	if turn%2 == 1 {
		if _, err := w.expect([]int{0}, "seed", "edit"); err != nil {
			return err
		}
		if data, err := os.ReadFile(w.file("prd.json")); err != nil || gjson.GetBytes(data, "0.title").Str != "Alef" {
			return fmt.Errorf("the edit is not in the plan: %s %w", data, err)
		}
	}
	if _, err := w.expect([]int{0}, "run"); err != nil {
		return err
	}
	return w.allDone()
}

func tornDown(_ *fixtures, w *world, _ int) error {
	codes := []int{0}
	if _, err := os.Lstat(w.sessionDir()); err != nil {
		codes = []int{2} // there is no such session any more
	}
	if _, err := w.expect(codes, "reset", "-y", w.id); err != nil {
		return err
	}
	return w.gone()
}

// rewound continues after a killed reset to the seed: with the reset, with a run or with a resume.
func rewound(f *fixtures, w *world, turn int) error {
	kept := func() error {
		for _, name := range []string{"cache/data", "kept.ignored"} {
			if _, err := os.Stat(filepath.Join(w.workspace(), name)); err != nil {
				return fmt.Errorf("an ignored file is gone: %w", err)
			}
		}
		return nil
	}
	list, err := w.expect([]int{0}, "list", "--json")
	if err != nil {
		return err
	}
	state := gjson.Get(list.out, "0.state").Str
	goes := gjson.Get(list.out, "0.going_back").Bool() || gjson.Get(list.out, "0.rewinding").Bool()
	again := func() error {
		if state == "prepared" && !goes {
			// The rewind was finished. Another rewind uses the seed's ignore rules.
			if err := kept(); err != nil {
				return err
			}
			kept = func() error { return nil }
		}
		if _, err := w.expect([]int{0}, "reset", "--to-seed", "-y"); err != nil {
			return err
		}
		is, err := w.snapshot()
		return errors.Join(err, differ("the session", translate(f.seed, f.prepared, w), is), kept(), w.leftLocks())
	}
	switch turn % 3 {
	case 1:
		if !goes && state != "prepared" {
			if _, err := w.expect([]int{2}, "run"); err != nil {
				return err
			}
			return again()
		}
		if _, err := w.expect([]int{0}, "run"); err != nil {
			return err
		}
		return errors.Join(w.allDone(), kept())
	case 2:
		if state == "failed" && !goes {
			if err := w.sweep(); err != nil {
				return err
			}
		}
		if _, err := w.expect([]int{0}, "resume"); err != nil {
			return err
		}
		return errors.Join(w.allDone(), kept())
	}
	return again()
}

// translate exchanges the path of one world in a text for that of another.
func translate(text string, from, to *world) string {
	return strings.ReplaceAll(text, from.dir, to.dir)
}
