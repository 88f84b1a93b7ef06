package held

import (
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestLockRootIsGivenUp: a worker can lock the sessions root, and keep it.
func TestLockRootIsGivenUp(t *testing.T) {
	root := t.TempDir()
	f, err := os.Open(root)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	defer func(was time.Duration) { rootPatience = was }(rootPatience)
	rootPatience = 0
	if _, err := LockRoot(root); err == nil {
		t.Error("it is locked twice")
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_UN); err != nil {
		t.Fatal(err)
	}
	release, err := LockRoot(root)
	if err != nil {
		t.Fatal(err)
	}
	release()
}
