package session

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/git-tilth/git-tilth/internal/jsonl"
)

// tempMark is what every temporary file of this package has in its name: ".<name>.tmp-<random>".
const tempMark = ".tmp-"

// AtomicFile is a file that appears under its name complete, or not at all.
type AtomicFile struct {
	*os.File
	path string
	done bool
}

// CreateAtomic opens a temporary file beside path (0600). Write to it, then call Commit; a deferred Abort
// removes it when something went wrong in between.
func CreateAtomic(path string) (*AtomicFile, error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+tempMark+"*")
	if err != nil {
		return nil, err
	}
	return &AtomicFile{File: f, path: path}, nil
}

// Commit makes the file visible under its name and durable: fsync, rename, fsync of the directory.
// The order matters: without the first fsync, a crash after the rename can leave an empty file.
func (a *AtomicFile) Commit() error {
	if a.done {
		return fs.ErrClosed
	}
	a.done = true
	err := a.Sync()
	if cerr := a.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(a.Name(), a.path)
	}
	if err != nil {
		os.Remove(a.Name())
		return fmt.Errorf("write %s: %w", a.path, err)
	}
	return jsonl.SyncDir(filepath.Dir(a.path))
}

// Abort removes the temporary file. After Commit it does nothing.
func (a *AtomicFile) Abort() {
	if a.done {
		return
	}
	a.done = true
	a.Close()
	os.Remove(a.Name())
}

// WriteFileAtomic replaces path by data: a crash or a full disk leaves the old content or the new, never a mix.
// The file is 0600.
func WriteFileAtomic(path string, data []byte) error {
	a, err := CreateAtomic(path)
	if err != nil {
		return err
	}
	defer a.Abort()
	if _, err := a.Write(data); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return a.Commit()
}

// removeStaleTemps deletes what a killed writer left in dir. Only the lock's holder calls it, so files that
// only the holder writes are leftovers at any age; chat.html has other writers, so its own must be old.
func removeStaleTemps(dir string, now time.Time) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		name := e.Name()
		if !strings.HasPrefix(name, ".") || !strings.Contains(name, tempMark) || !e.Type().IsRegular() {
			continue
		}
		if strings.HasPrefix(name, "."+ChatHTMLFile) {
			if info, err := e.Info(); err != nil || now.Sub(info.ModTime()) < time.Hour {
				continue
			}
		}
		os.Remove(filepath.Join(dir, name))
	}
}
