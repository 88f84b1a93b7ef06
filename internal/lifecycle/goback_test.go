package lifecycle

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/held"
	"github.com/git-tilth/git-tilth/internal/session"
)

// TestNothingIsRemovedWithoutASnapshot: a rewind that an earlier version began has its files elsewhere.
func TestNothingIsRemovedWithoutASnapshot(t *testing.T) {
	s := &session.Session{ID: "20260601-102030-abcdef", Dir: t.TempDir()}
	loose := filepath.Join(s.Workspace(), "mine")
	if err := errors.Join(os.Mkdir(s.Workspace(), 0o700), os.WriteFile(loose, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	h := &held.Handle{Deps: held.Deps{Git: gitx.New(os.Environ(), false, nil)}, S: s}
	j := &journal{Number: 1, To: "T-001", Before: condition{Worktree: held.Snapshot{Loose: [][]byte{[]byte("mine")}}}}
	if err := applyRewind(t.Context(), h, j); !errors.As(err, new(*held.RefusedError)) || !held.Exists(loose) {
		t.Errorf("%v, file there: %v", err, held.Exists(loose))
	}
}
