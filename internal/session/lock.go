package session

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// BusyError says that another process writes the session. What it knows of that process is what the process wrote into
// the lock file; that the session is in use is known from the lock itself, never from these fields, because a pid is
// reused and a file outlives its writer. PID 0 and empty fields are unknown.
type BusyError struct {
	PID   int    `json:"pid"`
	Host  string `json:"host"`
	Since string `json:"since"` // RFC 3339

	Session string `json:"-"` // the id of the session that is in use
}

func (e *BusyError) Error() string {
	var who []string
	if e.PID != 0 {
		who = append(who, fmt.Sprintf("process %d", e.PID))
	} else {
		who = append(who, "another process")
	}
	if e.Host != "" {
		who = append(who, "on "+e.Host)
	}
	if e.Since != "" {
		who = append(who, "since "+e.Since)
	}
	return "the session is in use by " + strings.Join(who, " ")
}

// lockTries bounds how often a lock that is held is tried again. A reader that looks whether the lock is held (Holder)
// has it for some microseconds; a writer must not take that for another writer.
const (
	lockTries = 10
	lockPause = 5 * time.Millisecond
)

// Lock makes the caller the one writer of the session, or returns a *BusyError. It holds until unlock is called or the
// process ends, however it ends: it is a flock on the open file, and what the file says is for people. Children do not
// inherit it. Leftovers of killed writers are removed on the way. A session that is gone is a *RefusedError, a lock file that
// cannot be used a *LockFileError.
func (s *Session) Lock(now time.Time) (unlock func(), err error) {
	unlock, _, err = s.LockToLook(now)
	return unlock, err
}

// LockToLook is Lock for a command that may turn out to be refused: leave is unlock, but for the file that this call may have
// made, which it takes away again.
func (s *Session) LockToLook(now time.Time) (unlock, leave func(), err error) {
	f, made, err := s.openLock()
	if err != nil {
		return nil, nil, err
	}
	who := BusyError{PID: os.Getpid(), Since: FormatTime(now)}
	who.Host, _ = os.Hostname()
	if data, err := encodeJSON(who); err == nil {
		// A full disk must not stop anyone from resuming or removing a session: the text is a courtesy.
		if f.Truncate(0) == nil {
			_, _ = f.WriteAt(append(data, '\n'), 0)
		}
	}
	removeStaleTemps(s.Dir, now)
	unlock = func() {
		_ = f.Truncate(0)
		_ = f.Close()
	}
	leave = func() {
		if made && sameFile(f, s.Path(LockFile)) {
			_ = os.Remove(s.Path(LockFile)) // whoever waits for it looks the name up again
		}
		unlock()
	}
	return unlock, leave, nil
}

// openLock opens and locks the lock file. The directory may be torn down and the file replaced between the open and the
// lock; a lock on a file that has no name any more would exclude nobody, so the name is looked up again.
func (s *Session) openLock() (f *os.File, made bool, err error) {
	path := s.Path(LockFile)
	for try := 1; ; try++ {
		f, made, err = s.openLockFile(path)
		if errors.Is(err, fs.ErrExist) && try < lockTries {
			continue // somebody else made it meanwhile
		}
		if err != nil {
			return nil, false, err
		}
		err = flock(f, syscall.LOCK_EX)
		if err == nil {
			if sameFile(f, path) {
				return f, made, nil
			}
			err = fs.ErrNotExist
		}
		busy := s.readHolder(f)
		f.Close()
		switch {
		case try < lockTries:
			if errors.Is(err, syscall.EWOULDBLOCK) {
				time.Sleep(lockPause)
			}
		case errors.Is(err, syscall.EWOULDBLOCK):
			return nil, false, busy
		default:
			return nil, false, fmt.Errorf("lock the session: %w", err)
		}
	}
}

// openLockFile opens the lock file, and makes it if it is missing.
func (s *Session) openLockFile(path string) (f *os.File, made bool, err error) {
	if f, err = OpenFile(path, os.O_RDWR|syscall.O_NOFOLLOW); err == nil {
		return f, false, nil
	}
	if isMissing(err) {
		if f, err = OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW); err == nil {
			return f, true, nil
		}
	}
	if errors.Is(err, fs.ErrExist) {
		return nil, false, err
	}
	if _, there := os.Lstat(s.Dir); isMissing(there) {
		return nil, false, &RefusedError{Name: s.ID, Reason: "no such session under " + filepath.Dir(s.Dir)}
	}
	if _, there := os.Lstat(path); errors.Is(there, fs.ErrPermission) {
		return nil, false, lockFileError(s.Dir, err)
	}
	return nil, false, lockFileError(path, err)
}

// Holder tells whether a process holds the lock now, and which. It never waits and creates nothing.
func (s *Session) Holder() (*BusyError, bool) {
	f, err := OpenFile(s.Path(LockFile), os.O_RDONLY|syscall.O_NOFOLLOW)
	if err != nil {
		return nil, false
	}
	defer f.Close()
	// A shared lock, so that two that look do not see each other.
	if err := flock(f, syscall.LOCK_SH); !errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, false
	}
	return s.readHolder(f), true
}

func flock(f *os.File, how int) error {
	for {
		if err := syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB); err != syscall.EINTR {
			return err
		}
	}
}

func sameFile(f *os.File, path string) bool {
	a, err := f.Stat()
	if err != nil {
		return false
	}
	b, err := os.Lstat(path)
	return err == nil && os.SameFile(a, b)
}

// readHolder reads what the lock's holder says of itself; nothing, where it has not got round to it.
func (s *Session) readHolder(f *os.File) *BusyError {
	busy := &BusyError{}
	data, err := io.ReadAll(io.NewSectionReader(f, 0, 4096))
	if err != nil || json.Unmarshal(data, busy) != nil {
		busy = &BusyError{}
	}
	busy.Session = s.ID
	return busy
}
