// Package testsize returns the number of cases for tests without a natural end: kills, random stories.
package testsize

import (
	"os"
	"os/exec"
	"sync"
	"time"
)

// IsFull reports whether the tests run in the size of CI.
func IsFull() bool { return os.Getenv("TILTH_TESTS") == "full" }

// Of returns few, or full in CI. If processes start slowly, as in nested virtual machines, it returns a part of full
// that shrinks with the square of the start time, but at least few, so that CI takes less than an hour.
func Of(few, full int) int {
	if !IsFull() {
		return few
	}
	return max(few, int(share()*float64(full)))
}

// IsSlow reports whether CI runs on such a machine.
func IsSlow() bool { return IsFull() && share() < 0.5 }

// usual is the time that git takes to start on an idle machine.
const usual = 2500 * time.Microsecond

var share = sync.OnceValue(func() float64 {
	took := time.Hour
	for range 10 {
		begin := time.Now()
		if exec.Command("git", "version").Run() == nil {
			took = min(took, time.Since(begin))
		}
	}
	part := min(1, float64(usual)/float64(took))
	return part * part
})
