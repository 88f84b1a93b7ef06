package proc

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// A command's temporary directory is removed even with a read-only cache of a build tool in it.
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

// A process that can read a temporary directory's parent, as another lane reads the repository's objects, may lock the
// directory first. Nothing waits for that lock.
func TestTempDirThatAnotherProcessLocksFirst(t *testing.T) {
	parent := t.TempDir()
	lost := make(chan bool, 1)
	go func() {
		for {
			entries, _ := os.ReadDir(parent)
			for _, e := range entries {
				dir := filepath.Join(parent, e.Name())
				lock, err := lockDir(dir, unix.LOCK_EX|unix.LOCK_NB)
				if err != nil {
					continue
				}
				for there := err; there == nil; _, there = os.Lstat(dir) {
					runtime.Gosched()
				}
				lock.Close()
				lost <- true
				return
			}
		}
	}()
	for first := false; !first; {
		_, remove, err := TempDirIn(parent, "x-")
		if err != nil {
			t.Fatal(err)
		}
		remove()
		select {
		case first = <-lost:
		default:
		}
	}
}
