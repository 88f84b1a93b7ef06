package lifecycle

import (
	"strings"
	"testing"

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
