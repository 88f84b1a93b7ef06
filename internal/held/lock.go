package held

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/git-tilth/git-tilth/internal/session"
)

// LockRoot locks the sessions root, because a new session directory without its lock looks like the leftover of a kill.
func LockRoot(root string) (release func(), err error) {
	return LockDir(root, rootPatience, fmt.Errorf("another process keeps %s locked", root))
}

// LockDir locks a directory, where its file system locks directories. Where another process keeps it locked for as long
// as one waits the error is busy.
func LockDir(dir string, patience time.Duration, busy error) (release func(), err error) {
	f, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	for end := time.Now().Add(patience); ; time.Sleep(rootPause) {
		switch err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); {
		case err != unix.EWOULDBLOCK && err != unix.EINTR:
			return func() { f.Close() }, nil
		case !time.Now().Before(end):
			return nil, errors.Join(busy, f.Close())
		}
	}
}

// A session gets its name within milliseconds. Whoever has the sessions root for longer, such as a worker that runs on,
// is not waited for.
var rootPatience, rootPause = 10 * time.Second, 5 * time.Millisecond

// InUse returns the error for a session that another process is making or has just made.
func InUse(s *session.Session) *session.BusyError {
	if holder, busy := s.Holder(); busy {
		return holder
	}
	return &session.BusyError{Session: s.ID}
}

// Lock takes the session's lock. In a dry run the session is refused when it is in use, but not taken, so that nothing
// is written, not even the lock.
func Lock(d Deps, s *session.Session) (unlock func(), err error) {
	if !d.Git.IsDryRun() {
		return s.Lock(d.Now())
	}
	if holder, busy := s.Holder(); busy {
		return nil, holder
	}
	return func() {}, nil
}

// UnderRoot does something while nobody gives a session of the root its name.
func UnderRoot(store session.Store, do func() error) error {
	release, err := LockRoot(store.Root)
	if err != nil {
		return err
	}
	defer release()
	return do()
}

// UnchangedSince starts reading a session without its lock. unchanged reports afterwards whether no process changed the
// session meanwhile; else the data read mixes two states.
func UnchangedSince(s *session.Session) (unchanged func() bool, err error) {
	if holder, busy := s.Holder(); busy {
		return nil, holder
	}
	was := s.Overview()
	return func() bool {
		_, busy := s.Holder()
		now := s.Overview()
		return !busy && Exists(s.Dir) && now.Status == was.Status && now.LastEventAt == was.LastEventAt
	}, nil
}
