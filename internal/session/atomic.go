package session

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/git-tilth/git-tilth/internal/jsonl"
)

// tempMark is what every temporary file of this package has in its name: ".<name>.tmp-<random>".
const tempMark = ".tmp-"

// WriteFileAtomic replaces path by data, durably: a crash or a full disk leaves the old content or the new, never a
// mix. The file is 0600. The order matters: without the fsync before it, a crash after the rename can leave an empty
// file; without the fsync of the directory after it, the rename can be lost.
func WriteFileAtomic(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+tempMark+"*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
		return fmt.Errorf("write %s: %w", path, err)
	}
	return jsonl.SyncDir(filepath.Dir(path))
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
