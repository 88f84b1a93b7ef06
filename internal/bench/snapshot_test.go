//go:build bench

package bench

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// snapshot is a copy of directories, to be put back at the same paths. One file of each may be left out that is
// only appended to: it is cut back to its length.
type snapshot struct {
	t    testing.TB
	dirs map[string]string // original: copy
	logs map[string]int64  // append-only file: length
}

// take copies directories. logs are files in them that are too large to be copied each time.
func take(t testing.TB, logs []string, dirs ...string) *snapshot {
	t.Helper()
	s := &snapshot{t: t, dirs: map[string]string{}, logs: map[string]int64{}}
	for _, log := range logs {
		fi, err := os.Stat(log)
		must(t, err)
		s.logs[log] = fi.Size()
		must(t, os.Rename(log, s.aside(log)))
	}
	for _, dir := range dirs {
		s.dirs[dir] = filepath.Join(t.TempDir(), "copy")
		s.copy(dir, s.dirs[dir])
	}
	for log := range s.logs {
		must(t, os.Rename(s.aside(log), log))
	}
	return s
}

// aside is where a log waits while the directory around it is replaced: outside of it, on the same file system.
func (s *snapshot) aside(log string) string {
	return filepath.Join(filepath.Dir(filepath.Dir(filepath.Dir(log))), "aside-"+filepath.Base(log))
}

// restore puts everything back as it was.
func (s *snapshot) restore() {
	s.t.Helper()
	for log, n := range s.logs {
		if _, err := os.Stat(log); err != nil {
			s.t.Fatal(err)
		}
		must(s.t, os.Truncate(log, n))
		must(s.t, os.Rename(log, s.aside(log)))
	}
	for dir, copied := range s.dirs {
		must(s.t, os.RemoveAll(dir))
		s.copy(copied, dir)
	}
	for log := range s.logs {
		must(s.t, os.Rename(s.aside(log), log))
	}
}

func (s *snapshot) copy(from, to string) {
	s.t.Helper()
	must(s.t, os.MkdirAll(filepath.Dir(to), 0o755))
	if out, err := exec.Command("cp", "-a", from, to).CombinedOutput(); err != nil {
		s.t.Fatalf("cp: %v\n%s", err, out)
	}
}
