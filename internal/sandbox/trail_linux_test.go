package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// A path that leads round in a circle has an end, and the links on its way are named once.
func TestTrailOfACircle(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"self": "self", "a": "b", "b": "a"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string][]string{"self": {"self"}, "a/x": {"a", "b"}} {
		var got []string
		for _, link := range (links{}).trail(filepath.Join(dir, path)) {
			rel, _ := filepath.Rel(dir, link)
			got = append(got, rel)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}
