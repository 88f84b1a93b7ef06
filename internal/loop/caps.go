package loop

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/git-tilth/git-tilth/internal/config"
	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/record"
)

// Usage returns a session's usage by cap name. Each resume restarts the wall clock.
func Usage(tokens int64, cost float64, elapsed time.Duration) map[string]float64 {
	return map[string]float64{
		config.MaxMinutes: elapsed.Minutes(),
		config.MaxTokens:  float64(tokens),
		config.MaxCost:    cost,
	}
}

// Resume returns the command that continues a session. The command raises a cap if the resume would otherwise stop at
// once.
func Resume(id string, over []config.Reached, flags ...string) string {
	cmd := append([]string{"git tilth resume"}, flags...)
	for _, o := range over {
		cmd = append(cmd, "--"+o.Setting.Flag, raised(o))
	}
	return strings.Join(append(cmd, id), " ")
}

// raised returns a multiple of a cap that exceeds the usage by at least half a cap.
func raised(o config.Reached) string {
	limit := o.Limit * math.Ceil(o.Used/o.Limit+0.5)
	if limit == math.Trunc(limit) {
		return strconv.FormatFloat(limit, 'f', 0, 64)
	}
	return strconv.FormatFloat(limit, 'g', 6, 64)
}

// capReached returns the stop of the first session cap that is reached, or nil.
func (r *run) capReached() error { return r.stopAt(r.used()) }

func (r *run) stopAt(used map[string]float64) error {
	for _, c := range r.o.Caps.Reached(used) {
		return Stop{Reason: c.Stop, Detail: c.String()}
	}
	return nil
}

// used returns the session's usage by cap name.
func (r *run) used() map[string]float64 {
	elapsed := r.elapsed()
	r.mu.Lock()
	defer r.mu.Unlock()
	return Usage(r.Checkpoint.TokensUsed, r.Checkpoint.Usage.Sum().Cost, elapsed)
}

// elapsed returns how long the run has worked.
func (r *run) elapsed() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.Now()
	worked := now.Sub(r.started) - r.idle
	if r.waiting > 0 {
		worked -= now.Sub(r.idleSince)
	}
	return worked
}

// mayAsk returns the stop that prevents the next model call or turn of a program: a session cap or a full disk. The
// task stays pending, with its work in the worktree.
func (r *run) mayAsk() error { return cmp.Or(r.capReached(), r.diskFull()) }

// mayUseTool does the same before a tool call, which uses no tokens and no dollars.
func (r *run) mayUseTool() error {
	return cmp.Or(r.stopAt(map[string]float64{config.MaxMinutes: r.elapsed().Minutes()}), r.diskFull())
}

// turnTime returns the time limit of a program's turn: tilth.turnTimeout, or the rest of the wall clock if that is
// less.
func (r *run) turnTime() time.Duration {
	limit := r.o.Limits.Turn
	if most := r.o.Caps[config.MaxMinutes]; most > 0 {
		left := max(time.Duration(most*float64(time.Minute))-r.elapsed(), time.Second)
		if limit == 0 || left < limit {
			limit = left
		}
	}
	return limit
}

// dollarsLeft returns the rest of the dollar cap, for programs with such a limit; 0 without a cap.
func (r *run) dollarsLeft() float64 {
	most := r.o.Caps[config.MaxCost]
	return max(0, most-r.used()[config.MaxCost])
}

// diskFull returns the stop if the disk of the sessions, the repository or temporary files has too little free space.
// It skips a disk that it cannot check.
func (r *run) diskFull() error {
	for _, dir := range []string{r.S.Dir, r.Common, os.TempDir()} {
		if free, known := proc.DiskFree(dir); known && free < r.o.MinFree {
			return Stop{Reason: record.DiskFull,
				Detail: fmt.Sprintf("%d MB left on the disk of %s, tilth.minFree is %d MB", free>>20, dir,
					r.o.MinFree>>20)}
		}
	}
	return nil
}

// lastBytes is the free space, in bytes, at which a disk counts as full. A file system reserves some.
const lastBytes = 1 << 20

// fullAfter returns the stop for an error if a disk is completely full. Git and tools report only a failed write.
func (r *run) fullAfter(failed Stop) Stop {
	for _, dir := range []string{r.S.Dir, r.Common, os.TempDir()} {
		if free, known := proc.DiskFree(dir); known && free < lastBytes {
			failed.Reason, failed.Detail = record.DiskFull, "no space left on the disk of "+dir+": "+failed.Detail
			break
		}
	}
	return failed
}
