//go:build bench

package bench

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// snapshot is a copy of files and directories for a restore. Append-only files may be too large to copy; they are
// truncated to their length.
type snapshot struct {
	t      testing.TB
	copies map[string]string // original: copy
	logs   map[string]int64  // append-only file: length
}

// take copies files and directories. logs are outside all of them.
func take(t testing.TB, logs []string, paths ...string) *snapshot {
	t.Helper()
	s := &snapshot{t: t, copies: map[string]string{}, logs: map[string]int64{}}
	for _, log := range logs {
		fi, err := os.Stat(log)
		must(t, err)
		s.logs[log] = fi.Size()
	}
	for _, path := range paths {
		s.copies[path] = filepath.Join(t.TempDir(), "copy")
		s.copy(path, s.copies[path])
	}
	return s
}

// restore restores everything.
func (s *snapshot) restore() {
	s.t.Helper()
	for log, n := range s.logs {
		must(s.t, os.Truncate(log, n))
	}
	for path, copied := range s.copies {
		must(s.t, os.RemoveAll(path))
		s.copy(copied, path)
	}
}

func (s *snapshot) copy(from, to string) {
	s.t.Helper()
	must(s.t, os.MkdirAll(filepath.Dir(to), 0o755))
	if out, err := exec.Command("cp", "-a", from, to).CombinedOutput(); err != nil {
		s.t.Fatalf("cp: %v\n%s", err, out)
	}
}
