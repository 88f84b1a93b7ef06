package session

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestNewID(t *testing.T) {
	zone := time.FixedZone("", 5*3600)
	a, b := NewID(testNow.In(zone)), NewID(testNow)
	if !ValidID(a) || !ValidID(b) || !strings.HasPrefix(a, "20260601-102030-") {
		t.Errorf("ids %q, %q", a, b)
	}
	if at, ok := IDTime(a); !ok || !at.Equal(testNow.Truncate(time.Second)) {
		t.Errorf("time of %s: %v %v", a, at, ok)
	}
}

func TestValidID(t *testing.T) {
	for id, want := range map[string]bool{
		testID: true, "20260601-102030-012345": true, "99999999-999999-ffffff": true,
		"": false, ".": false, "..": false, "20260601-102030-ABCDEF": false, "20260601-102030-abcdeg": false,
		"20260601-102030-abcdef0": false, "20260601-102030-abcde": false, "20260601_102030-abcdef": false,
		"2026060a-102030-abcdef": false, "20260601-10203 -abcdef": false, "../60601-102030-abcdef": false,
	} {
		if ValidID(id) != want {
			t.Errorf("ValidID(%q) = %v", id, !want)
		}
	}
}

func TestStoreListsOnlySessions(t *testing.T) {
	st := Store{Root: t.TempDir()}
	ids := []string{"20260601-102030-aaaaaa", "20260602-102030-aaaaab", "20250602-102030-bbbbbb"}
	for _, id := range ids {
		if _, err := st.Create(id); err != nil {
			t.Fatal(err)
		}
	}
	must(t, os.Mkdir(filepath.Join(st.Root, "notes"), 0o700))
	write(t, filepath.Join(st.Root, "20260603-102030-cccccc"), "a file")
	must(t, os.Symlink(filepath.Join(st.Root, ids[0]), filepath.Join(st.Root, "20260604-102030-dddddd")))
	got, err := st.IDs()
	if want := []string{ids[1], ids[0], ids[2]}; err != nil || !slices.Equal(got, want) {
		t.Errorf("IDs: %v %v, want %v", got, err, want)
	}
	if info, err := os.Stat(filepath.Join(st.Root, ids[0])); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("mode %v %v", info.Mode(), err)
	}
	if _, err := st.Create(ids[0]); err == nil {
		t.Error("a session was made twice")
	}
	if none, err := (Store{Root: filepath.Join(st.Root, "absent")}).IDs(); err != nil || len(none) != 0 {
		t.Errorf("a missing root: %v %v", none, err)
	}
}

func TestFind(t *testing.T) {
	st := Store{Root: t.TempDir()}
	one, two := "20260601-102030-aaaaaa", "20260602-102030-aaaaab"
	for _, id := range []string{one, two} {
		if _, err := st.Create(id); err != nil {
			t.Fatal(err)
		}
	}
	link := "20260604-102030-dddddd"
	must(t, os.Symlink(filepath.Join(st.Root, one), filepath.Join(st.Root, link)))
	write(t, filepath.Join(st.Root, "20260605-102030-eeeeee"), "a file")
	must(t, os.Mkdir(filepath.Join(st.Root, "beef"), 0o700))

	for part, want := range map[string]string{one: one, "aaaaab": two, "0601-": one, "20260602": two} {
		if s, err := st.Find(part); err != nil || s.ID != want || s.Dir != filepath.Join(st.Root, want) {
			t.Errorf("Find(%q): %v %v", part, s, err)
		}
	}
	for _, part := range []string{
		"", ".", "..", "../" + one, "/", st.Root, filepath.Join(st.Root, one), one + "/", one + "/workspace",
		"./" + one, one + "\x00",
		"aaaaa", "102030", "aaa", "beef", "ffff", "T-001", strings.ToUpper(one), link, "dddddd",
		"20260605-102030-eeeeee", "99999999-999999-999999",
	} {
		s, err := st.Find(part)
		if refused := (&RefusedError{}); s != nil || !errors.As(err, &refused) {
			t.Errorf("Find(%q): %v, %v; want it refused", part, s, err)
		}
	}
	_, err := st.Find("aaaaa")
	if !strings.Contains(err.Error(), one) || !strings.Contains(err.Error(), two) {
		t.Errorf("an ambiguous part does not name what it could mean: %v", err)
	}
}

// Two sessions of one second sort by time, and differ even if they begin at the same instant.
func TestIDsOfOneSecondSortByTime(t *testing.T) {
	begin := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	last := ""
	for ms := range 1000 {
		id := NewID(begin.Add(time.Duration(ms) * time.Millisecond))
		if !ValidID(id) || id <= last {
			t.Fatalf("%s after %s", id, last)
		}
		last = id
	}
	same := map[string]bool{}
	for range 8 {
		same[NewID(begin)] = true
	}
	if len(same) < 2 {
		t.Errorf("always %v", same)
	}
}
