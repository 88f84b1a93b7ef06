package session

import (
	"errors"
	"os"
	"syscall"
	"testing"

	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/record"
)

// TestOnlyRegularFilesAreOpened: none of these files may block a command.
func TestOnlyRegularFilesAreOpened(t *testing.T) {
	for name, put := range map[string]func(path string) error{
		"FIFO":      func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"directory": func(path string) error { return os.Mkdir(path, 0o700) },
		"device":    func(path string) error { return os.Symlink(os.DevNull, path) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newSession(t)
			for _, file := range []string{CheckpointFile, RecordFile, TasksFile, ProgressFile, SeedMetaFile, LockFile} {
				_ = os.Remove(s.Path(file))
				must(t, put(s.Path(file)))
			}
			if _, err := s.Checkpoint(); !errors.Is(err, jsonl.ErrIrregular) {
				t.Errorf("checkpoint: %v", err)
			}
			if _, err := s.Tasks(); !errors.Is(err, jsonl.ErrIrregular) {
				t.Errorf("plan: %v", err)
			}
			if _, _, err := jsonl.Scan(s.Path(RecordFile), 0, func(int64, []byte) error { return nil }); !errors.Is(err,
				jsonl.ErrIrregular) {
				t.Errorf("record: %v", err)
			}
			if _, err := s.OpenRecord(record.Options{}); err == nil {
				t.Error("the record was opened for writing")
			}
			if _, err := s.Lock(testNow); !errors.Is(err, jsonl.ErrIrregular) {
				t.Errorf("lock: %v", err)
			}
			if _, busy := s.Holder(); busy {
				t.Error("busy")
			}
			s.Overview()
		})
	}
}

func TestLockLeavesNoFileOfItsOwn(t *testing.T) {
	s := newSession(t)
	unlock, err := s.Lock(testNow)
	must(t, err)
	if _, busy := s.Holder(); !busy {
		t.Error("not locked")
	}
	unlock()
	if _, err := os.Lstat(s.Path(LockFile)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("left: %v", err)
	}
	write(t, s.Path(LockFile), "")
	unlock, err = s.Lock(testNow)
	must(t, err)
	unlock()
	if _, err := os.Lstat(s.Path(LockFile)); err != nil {
		t.Errorf("it was there before: %v", err)
	}
}
