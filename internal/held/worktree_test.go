package held

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Two directories at the worktree's path within a second get different new paths.
func TestAsideOf(t *testing.T) {
	workspace := filepath.Join(t.TempDir(), "workspace")
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, want := range []string{".found-20260102-030405", ".found-20260102-030405-2", ".found-20260102-030405-3"} {
		aside := asideOf(workspace, at)
		if aside != workspace+want {
			t.Errorf("%s, want ...%s", aside, want)
		}
		if err := os.Mkdir(aside, 0o700); err != nil {
			t.Fatal(err)
		}
	}
}
