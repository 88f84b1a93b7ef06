package lifecycle

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/git-tilth/git-tilth/internal/session"
)

func TestKnowable(t *testing.T) {
	s := &session.Session{ID: testID, Dir: "/sessions/" + testID}
	if err := knowable(s, tasks("pending", "done")); err != nil {
		t.Error(err)
	}
	twice := append(tasks("pending"), tasks("done")...)
	for _, c := range []struct {
		tasks []session.Task
		says  string
	}{
		{nil, "no task"},
		{[]session.Task{{ID: "1"}}, `entry 1, "1"`},
		{twice, "T-001 twice"},
	} {
		if err := knowable(s, c.tasks); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v: %v, want %q", c.tasks, err, c.says)
		}
	}
}

// Two directories that are found in the worktree's place within a second each get a place of their own.
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
