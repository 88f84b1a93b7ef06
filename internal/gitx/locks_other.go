//go:build !linux

package gitx

import (
	"io/fs"
	"time"
)

// staleAfter is the age from which a lock that is older than this process is
// taken for left behind.
const staleAfter = 10 * time.Second

// lockOwner says why the lock may still have an owner, or is "". Without /proc
// age has to do: this process holds the session's lock, so a file older than it
// is of a run that is over.
func (g *Git) lockOwner(lock fs.FileInfo, _ []string) string {
	if lock.ModTime().Before(g.started) && time.Since(lock.ModTime()) > staleAfter {
		return ""
	}
	return "it is recent; remove it if no git is at work there"
}
