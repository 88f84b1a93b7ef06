package proc

import (
	"os"
	"path/filepath"
	"testing"
)

// A command's directory for temporary files goes with a cache that a build tool has closed in it.
func TestTempDirWithAClosedCache(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	dir, remove, err := TempDir()
	if err != nil {
		t.Fatal(err)
	}
	cache := filepath.Join(dir, "mod", "pkg")
	if err := os.MkdirAll(filepath.Join(cache, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(cache, 0o500); err != nil {
		t.Fatal(err)
	}
	remove()
	if _, err := os.Lstat(dir); !os.IsNotExist(err) {
		t.Errorf("it is still there: %v", err)
	}
}
