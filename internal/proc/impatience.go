package proc

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// LastWords waits until the children end; a second signal ends them. Then it waits a moment, so that the stop can be
// recorded.
func LastWords() {
	for end := time.Now().Add(childrenEnd); ChildrenRun() && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	time.Sleep(stopWritten)
}

const (
	// childrenEnd is longer than git's time to clean up.
	childrenEnd = 5 * time.Second
	stopWritten = time.Second
)

// echoWindow is the time after a signal in which git's copy of it counts as the same signal. It arrives within
// milliseconds; a busy machine may take longer.
const echoWindow = time.Second

// Impatience distinguishes a second signal from the echo of the first. The git that started this process forwards its
// signals and waits; so a Ctrl-C, which the terminal sends to both, arrives here twice.
type Impatience struct {
	echoes bool // git may send copies
	first  os.Signal
	at     time.Time
}

// CountSignals returns an Impatience of this process, which has had no signal yet.
func CountSignals() Impatience { return Impatience{echoes: startedByGit()} }

// Second reports whether a signal is the user's second one.
func (c *Impatience) Second(sig os.Signal, now time.Time) bool {
	if c.first == nil {
		c.first, c.at = sig, now
		return false
	}
	echo := c.echoes && sig == c.first && now.Sub(c.at) < echoWindow
	c.echoes = false // only one copy of the signal arrives
	return !echo
}

// startedByGit reports whether the parent is a git; true without /proc, because it may be.
func startedByGit() bool {
	name, err := os.Readlink(filepath.Join("/proc", fmt.Sprint(os.Getppid()), "exe"))
	if err != nil {
		return true
	}
	return strings.HasPrefix(filepath.Base(name), "git")
}
