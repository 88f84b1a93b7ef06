//go:build bench

package bench

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/git-tilth/git-tilth/internal/scripttest/scripted"
	"github.com/git-tilth/git-tilth/internal/session"
)

// laneTasks are independent tasks, each of a worker that takes workerTime.
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
			server := w.serve(laneScript())
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

func laneScript() *scripted.Script {
	s := &scripted.Script{Lenient: true, Evaluator: []scripted.Step{acceptStep()}}
	for i := range laneTasks {
		work := writeStep(writtenName(i+1), "what the task asked for\n")
		work.Tools = append(work.Tools, caseStep().Tools...)
		work.When = scripted.Strings{fmt.Sprintf("# Your task: T-%03d", i+1)}
		work.DelayMS = int(workerTime.Milliseconds())
		s.Worker = append(s.Worker, work)
	}
	return s
}
