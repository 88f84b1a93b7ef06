package proc

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// Deeper than there are descriptors, one level after the other is opened in vain.
func TestRemoveFlat(t *testing.T) {
	top := filepath.Join(t.TempDir(), "top")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.MkdirAll(filepath.Join(top, "a", "b", "c"), 0o700))
	must(os.WriteFile(filepath.Join(top, "e"), nil, 0o600))
	must(os.Symlink("/", filepath.Join(top, "a", "link")))
	at, err := unix.Open(top, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	must(err)
	for range 3000 {
		must(unix.Mkdirat(at, "d", 0o700))
		next, err := unix.Openat(at, "d", unix.O_RDONLY|unix.O_DIRECTORY, 0)
		must(err)
		unix.Close(at)
		at = next
	}
	unix.Close(at)
	must(removeFlat(top))
	if _, err := os.Lstat(top); !os.IsNotExist(err) {
		t.Errorf("it is still there: %v", err)
	}
}

// A command's directory for temporary files goes with a cache that a build tool has closed in it.
func TestTempDirWithAClosedCache(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	dir, remove, err := TempDir("run")
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
