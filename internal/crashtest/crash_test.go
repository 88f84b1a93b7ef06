//go:build linux && (amd64 || arm64)

package crashtest

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/git-tilth/git-tilth/internal/testsize"
)

// jobs is how many points are tried at a time.
const jobs = 2

// point is one kind of kill at one op of a command.
type point struct {
	n   int
	how way
}

func (p point) String() string { return fmt.Sprintf("%s-%d", p.how, p.n) }

// points are all the ways to die in the course of these ops. The start of a program that changes something is a point
// for git-tilth alone: on disk nothing has changed since the op before.
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

// spread returns at most n of the points, evenly spread.
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
		// Some object ids depend on times, so some changes differ from the counted ones.
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

// ownMounts is true if this process has its own mount namespace.
const ownMounts = "CRASHTEST_OWN_MOUNTS"

// TestMain runs in a separate mount namespace if possible: small disks are mounted there, and disappear with it.
func TestMain(m *testing.M) {
	if unshare, err := exec.LookPath("unshare"); err == nil && os.Getenv(ownMounts) == "" {
		if exec.Command(unshare, "-m", "mount", "-t", "tmpfs", "none", os.TempDir()).Run() == nil {
			args := append([]string{unshare, "-m", "--"}, os.Args...)
			_ = syscall.Exec(unshare, args, append(os.Environ(), ownMounts+"=1"))
		}
	}
	startTracing(jobs)
	code := m.Run()
	_ = os.RemoveAll(built.dir)
	os.Exit(code)
}

func TestCrashes(t *testing.T) {
	needTracing(t)
	binary := build(t)
	server, err := startModel()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	front := moody(server)
	defer front.Close()
	remotes, err := serveRemotes()
	if err != nil {
		t.Fatal(err)
	}
	defer remotes.Close()
	f, err := newFixtures(workplace(t), binary, front.URL+"/v1", remotes)
	if err != nil {
		t.Fatal(err)
	}
	all := os.Getenv("TILTH_CRASH") == "full" || testsize.IsFull() ||
		flag.Lookup("test.run").Value.String() != ""
	turn := 0
	if testsize.InCI() {
		turn = rand.IntN(3)
	}
	for i, s := range stories {
		if !all && i%3 != turn {
			continue // there is time for a third of them
		}
		t.Run(s.name, func(t *testing.T) { s.test(t, f) })
	}
}

// test tries the points of one story. TILTH_CRASH_POINT, as in power-17, picks one.
func (s story) test(t *testing.T, f *fixtures) {
	ops := s.undisturbed(t, f)
	all := points(ops)
	turns, few := 1, s.few
	switch {
	case os.Getenv("TILTH_CRASH") == "full":
		turns, few = s.turns, cmp.Or(s.most, len(all))
	default:
		few = testsize.Of(1, 2*few) // make crash has the others
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
				// A limited run alternates between the continuations; a full run tries all of them at each point.
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
		s.name, len(chosen), len(all), len(ops), count[power], count[torn], count[harness], count[child], tried.Load(),
		met.Load())
}

// undisturbed runs a story's command without a kill, and checks the result.
func (s story) undisturbed(t *testing.T, f *fixtures) []op {
	w, err := f.copy(s.from(f))
	if err != nil {
		t.Fatal(err)
	}
	out, err := w.trace(nil, s.args...)
	if err != nil || out.exitCode != s.code {
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

// needTracing skips the test if processes cannot be traced, as in some containers; never in CI.
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

// built is the program to test, once it was built.
var built struct {
	sync.Once
	dir string
	err error
}

// build builds git-tilth once for all.
func build(t *testing.T) string {
	built.Do(func() {
		// go test tracks the files that a test opens, not those that it builds. Without this it would return cached
		// results after a change.
		for _, dir := range []string{"../../cmd", "../../internal"} {
			built.err = errors.Join(built.err, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
				if err == nil {
					_, err = os.Stat(path)
				}
				return err
			}))
		}
		if built.dir, built.err = os.MkdirTemp("", "built-"); built.err != nil {
			return
		}
		out, err := exec.Command("go", "build", "-o", built.dir, "../../cmd/git-tilth").CombinedOutput()
		if err != nil {
			built.err = fmt.Errorf("go build: %w\n%s", err, out)
		}
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
	return filepath.Join(built.dir, "git-tilth")
}

// workplace returns a directory for the worlds, in memory if the machine has one that allows running programs, because
// every point costs some hundred fsyncs.
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
