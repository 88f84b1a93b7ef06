//go:build bench

package bench

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/scripttest/scripted"
	"github.com/git-tilth/git-tilth/internal/session"
)

// laneTasks are independent tasks whose workers take workerTime.
const (
	laneTasks  = 12
	workerTime = 3 * time.Second
)

// benchLanes does tasks four at a time and one after the other, and these with an earlier build as well, if
// TILTH_BENCH_EARLIER names one.
func benchLanes(t *testing.T, tb *table) {
	w := newWorld(t, 200)
	from, before := w.tasks(laneTasks), take(t, nil, w.repo)
	run := func(program string, args ...string) func() time.Duration {
		return func() time.Duration {
			before.restore()
			must(t, os.RemoveAll(w.sessions))
			server := w.serve(laneScript(laneTasks))
			defer server.Close()
			w.program = program
			cmd := w.tilth(append([]string{"run", "--yes", "--from", from}, args...)...)
			cmd.Env = w.at(server.URL)
			return w.timed(0, cmd)
		}
	}
	one, four := run(binary(t), "-j", "1"), run(binary(t), "-j", "4")
	took := alternate(1, one, four)
	name := fmt.Sprintf("%d tasks of %s, -j 4", laneTasks, workerTime)
	tb.ratio(name, took[1], took[0], "-j 1", 0.35)
	data, err := os.ReadFile(w.newest().Path(session.RecordFile))
	must(t, err)
	again := strings.Count(string(data), `"type":"validator_run"`) - laneTasks
	tb.count("validator runs again for each task", float64(again)/laneTasks, 1)
	asked := strings.Count(string(data), `"carried_from"`)
	t.Logf("%d verdicts held for what a change had become", asked)
	if earlier := os.Getenv("TILTH_BENCH_EARLIER"); earlier != "" {
		took := alternate(1, one, run(earlier))
		tb.ratio(fmt.Sprintf("%d tasks of %s, -j 1", laneTasks, workerTime), took[0], took[1], "an earlier build", 1.02)
	}
}

// benchLaneNight measures a run with lanes: the share of validation and review, with a validator that keeps a
// processor busy, and the memory of the program for each lane.
func benchLaneNight(t *testing.T, tb *table) {
	w := newWorld(t, 200)
	w.git(w.repo, "config", "tilth.validator", "busy=i=0; while [ $i -lt 500000 ]; do i=$((i+1)); done")
	alone := w.night(1, laneTasks)
	for _, lanes := range []int{2, 4, 8} {
		n := w.night(lanes, laneTasks)
		tb.count(fmt.Sprintf("%d lanes: judging of a task's time, in percent (alone %.0f)", lanes, alone.judging),
			n.judging, 100)
		tb.ratio(fmt.Sprintf("%d lanes: the night", lanes), n.took, alone.took, "one after another", 1)
		tb.memory(fmt.Sprintf("%d lanes: memory of the program for each", lanes), n.mib/float64(lanes), 64)
	}
}

// benchLaneTree measures eight lanes in a large tree, in which each lane first checks out the tree twice. With one
// short task per lane they take longer than a single lane.
func benchLaneTree(t *testing.T, tb *table) {
	const tasks = 8
	large := newWorld(t, 20_000)
	eight, one := large.night(8, tasks), large.night(1, tasks)
	tb.ratio("8 lanes in 20,000 files", eight.took, one.took, "one after another", 2.5)
	tb.memory("8 lanes in 20,000 files: memory of the program for each", eight.mib/8, 64)
}

// night is a run of tasks in lanes.
type night struct {
	took         time.Duration
	judging, mib float64 // judging in percent of the tasks' time
}

func (w *world) night(lanes, tasks int) (n night) {
	w.t.Helper()
	must(w.t, os.RemoveAll(w.sessions))
	w.git(w.repo, "worktree", "prune")
	branches := w.git(w.repo, "for-each-ref", "--format=%(refname:short)", "refs/heads/session/")
	for branch := range strings.Lines(branches) {
		w.git(w.repo, "branch", "-q", "-D", strings.TrimSpace(branch))
	}
	server := w.serve(laneScript(tasks))
	defer server.Close()
	cmd := w.tilth("run", "--yes", "--from", w.tasks(tasks), "-j", fmt.Sprint(lanes))
	cmd.Env = w.at(server.URL)
	n.took = w.timed(0, cmd)
	w.t.Logf("%d tasks in %d lanes: %s", tasks, lanes, short(n.took))
	if usage, is := cmd.ProcessState.SysUsage().(*syscall.Rusage); is {
		n.mib = float64(usage.Maxrss) / 1024
	}
	data, err := os.ReadFile(w.newest().Path(session.RecordFile))
	must(w.t, err)
	begun, handed := map[string]time.Time{}, map[string]time.Time{}
	var whole, judging time.Duration
	for line := range strings.Lines(string(data)) {
		e := gjson.Parse(line)
		task, at := e.Get("payload.task_id").Str, record.ParseTime(e.Get("ts").Str)
		switch e.Get("type").Str {
		case "context_reset":
			begun[task] = at
		case "model_call":
			if e.Get("payload.phase").Str == "" {
				handed[task] = at
			}
		case "commit":
			whole, judging = whole+at.Sub(begun[task]), judging+at.Sub(handed[task])
		}
	}
	n.judging = 100 * float64(judging) / float64(whole)
	return n
}

func laneScript(tasks int) *scripted.Script {
	s := &scripted.Script{Lenient: true, Evaluator: []scripted.Step{acceptStep()}}
	for i := range tasks {
		work := writeStep(writtenName(i+1), "what the task asked for\n")
		work.Tools = append(work.Tools, caseStep().Tools...)
		work.When = scripted.Strings{fmt.Sprintf("# Your task: T-%03d", i+1)}
		work.DelayMS = int(workerTime.Milliseconds())
		s.Worker = append(s.Worker, work)
	}
	return s
}
