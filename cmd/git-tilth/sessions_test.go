package main

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/git-tilth/git-tilth/internal/session"
)

func TestSessionsRoot(t *testing.T) {
	for _, c := range []struct {
		name, configured, want string
		env                    map[string]string
	}{
		{"default", "", "/h/.tilth/sessions", nil},
		{"configured", "/c", "/c", nil},
		{"configured in home", "~/x", "/h/x", nil},
		{"home outranks config", "/c", "/t/sessions", map[string]string{"TILTH_HOME": "/t"}},
		{"sessions dir outranks all", "/c", "/s", map[string]string{"TILTH_HOME": "/t", "TILTH_SESSIONS_DIR": "/s"}},
		{"empty is unset", "", "/h/.tilth/sessions", map[string]string{"TILTH_HOME": "", "TILTH_SESSIONS_DIR": ""}},
	} {
		got := sessionsRoot(func(k string) string {
			if k == "HOME" {
				return "/h"
			}
			return c.env[k]
		}, c.configured)
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestContaining(t *testing.T) {
	base := t.TempDir()
	const id = "20260601-102030-abcdef"
	st := session.Store{Root: filepath.Join(base, "real")}
	s, err := st.Create(id)
	if err != nil {
		t.Fatal(err)
	}
	deep := filepath.Join(s.Workspace(), "a", "b")
	judged := s.Path(session.JudgeDir, "a")
	if err := errors.Join(os.MkdirAll(deep, 0o700), os.MkdirAll(judged, 0o700), os.MkdirAll(s.Path("ledger"), 0o700),
		os.Symlink(st.Root, filepath.Join(base, "link"))); err != nil {
		t.Fatal(err)
	}
	linked := session.Store{Root: filepath.Join(base, "link")}
	for dir, want := range map[string]bool{
		deep: true, s.Workspace(): true, filepath.Join(linked.Root, id, "workspace", "a"): true, judged: true,
		s.Dir: false, s.Path("ledger"): false, st.Root: false, base: false, "/": false,
		filepath.Join(base, "absent"): false,
	} {
		for _, store := range []session.Store{st, linked} {
			if got, ok := containing(store, dir); ok != want || ok && got.ID != id {
				t.Errorf("containing(%s) in %s: %v %v", dir, store.Root, got, ok)
			}
		}
	}
}
