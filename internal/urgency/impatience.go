package urgency

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// LastWords waits for the end of the children, which a second signal ends, and then gives the stop a moment to be
// written.
func LastWords() {
	for end := time.Now().Add(childrenEnd); Children() && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	time.Sleep(stopWritten)
}

const (
	// childrenEnd is longer than what git has to put its affairs in order.
	childrenEnd = 5 * time.Second
	stopWritten = time.Second
)

// echoWindow is how long after a signal git's copy of it is waited for. It comes within milliseconds; a busy machine
// may take longer.
const echoWindow = time.Second

// Impatience tells a second signal from the first one's echo. The git that dispatched to this process hands every
// signal that it gets on to it, and waits for its end; so a Ctrl-C, which the terminal sends to both, arrives here
// twice.
type Impatience struct {
	echoes bool // git may send copies
	first  os.Signal
	at     time.Time
}

// Counting is an Impatience of this process, which has had no signal yet.
func Counting() Impatience { return Impatience{echoes: startedByGit()} }

// Second takes a signal in and reports whether somebody is asking for the second time.
func (c *Impatience) Second(sig os.Signal, now time.Time) bool {
	if c.first == nil {
		c.first, c.at = sig, now
		return false
	}
	echo := c.echoes && sig == c.first && now.Sub(c.at) < echoWindow
	c.echoes = false // there is one copy, and no more
	return !echo
}

// startedByGit reports whether the parent is a git. Where there is no /proc to ask, it may be.
func startedByGit() bool {
	name, err := os.Readlink(filepath.Join("/proc", fmt.Sprint(os.Getppid()), "exe"))
	if err != nil {
		return true
	}
	return strings.HasPrefix(filepath.Base(name), "git")
}
