package lifecycle

import (
	"os"
	"testing"
	"time"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/session"
)

// TestClearForksWhole: a fork, or a session that arrives, becomes whole between the look at its mark and its lock.
func TestClearForksWhole(t *testing.T) {
	root := t.TempDir()
	s, err := session.Store{Root: root}.Create("20260601-102030-abcdef")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.Path(session.ResetMarkFile), []byte("\n"+held.ForkMark+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	asked := false
	d := held.Deps{Git: gitx.New(os.Environ(), false, nil), Now: func() time.Time { // asked for on the way to the lock
		asked = true
		_ = os.Remove(s.Path(session.ResetMarkFile))
		return time.Now()
	}}
	clearForks(t.Context(), d, session.Store{Root: root}, "")
	if !asked || !held.Exists(s.Dir) {
		t.Errorf("asked %v, there %v", asked, held.Exists(s.Dir))
	}
}
