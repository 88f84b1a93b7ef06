//go:build bench

package bench

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/git-tilth/git-tilth/internal/scripttest/scripted"
)

// benchMemory runs 200 tasks of 50 iterations each. Memory kept for finished tasks would show in the peak of the last
// tenth, before which the kernel's peak is reset.
func benchMemory(t *testing.T, tb *table) {
	const tasks, iterations = 200, 50
	if _, err := os.Stat("/proc/self/clear_refs"); err != nil {
		t.Skip("needs a kernel that tells of a part's peak: ", err)
	}
	w := newWorld(t, 50)
	from := w.tasks(tasks)
	s := &scripted.Script{Lenient: true, Evaluator: []scripted.Step{acceptStep()}}
	for i := range tasks {
		for j := range iterations - 2 {
			s.Worker = append(s.Worker, readStep(fileName(j)))
		}
		s.Worker = append(s.Worker, writeStep(writtenName(i+1), "what the task asked for\n"), caseStep())
	}
	var pid atomic.Int64
	var first, last float64
	asked := 0
	server := w.serve(s, scripted.OnRequest(func(r scripted.Request) {
		if r.Role != scripted.RoleWorker {
			return
		}
		switch asked++; asked { // the run waits for each answer before it asks again
		case tasks / 10 * iterations:
			first = peak(t, pid.Load())
		case tasks * 9 / 10 * iterations:
			must(t, os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid.Load()), []byte("5"), 0o600))
		case tasks * iterations:
			last = peak(t, pid.Load())
		}
	}))
	cmd := w.tilth("run", "--yes", "--from", from, "--max-iterations", strconv.Itoa(2*iterations), "--max-tokens", "0")
	cmd.Env = w.at(server.URL)
	must(t, cmd.Start())
	pid.Store(int64(cmd.Process.Pid))
	must(t, cmd.Wait())
	if first == 0 || last == 0 {
		t.Fatalf("%d requests", asked)
	}
	tb.add(row{"peak memory of the last 20 of 200 tasks", fmt.Sprintf("%.1f MiB", last),
		fmt.Sprintf("%.1f MiB the first 20", first), fmt.Sprintf("%.2f x", last/first), "1.10 x", last > 1.1*first})
}

var peakLine = regexp.MustCompile(`VmHWM:\s+(\d+) kB`)

// peak is the most memory that a process had, in MiB.
func peak(t *testing.T, pid int64) float64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	must(t, err)
	found := peakLine.FindSubmatch(status)
	if found == nil {
		t.Fatalf("%s", status)
	}
	kib, err := strconv.ParseFloat(string(found[1]), 64)
	must(t, err)
	return kib / 1024
}
