package sandbox

import (
	"os"
	"path/filepath"
	"testing"
)

// A file is closed if a hidden directory is nearer to it than an open one.
func TestCloses(t *testing.T) {
	home := t.TempDir()
	for _, name := range []string{"tools/validate", "open/x", "open/shut/x"} {
		path := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	in := func(name string) string { return filepath.Join(home, name) }
	b := &Box{Hide: []string{home, in("open/shut")}, Read: []string{in("open")}, Write: []string{in("tools/out")}}
	for name, want := range map[string]bool{"tools/validate": true, "tools": true, "open/x": false,
		"open/shut/x": true, "tools/none": false, "": false} {
		if got := b.Closes(in(name)); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if (*Box)(nil).Closes(in("tools/validate")) || b.Closes("tools/validate") {
		t.Error("without a box, or by a relative path")
	}
}
