package view

import (
	"context"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/view/viewtest"
)

// long creates a session with a record of n events.
func long(b *testing.B, n int) *session.Session {
	b.Helper()
	w := viewtest.New(b, session.Store{Root: b.TempDir()})
	w.Long(n)
	return w.S
}

func benchmarkRender(b *testing.B, n int) {
	s := long(b, n)
	info, err := os.Stat(s.Path(session.RecordFile))
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(info.Size())
	start := cpuTime()
	for b.Loop() {
		if err := RenderFile(context.Background(), s, time.Now(), nil, nil); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	b.ReportMetric((cpuTime()-start).Seconds()*1000/float64(b.N), "cpu-ms/op")
	b.ReportMetric(peakMiB(), "peak-MiB")
}

// cpuTime returns the processor time of this process, which is more stable than the clock on a busy machine.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// peakMiB returns the largest resident size of the process, if the system reports it.
func peakMiB() float64 {
	data, err := os.ReadFile("/proc/self/status")
	if err != nil {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.Sys) / (1 << 20)
	}
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kb, _ := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			return kb / 1024
		}
	}
	return 0
}

func Benchmark100k(b *testing.B) { benchmarkRender(b, 100_000) }

// Benchmark1M needs 2 GB of disk and some seconds, so it runs only by name.
func Benchmark1M(b *testing.B) {
	if os.Getenv("TILTH_BENCH_1M") == "" {
		b.Skip("TILTH_BENCH_1M is not set")
	}
	benchmarkRender(b, 1_000_000)
}

// BenchmarkList measures `list --all` with ten thousand sessions.
func BenchmarkList(b *testing.B) {
	store := session.Store{Root: b.TempDir()}
	start := viewtest.Start
	for i := range 10_000 {
		s, err := store.Create(session.NewID(start.Add(time.Duration(i) * time.Minute)))
		if err != nil {
			b.Fatal(err)
		}
		w := viewtest.Open(b, s)
		viewtest.Small(w)
		w.Close()
	}
	begin := cpuTime()
	defer func() { b.ReportMetric((cpuTime()-begin).Seconds()*1000/float64(b.N), "cpu-ms/op") }()
	for b.Loop() {
		ids, err := store.IDs()
		if err != nil {
			b.Fatal(err)
		}
		if err := List(io.Discard, store.Overview(ids, nil),
			Terminal{TTY: true, Width: 120, Now: start}, false); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkTail(b *testing.B) {
	s := long(b, 100_000)
	for b.Loop() {
		if _, err := Log(context.Background(), io.Discard, s, LogOptions{Tail: 20}); err != nil {
			b.Fatal(err)
		}
	}
}
