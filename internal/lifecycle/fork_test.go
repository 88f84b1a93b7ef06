package lifecycle

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/session"
)

// TestClearForksKilled: what a kill has left goes, and what is being made stays.
func TestClearForksKilled(t *testing.T) {
	root := t.TempDir()
	left, made := filepath.Join(root, session.DraftPrefix+"20260601-102030-aaaaaa"), filepath.Join(root,
		session.DraftPrefix+"20260601-102030-bbbbbb")
	for _, dir := range []string{left, made} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	unlock, err := (&session.Session{ID: "20260601-102030-bbbbbb", Dir: made}).Lock(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	found := HalfForks(session.Store{Root: root})
	if len(found) != 1 {
		t.Fatalf("%v", found)
	}
	if err := found[0].Mend(t.Context()); err != nil || held.Exists(left) || !held.Exists(made) {
		t.Errorf("%v, left %v, made %v", err, held.Exists(left), held.Exists(made))
	}
}
