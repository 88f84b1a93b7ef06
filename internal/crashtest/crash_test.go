//go:build linux && (amd64 || arm64)

package crashtest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tidwall/gjson"
)

// jobs is how many points are tried at a time.
const jobs = 2

// point is one way to die at one op of a command.
type point struct {
	n   int
	how way
}

func (p point) String() string { return fmt.Sprintf("%s-%d", p.how, p.n) }

// points are all the ways to die in the course of these ops. The start of a program that changes something is a point for
// git-tilth alone: on disk nothing has changed since the op before.
func points(ops []op) []point {
	var all []point
	for n, o := range ops {
		if o.call == "exec" {
			if n+1 < len(ops) && ops[n+1].call != "exec" && !ops[n+1].harness {
				all = append(all, point{n, harness})
			}
			continue
		}
		all = append(all, point{n, power})
		if !o.harness {
			all = append(all, point{n, child})
		}
		if o.harness && o.size > 1 {
			all = append(all, point{n, torn})
		}
	}
	return all
}

// spread takes at most n of the points, evenly.
func spread(all []point, n int) []point {
	if n >= len(all) {
		return all
	}
	var some []point
	for i := range n {
		some = append(some, all[(2*i+1)*len(all)/(2*n)])
	}
	return some
}

// story is a command that is killed, and what has to come of it.
type story struct {
	name  string
	from  func(*fixtures) *world
	args  []string
	few   int // points in a bounded run
	full  int // the share of the points in a full run: 1 is all, 5 every fifth
	turns int // ways to go on after a kill
	after func(f *fixtures, w *world) error
	next  func(f *fixtures, w *world, turn int) error
}

var stories = []story{
	{name: "prep", from: bare, args: []string{"prep", "--from", "../tasks/prd.json"}, few: 8, full: 1, turns: 2, after: nothing, next: prepped},
	{name: "run", from: prepared, args: []string{"run"}, few: 14, full: 1, turns: 1, after: consistent, next: resumed},
	{name: "run-twice", from: prepared, args: []string{"run"}, few: 4, full: 5, turns: 1, after: consistent, next: resumedTwice},
	{name: "resume-failed", from: failed, args: []string{"resume"}, few: 8, full: 1, turns: 1, after: consistent, next: resumed},
	{name: "resume-crashed", from: crashed, args: []string{"resume"}, few: 8, full: 1, turns: 1, after: consistent, next: resumed},
	{name: "reset", from: dirty, args: []string{"reset", "-y"}, few: 8, full: 1, turns: 1, after: nothing, next: tornDown},
	{name: "reset-to-seed", from: dirty, args: []string{"reset", "--to-seed", "-y"}, few: 12, full: 1, turns: 3, after: consistent, next: rewound},
}

// fixtures are the worlds that the stories begin with.
type fixtures struct {
	bare, prepared, failed, crashed, dirty *world

	user string // the user's own state in all of them
	seed string // the session's when its preparation had ended
	base string
	made atomic.Int64
}

func bare(f *fixtures) *world     { return f.bare }
func dirty(f *fixtures) *world    { return f.dirty }
func prepared(f *fixtures) *world { return f.prepared }
func failed(f *fixtures) *world   { return f.failed }
func crashed(f *fixtures) *world  { return f.crashed }

// place is a directory for another world; all have the same length.
func (f *fixtures) place() string { return filepath.Join(f.base, fmt.Sprintf("w%06d", f.made.Add(1))) }

func (f *fixtures) copy(w *world) (*world, error) { return w.copyTo(f.place()) }

func newFixtures(base, binary, url string) (*fixtures, error) {
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
	if f.crashed, err = f.copy(f.prepared); err != nil {
		return nil, err
	}
	commits := 0
	out, err := f.crashed.trace(func(_ int, o op) way {
		if o.call == "exec" && strings.Contains(o.program, " --file=-") {
			if commits++; commits == 2 {
				return power // T-002 is accepted and not committed
			}
		}
		return live
	}, "run")
	if err == nil && !out.killed {
		err = fmt.Errorf("no second commit: %s", out.output)
	}
	return f, err
}

func nothing(*fixtures, *world) error { return nil }

// consistent is what must hold at any time while the session is there.
func consistent(_ *fixtures, w *world) error {
	checkpoint, err := os.ReadFile(w.file("checkpoint.json"))
	if err != nil || gjson.GetBytes(checkpoint, "rewind").Exists() {
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

// prepped goes on after a preparation that was killed: what is there is removed, or run if it is ready.
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

// rewound goes on after a rewind that was killed: with the rewind, with a run or with a resume.
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
	again := func() error {
		if state == "prepared" {
			// The rewind was over. Another one goes by the seed's own ignore rules.
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
		if state != "rewinding" && state != "prepared" {
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
		if state == "failed" {
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

// try kills a story's command at a point and checks everything.
func (s story) try(f *fixtures, p point, turn int) (met bool, err error) {
	w, err := f.copy(s.from(f))
	if err != nil {
		return false, err
	}
	defer func() {
		if err == nil || os.Getenv("TILTH_CRASH_KEEP") == "" {
			_ = os.RemoveAll(w.dir)
			_ = os.Remove(w.logFile())
		}
	}()
	w.childDied = p.how == child
	var at op
	out, err := w.trace(func(n int, o op) way {
		if n != p.n {
			return live
		}
		at = o
		// Times make some object ids, and with them some changes, differ from those that were counted.
		if p.how == torn && (!o.harness || o.size < 2) || p.how == child && o.harness {
			return power
		}
		return p.how
	}, s.args...)
	stage := func(name string, err error) error {
		if err != nil {
			return fmt.Errorf("%s, at the %s: %s:\n%w\nits output was:\n%s", w.dir, at, name, err, clip(out.output))
		}
		return nil
	}
	user := func() error {
		is, err := w.userState()
		return errors.Join(err, differ("the user's repository", f.user, is))
	}
	if w.id == "" {
		w.findSession()
	}
	if err == nil && (strings.Contains(out.output, "panic:") || strings.Contains(out.output, "goroutine ")) {
		err = errors.New("it panicked")
	}
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"the command itself", func() error { return err }},
		{"the files it left", func() error { return w.wholeFiles(true) }},
		{"list and show after it", w.shown},
		{"the session after it", func() error { return s.after(f, w) }},
		{"the user's repository after it", user},
		{"the next command", func() error { return s.next(f, w, turn) }},
		{"the user's repository in the end", user},
	} {
		if err := stage(step.name, step.do()); err != nil {
			return out.killed, err
		}
	}
	return out.killed, nil
}

func TestCrashes(t *testing.T) {
	startTracing(jobs)
	needTracing(t)
	binary := build(t)
	server, err := startModel()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	f, err := newFixtures(workplace(t), binary, server.URL)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range stories {
		t.Run(s.name, func(t *testing.T) { s.test(t, f) })
	}
}

// test tries the points of one story. TILTH_CRASH_POINT, as in power-17, picks one.
func (s story) test(t *testing.T, f *fixtures) {
	ops := s.undisturbed(t, f)
	all := points(ops)
	turns, few := 1, s.few
	if os.Getenv("TILTH_CRASH") == "full" {
		turns, few = s.turns, len(all)/s.full
	}
	chosen := spread(all, few)
	if name := os.Getenv("TILTH_CRASH_POINT"); name != "" {
		how, n, _ := strings.Cut(name, "-")
		at, err := strconv.Atoi(n)
		if err != nil {
			t.Fatal(err)
		}
		chosen, turns = []point{{at, way(how)}}, s.turns
	}
	queue := make(chan int)
	var tried, met, bad atomic.Int64
	var group sync.WaitGroup
	for range jobs {
		group.Go(func() {
			for i := range queue {
				// A bounded run takes the ways to go on in turns, a full one all of them at each point.
				p, turn := chosen[i/turns], i/turns+i%turns
				tried.Add(1)
				ok, err := s.try(f, p, turn)
				if ok {
					met.Add(1)
				}
				if err != nil {
					bad.Add(1)
					t.Errorf("%s/%s, turn %d: %v", s.name, p, turn%s.turns, err)
				}
			}
		})
	}
	for i := range len(chosen) * turns {
		if bad.Load() < 10 {
			queue <- i
		}
	}
	close(queue)
	group.Wait()
	count := map[way]int{}
	for _, p := range chosen {
		count[p.how]++
	}
	t.Logf("%s: %d of %d points over %d changes (power %d, torn %d, harness %d, child %d); %d kills, %d met",
		s.name, len(chosen), len(all), len(ops), count[power], count[torn], count[harness], count[child], tried.Load(), met.Load())
}

// undisturbed runs a story's command without killing anything, and checks what it came to.
func (s story) undisturbed(t *testing.T, f *fixtures) []op {
	w, err := f.copy(s.from(f))
	if err != nil {
		t.Fatal(err)
	}
	out, err := w.trace(nil, s.args...)
	if err != nil || out.exitCode != 0 {
		t.Fatalf("git-tilth %s: exit code %d, %v\n%s", strings.Join(s.args, " "), out.exitCode, err, out.output)
	}
	if os.Getenv("TILTH_CRASH_OPS") != "" {
		for n, o := range out.ops {
			t.Logf("%d %s", n, strings.ReplaceAll(o.String(), w.dir, "."))
		}
	}
	w.findSession()
	if err := s.next(f, w, 0); err != nil {
		t.Fatal(err)
	}
	_ = os.RemoveAll(w.dir)
	return out.ops
}

// needTracing skips the test where processes cannot be traced, which some containers forbid; not in CI.
func needTracing(t *testing.T) {
	dir := t.TempDir()
	out, err := traced{argv: []string{"/bin/sh", "-c", "echo > probe"}, dir: dir, root: dir, log: dir + ".out"}.run()
	switch {
	case err == nil && out.exitCode == 0 && len(out.ops) > 0:
	case os.Getenv("CI") == "true":
		t.Fatalf("ptrace does not work here: %v %+v", err, out)
	default:
		t.Skipf("ptrace does not work here: %v %+v", err, out)
	}
}

// build builds git-tilth once for all.
func build(t *testing.T) string {
	binary := filepath.Join(t.TempDir(), "git-tilth")
	out, err := exec.Command("go", "build", "-o", binary, "../../cmd/git-tilth").CombinedOutput()
	if err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return binary
}

// workplace is a directory for the worlds: in memory, where the machine has such a place from which programs can be run,
// because every point costs some hundred fsyncs.
func workplace(t *testing.T) string {
	dir, err := os.MkdirTemp("/dev/shm", "tilth-crash-")
	if err != nil {
		return t.TempDir()
	}
	if os.Getenv("TILTH_CRASH_KEEP") == "" {
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
	}
	probe := filepath.Join(dir, "probe")
	if os.WriteFile(probe, []byte("#!/bin/sh\n"), 0o755) != nil || exec.Command(probe).Run() != nil {
		return t.TempDir()
	}
	return dir
}
