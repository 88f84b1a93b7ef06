//go:build bench

package bench

import (
	"fmt"
	"os"
	"testing"
	"time"
)

// benchEarlier compares a task with the same task of an earlier build, which TILTH_BENCH_EARLIER names. They run in
// turns.
func benchEarlier(t *testing.T, tb *table) {
	earlier := os.Getenv("TILTH_BENCH_EARLIER")
	if earlier == "" {
		t.Log("no row against an earlier build: TILTH_BENCH_EARLIER names none")
		return
	}
	const tasks, rounds = 7, 5
	for _, files := range []int{200, 20_000} {
		w := newWorld(t, files)
		took := map[string][]time.Duration{}
		for range rounds {
			for _, path := range []string{binary(t), earlier} {
				w.program = path
				took[path] = append(took[path], w.timesOf(tasks)...)
			}
		}
		tb.ratio(fmt.Sprintf("a task in %d files", files), median(took[binary(t)]), median(took[earlier]),
			"an earlier build", 1.1)
	}
}
