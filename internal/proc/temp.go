package proc

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// tempKinds are the names of directories that one command needs. Other directories there are not removed.
var tempKinds = []string{"run", "objects", "hooks", "hook", "tree", "overlay", "judge", "bundle", "take", "pr",
	"apply", "copy", "travel", "doctor"}

func tempName(kind string) string { return "tilth-" + kind + "-" }

// TempDir makes a directory for the temporary files of one command. The directory is locked until it is removed, so
// that ClearTemp recognises leftovers of a kill.
func TempDir(kind string) (dir string, remove func(), err error) {
	if !slices.Contains(tempKinds, kind) {
		return "", nil, errors.New("a temporary directory that nobody would clear: " + kind)
	}
	return makeTemp("", tempName(kind))
}

// TempDirIn is TempDir in a directory of the user, under a name that begins with prefix. It first removes the
// directories that killed processes left there.
func TempDirIn(parent, prefix string) (dir string, remove func(), err error) {
	ClearTempIn(parent, prefix)
	return makeTemp(parent, prefix)
}

// ClearTempIn removes the directories of killed processes that TempDirIn made there.
func ClearTempIn(parent, prefix string) {
	clearTemp(parent, func(name string) bool { return strings.HasPrefix(name, prefix) })
}

func makeTemp(parent, prefix string) (dir string, remove func(), err error) {
	for {
		if dir, err = os.MkdirTemp(parent, prefix); err != nil {
			return "", nil, err
		}
		lock, err := lockDir(dir, unix.LOCK_EX)
		if err == nil {
			return dir, func() { _ = RemoveAll(dir); lock.Close() }, nil
		}
		if _, gone := os.Lstat(dir); !errors.Is(gone, fs.ErrNotExist) {
			os.Remove(dir)
			return "", nil, err
		}
		// It was cleared before it was locked.
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
func ClearTemp() {
	clearTemp(os.TempDir(), func(name string) bool {
		return slices.ContainsFunc(tempKinds, func(kind string) bool {
			is, err := filepath.Match(tempName(kind)+"[0-9]*", name)
			return is && err == nil
		})
	})
}

func clearTemp(parent string, ours func(name string) bool) {
	entries, _ := os.ReadDir(parent)
	for _, e := range entries {
		dir := filepath.Join(parent, e.Name())
		if !ours(e.Name()) {
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
