package session

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/text"
)

// BusyError: another process writes the session. PID 0 and empty fields are unknown. The lock's holder writes its own
// into the lock file, for messages only: a pid can be reused, and the file outlives its writer.
type BusyError struct {
	PID     int    `json:"pid"`
	Host    string `json:"host"`
	Since   string `json:"since"` // RFC 3339
	Session string `json:"-"`     // the id of the session that is in use
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

// lockTries limits the tries for a held lock. A reader that tests the lock (Holder) holds it for some microseconds,
// and a writer must not mistake it for another writer.
const (
	lockTries = 40
	lockPause = 5 * time.Millisecond
)

// Lock locks the session for this writer, or returns a *BusyError. The lock is a flock on the lock file. It ends with
// unlock, or with the process. Children do not inherit it. unlock removes a lock file that Lock created. Lock removes
// leftovers of killed writers. A missing session is a *RefusedError.
func (s *Session) Lock(now time.Time) (unlock func(), err error) {
	f, made, err := s.lockFile()
	if err != nil {
		return nil, err
	}
	line := BusyError{PID: os.Getpid(), Since: record.FormatTime(now)}
	line.Host, _ = os.Hostname()
	if data, err := jsonl.Encode(line); err == nil && f.Truncate(0) == nil {
		// A full disk must not prevent a resume or a reset, and the text is only for messages.
		_, _ = f.WriteAt(append(data, '\n'), 0)
	}
	dirs, _ := filepath.Glob(s.Path(KeptGitDir, "refs/*/*"))
	dirs = append(dirs, s.Dir)
	for _, name := range []string{LedgerDir, TravelDir, AsideDir} {
		if s.checkDir(name) == nil {
			dirs = append(dirs, s.Path(name))
		}
	}
	for _, dir := range dirs {
		removeStaleTemps(dir, now)
	}
	return func() {
		if made && sameFile(f, s.Path(LockFile)) {
			_ = os.Remove(s.Path(LockFile)) // waiting processes look up the name again
		}
		_ = f.Truncate(0)
		_ = f.Close()
	}, nil
}

// lockFile locks the lock file, and creates it if it is missing.
func (s *Session) lockFile() (f *os.File, made bool, err error) {
	path := s.Path(LockFile)
	f, err = s.acquire(path, func() (*os.File, error) {
		made = false
		f, err := jsonl.OpenFile(path, os.O_RDWR)
		if errors.Is(err, fs.ErrNotExist) {
			made = true
			f, err = jsonl.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL)
		}
		return f, err
	})
	if _, gone := os.Lstat(s.Dir); err != nil && errors.Is(gone, fs.ErrNotExist) {
		return nil, false, &RefusedError{Name: s.ID, Reason: "no such session under " + filepath.Dir(s.Dir)}
	}
	if busy := (*BusyError)(nil); err != nil && !errors.As(err, &busy) {
		err = fmt.Errorf("lock the session: %w", err)
	}
	return f, made, err
}

// acquire opens path and locks it. The name may be removed or replaced between the open and the lock. A lock on a file
// without a name would exclude nobody, so acquire looks the name up again.
func (s *Session) acquire(path string, open func() (*os.File, error)) (*os.File, error) {
	for try := 1; ; try++ {
		f, err := open()
		if errors.Is(err, fs.ErrExist) && try < lockTries {
			continue // another process made it meanwhile
		}
		if err != nil {
			return nil, err
		}
		err = flock(int(f.Fd()), syscall.LOCK_EX)
		if err == nil {
			if sameFile(f, path) {
				return f, nil
			}
			err = &os.PathError{Op: "lock", Path: path, Err: fs.ErrNotExist}
		}
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = s.holderOf(path)
		}
		f.Close()
		busy := &BusyError{}
		switch isBusy := errors.As(err, &busy); {
		case !isBusy && !errors.Is(err, fs.ErrNotExist), try >= lockTries:
			return nil, err
		case isBusy:
			time.Sleep(lockPause)
		}
	}
}

// Holder returns the process that has the lock now, if any. It never waits and creates nothing.
func (s *Session) Holder() (*BusyError, bool) {
	path := s.Path(LockFile)
	if !isLocked(path) {
		return nil, false
	}
	return s.holderOf(path), true
}

// isLocked takes a shared lock for a moment, so that two readers do not see each other's lock.
func isLocked(path string) bool {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	return flock(fd, unix.LOCK_SH) == unix.EWOULDBLOCK
}

func flock(fd, how int) error {
	for {
		if err := syscall.Flock(fd, how|syscall.LOCK_NB); err != syscall.EINTR {
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

// holderOf returns the holder of the lock on the file at path. The kernel's answer takes precedence over the lock
// file's text; the text counts where the kernel has no answer, as on another system or for a holder on another machine.
func (s *Session) holderOf(path string) *BusyError {
	e := &BusyError{}
	if data, err := jsonl.ReadFile(path); err != nil || json.Unmarshal(data, e) != nil {
		e = &BusyError{}
	}
	e.Session, e.Host, e.Since = s.ID, text.VisibleLine(e.Host), text.VisibleLine(e.Since)
	if pid := flockOwner(path); pid != 0 {
		if pid != e.PID {
			e.Since = ""
		}
		e.PID = pid
		e.Host, _ = os.Hostname()
	}
	return e
}

// flockOwner returns the process of this machine that has the exclusive flock on f, 0 if that is unknown. A line of
// /proc/locks: "3: FLOCK  ADVISORY  WRITE 1234 fd:01:5678 0 EOF".
func flockOwner(path string) (pid int) {
	var st unix.Stat_t
	if unix.Lstat(path, &st) != nil {
		return 0
	}
	name := fmt.Sprintf("%02x:%02x:%d", unix.Major(uint64(st.Dev)), unix.Minor(uint64(st.Dev)), st.Ino)
	data, _ := os.ReadFile("/proc/locks")
	for line := range strings.Lines(string(data)) {
		if w := strings.Fields(line); len(w) > 5 && w[1] == "FLOCK" && w[3] == "WRITE" && w[5] == name {
			pid, _ = strconv.Atoi(w[4])
		}
	}
	return max(pid, 0)
}
