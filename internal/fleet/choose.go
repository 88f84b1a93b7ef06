package fleet

import (
	"slices"
	"time"

	"github.com/git-tilth/git-tilth/internal/session"
)

// Next returns the session that a worker takes: the oldest runnable one without a holder that skip does not exclude. If
// workers choose at the same time, all but one lose; after each loss a worker chooses among twice as many. waiting says
// that a runnable session has a holder, who may release it.
func Next(claims []Claim, now time.Time, lost int, pick func(n int) int, skip func(id string) bool) (c Claim, found,
	waiting bool) {
	var free []Claim
	most := 1 << min(lost, 16)
	for _, c := range slices.Backward(claims) {
		if skip(c.Session) || c.Status != session.Prepared && c.Status != session.Running {
			continue
		}
		if c.Held(now) {
			waiting = true
		} else if free = append(free, c); len(free) == most {
			break
		}
	}
	if len(free) == 0 {
		return c, false, waiting
	}
	return free[pick(len(free))], true, waiting
}

// Pause is how long a worker waits before it looks again: about a third of the lease where there is nothing to take; a
// moment where it has lost a race, twice as long after each. chance, from 0 to 1, keeps workers apart.
func Pause(lease time.Duration, lost int, chance float64) time.Duration {
	d := lease / 3
	if lost > 0 {
		d = min(d, 50*time.Millisecond<<min(lost, 16))
	}
	return d/2 + time.Duration(chance*float64(d))
}
