package loop

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/git-tilth/git-tilth/internal/config"
)

// Usage is what a session has used of its caps, by their names. The wall clock begins anew with each resume.
func Usage(tokens int64, cost float64, elapsed time.Duration) map[string]float64 {
	return map[string]float64{
		config.MaxMinutes: elapsed.Minutes(),
		config.MaxTokens:  float64(tokens),
		config.MaxCost:    cost,
	}
}

// capReached is the session's cap that ends the run. It is asked between tasks only, so that the task at hand finishes.
func (r *run) capReached() (reason, detail string) {
	used := Usage(r.Checkpoint.TokensUsed, r.Checkpoint.Usage.Sum().Cost, r.Now().Sub(r.started)-r.idle)
	for _, c := range r.o.Caps.Reached(used) {
		return c.Stop, c.String()
	}
	return "", ""
}

// diskFull is the end of the run where too little is left on the disk of the sessions, the repository or temporary
// files: nothing is begun that could be torn. A disk that cannot be asked is not full.
func (r *run) diskFull() error {
	for _, dir := range []string{r.S.Dir, r.Common, os.TempDir()} {
		if free, known := DiskFree(dir); known && free < r.o.MinFree {
			return Stop{Reason: DiskFull, Hint: "free some room, or lower tilth.minFree",
				Detail: fmt.Sprintf("%d MB left on the disk of %s, tilth.minFree is %d MB", free>>20, dir,
					r.o.MinFree>>20)}
		}
	}
	return nil
}

// DiskFree is how many bytes are left on the disk of a directory, where it can be asked.
func DiskFree(dir string) (free int64, known bool) {
	var disk unix.Statfs_t
	err := unix.Statfs(dir, &disk)
	return int64(disk.Bavail) * int64(disk.Bsize), err == nil
}
