package session

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/git-tilth/git-tilth/internal/jsonl"
)

// readJSON decodes a JSON file of a session. Errors name the file and the fault in it.
func readJSON[T any](path string, decode func([]byte) (T, error)) (v T, err error) {
	data, err := jsonl.ReadFile(path)
	if err != nil {
		return v, err
	}
	if v, err = decode(data); err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return v, err
}

// save replaces a file of a session with text, unless encoding it failed with err. Files that cannot be regenerated are
// synced, so that a power cut leaves the old content or the new. Only after Sync it is the new content.
func save(path string, text []byte, err error, synced bool) error {
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return jsonl.Put(path, text, synced)
}

// Sync makes earlier saves survive a power cut.
func (s *Session) Sync() error { return jsonl.SyncDir(s.Dir) }

// removeStaleTemps deletes temporary files that a killed writer left in dir. Only the lock's holder calls it, so files
// of the holder are leftovers at any age. chat.html and taking.json have other writers, so their temporary files must
// be old.
func removeStaleTemps(dir string, now time.Time) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		name := e.Name()
		if !strings.HasPrefix(name, ".") || !strings.Contains(name, jsonl.TempMark) || !e.Type().IsRegular() {
			continue
		}
		if strings.HasPrefix(name, "."+ChatHTMLFile) || strings.HasPrefix(name, ".taking.json") {
			if info, err := e.Info(); err != nil || now.Sub(info.ModTime()) < time.Hour {
				continue
			}
		}
		os.Remove(filepath.Join(dir, name))
	}
}
