package proc

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// tempPrefix begins the names of temporary directories.
const tempPrefix = "tilth-temp-"

// TempDir creates a directory for the temporary files of one command. The directory is locked until it is removed, so
// that ClearTemp recognises leftovers of a kill.
func TempDir() (dir string, remove func(), err error) { return TempDirIn("", tempPrefix) }

// TempDirIn is TempDir in a directory of the user, under a name that begins with prefix.
func TempDirIn(parent, prefix string) (dir string, remove func(), err error) {
	for {
		if dir, err = os.MkdirTemp(parent, prefix); err != nil {
			return "", nil, err
		}
		lock, err := lockDir(dir, unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return dir, func() { _ = RemoveAll(dir); lock.Close() }, nil
		}
		os.Remove(dir)
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.EWOULDBLOCK) {
			return "", nil, err
		}
		// Another process removed or locked it first.
	}
}

// lockDir locks a directory that is still there once it is locked.
func lockDir(dir string, how int) (*os.File, error) {
	f, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	if err = unix.Flock(int(f.Fd()), how); err == nil {
		_, err = os.Lstat(dir)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// ClearTemp removes this user's temporary directories of killed processes.
func ClearTemp() { ClearTempIn(os.TempDir(), tempPrefix) }

// ClearTempIn removes the directories of killed processes that TempDirIn made there.
func ClearTempIn(parent, prefix string) {
	entries, _ := os.ReadDir(parent)
	for _, e := range entries {
		dir := filepath.Join(parent, e.Name())
		if !strings.HasPrefix(e.Name(), prefix) {
			continue
		}
		if fi, err := os.Lstat(dir); err != nil || !fi.IsDir() || !owned(fi) {
			continue
		}
		if lock, err := lockDir(dir, unix.LOCK_EX|unix.LOCK_NB); err == nil {
			_ = RemoveAll(dir)
			lock.Close()
		}
	}
}

func owned(fi os.FileInfo) bool {
	st, ok := fi.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Getuid()
}
