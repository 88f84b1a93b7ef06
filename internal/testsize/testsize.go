// Package testsize says how many cases a test tries of those that there are without end: kills, random stories.
package testsize

import (
	"os"
	"os/exec"
	"sync"
	"time"
)

// IsFull reports whether the tests are those of CI.
func IsFull() bool { return os.Getenv("TILTH_TESTS") == "full" }

// Of is few, or in CI as many as full. Where processes start slowly, as on a virtual machine within another one, CI
// has its hour all the same: there it is a part of full that falls with the square of the time, and no less than few.
func Of(few, full int) int {
	if !IsFull() {
		return few
	}
	return max(few, int(share()*float64(full)))
}

// IsSlow reports whether CI runs on such a machine.
func IsSlow() bool { return IsFull() && share() < 0.5 }

// usual is how long the start of a git takes on a machine with time for all of them.
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
