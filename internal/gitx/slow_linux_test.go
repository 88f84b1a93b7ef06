package gitx

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Git may look up a pipe's name before the pipe is removed, and open it after that.
func TestUnblockBetweenLookupAndOpen(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, ".gitignore")
	must(t, unix.Mkfifo(pipe, 0o600))
	found, err := unix.Open(pipe, unix.O_PATH, 0)
	must(t, err)
	defer unix.Close(found)
	unblock(dir, true)
	equal(t, "there", exists(pipe), false)
	read := make(chan error, 1)
	go func() {
		f, err := os.Open(fmt.Sprintf("/proc/self/fd/%d", found))
		if err == nil {
			_, err = io.ReadAll(f)
			f.Close()
		}
		read <- err
	}()
	select {
	case err := <-read:
		must(t, err)
	case <-time.After(time.Minute):
		t.Fatal("it waits for a pipe that nobody can write to any more")
	}
}
