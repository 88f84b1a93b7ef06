package lifecycle

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/session"
)

// TestClearForksWhole: a fork, or a session that arrives, becomes whole between the look at its mark and its lock.
func TestClearForksWhole(t *testing.T) {
	root := t.TempDir()
	s := madeSession(t, root)
	if err := os.WriteFile(s.Path(session.ResetMarkFile), []byte("\n\n"+forkMark+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	asked := false
	d := Deps{Git: gitx.New(os.Environ(), false, nil), Now: func() time.Time { // asked for on the way to the lock
		asked = true
		_ = os.Remove(s.Path(session.ResetMarkFile))
		return time.Now()
	}}
	clearForks(t.Context(), d, session.Store{Root: root}, "")
	if !asked || !exists(s.Dir) {
		t.Errorf("asked %v, there %v", asked, exists(s.Dir))
	}
}

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
	if err := found[0].Mend(t.Context()); err != nil || exists(left) || !exists(made) {
		t.Errorf("%v, left %v, made %v", err, exists(left), exists(made))
	}
}

// TestLockRootIsGivenUp: a worker can lock the sessions root, and keep it.
func TestLockRootIsGivenUp(t *testing.T) {
	root := t.TempDir()
	f, err := os.Open(root)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	defer func(was time.Duration) { rootPatience = was }(rootPatience)
	rootPatience = 0
	if _, err := lockRoot(root); err == nil {
		t.Error("it is locked twice")
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_UN); err != nil {
		t.Fatal(err)
	}
	release, err := lockRoot(root)
	if err != nil {
		t.Fatal(err)
	}
	release()
}
