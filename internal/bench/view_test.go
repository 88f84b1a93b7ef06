//go:build bench

package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/view/viewtest"
)

// gaugeVar tells the test binary to run another program and print its time and memory.
const gaugeVar = "BENCH_GAUGE"

// reading is the output of the gauge.
type reading struct {
	Took time.Duration
	Peak float64 // resident size in MiB
	Exit int
}

// gauge runs a command and prints its time and peak memory. It is a separate process because a child's peak begins
// with the size of its parent, and a benchmark's process may be large.
func gauge(args []string) int {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stderr = os.Stderr
	start := time.Now()
	_ = cmd.Run()
	r := reading{Took: time.Since(start), Exit: cmd.ProcessState.ExitCode()}
	if u, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		r.Peak = float64(u.Maxrss) / 1024 // Linux counts KiB
		if runtime.GOOS == "darwin" {
			r.Peak /= 1024
		}
	}
	_ = json.NewEncoder(os.Stdout).Encode(r)
	return 0
}

// gauged runs git-tilth under the gauge.
func (w *world) gauged(args ...string) reading {
	w.t.Helper()
	self, err := os.Executable()
	must(w.t, err)
	cmd := exec.Command(self, append([]string{binary(w.t)}, args...)...)
	cmd.Dir, cmd.Env = w.repo, append(w.environ[:len(w.environ):len(w.environ)], gaugeVar+"=1")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	must(w.t, cmd.Run())
	var r reading
	must(w.t, json.Unmarshal(out.Bytes(), &r))
	if r.Exit != 0 {
		w.t.Fatalf("git-tilth %v: exit code %d\n%s", args, r.Exit, errs.Bytes())
	}
	return r
}

// benchView measures the views of a long record.
func benchView(t *testing.T, tb *table) {
	w := newWorld(t, 10)
	long, longest := w.longSession(100_000), w.longSession(1_000_000)
	visualize := func(s *session.Session, peak *float64) func() time.Duration {
		return func() time.Duration {
			r := w.gauged("visualize", s.ID)
			*peak = max(*peak, r.Peak)
			return r.Took
		}
	}
	copying := func(s *session.Session) func() time.Duration {
		return func() time.Duration {
			return w.timed(0, exec.Command("cp", s.Path(session.RecordFile), filepath.Join(w.dir, "copy")))
		}
	}
	var peak, peakest float64
	took := alternate(7, visualize(long, &peak), copying(long))
	what := "cp of the record, "
	tb.limit("visualize, 100,000 events", took[0], took[1], what+sizeOf(t, long), 500*time.Millisecond)
	tb.memory("visualize, 100,000 events, peak memory", peak, 100)
	took = alternate(3, visualize(longest, &peakest), copying(longest))
	tb.limit("visualize, 1,000,000 events", took[0], took[1], what+sizeOf(t, longest), 6*time.Second)
	tb.memory("visualize, 1,000,000 events, peak memory", peakest, 100)

	benchLook(t, tb)
}

// benchLook compares show and log for one session with a short and with a long record.
func benchLook(t *testing.T, tb *table) {
	look := func(size int64) (*session.Session, func(args ...string) func() time.Duration) {
		w := newWorld(t, 200)
		s := w.failedSession()
		lengthen(t, s, size)
		return s, func(args ...string) func() time.Duration {
			return func() time.Duration { return w.timed(0, w.tilth(append(args, s.ID)...)) }
		}
	}
	short, atShort := look(1_000_000)
	long, atLong := look(450_000_000)
	took := alternate(31, atLong("show"), atShort("show"), atLong("log", "--tail", "20"),
		atShort("log", "--tail", "20"))
	tb.ratio("show, "+sizeOf(t, long)+" record", took[0], took[1], "show, "+sizeOf(t, short)+" record", 1.1)
	tb.ratio("log --tail 20, "+sizeOf(t, long)+" record", took[2], took[3], "log, "+sizeOf(t, short)+" record", 1.1)
}

// longSession creates a session with a record of n events, in the state after its run.
func (w *world) longSession(n int) *session.Session {
	w.t.Helper()
	w.run(0, "prep-feature", "--keep-existing", "--from", w.tasks(2))
	s := w.newestOther()
	record := viewtest.Open(w.t, s)
	record.Long(n)
	record.Event(time.Second, "stop", viewtest.P{"reason": "all_done"})
	record.Flush()
	must(w.t, s.WriteSummary())
	settle(w.t)
	return s
}

// newestOther is the session that has no summary yet: ids of one second are in no order.
func (w *world) newestOther() *session.Session {
	w.t.Helper()
	st := session.Store{Root: w.sessions}
	ids, err := st.IDs()
	must(w.t, err)
	for _, id := range ids {
		s, err := st.Find(id)
		must(w.t, err)
		if _, err := os.Stat(s.Path(session.SummaryFile)); err != nil {
			return s
		}
	}
	w.t.Fatal("every session has a summary")
	return nil
}

func sizeOf(t *testing.T, s *session.Session) string {
	fi, err := os.Stat(s.Path(session.RecordFile))
	must(t, err)
	return fmt.Sprintf("%d MB", (fi.Size()+500_000)/1_000_000)
}
