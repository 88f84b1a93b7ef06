package lifecycle

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/session"
)

// TestArriveTwice: another process creates the session at the same time.
func TestArriveTwice(t *testing.T) {
	repo, root := t.TempDir(), t.TempDir()
	for _, args := range [][]string{{"init", "-q", repo}, {"-C", repo, "-c", "user.name=x", "-c", "user.email=x@y",
		"commit", "-q", "--allow-empty", "-m", "x"}} {
		if out, err := exec.Command("git", args...).CombinedOutput(); err != nil {
			t.Fatalf("%s", out)
		}
	}
	const id = "20260601-102030-abcdef"
	make := func() {
		s, err := session.Store{Root: root}.Create(id)
		if err != nil {
			return // it exists already
		}
		if err := os.WriteFile(s.Path(session.ResetMarkFile), nil, 0o600); err != nil {
			t.Error(err)
		}
	}
	a := Import{Store: session.Store{Root: root}, ID: id,
		Location: gitx.Location{CommonDir: filepath.Join(repo, ".git")}}
	d := held.Deps{Git: gitx.New(os.Environ(), false, nil), Now: func() time.Time { make(); return time.Now() }}
	var busy *session.BusyError
	if _, err := a.Arrive(t.Context(), d); !errors.As(err, &busy) || busy.Session != id {
		t.Errorf("its directory: %v", err)
	}
	if out, err := exec.Command("git", "-C", repo, "branch", "session/"+id).CombinedOutput(); err != nil {
		t.Fatalf("%s", out)
	}
	if _, err := a.Arrive(t.Context(), d); !errors.As(err, &busy) {
		t.Errorf("its branch: %v", err)
	}
	if err := os.RemoveAll(filepath.Join(root, id)); err != nil {
		t.Fatal(err)
	}
	d.Now = time.Now
	if _, err := a.Arrive(t.Context(), d); !errors.As(err, new(*held.RefusedError)) {
		t.Errorf("somebody's branch: %v", err)
	}
	if left, err := os.ReadDir(root); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}
