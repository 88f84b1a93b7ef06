package gitx

import (
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// deepen creates n nested directories of a name at dir, with a file in the lowest.
func deepen(t *testing.T, dir, name string, n int) {
	t.Helper()
	at, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	must(t, err)
	for range n {
		must(t, unix.Mkdirat(at, name, 0o700))
		next, err := unix.Openat(at, name, unix.O_RDONLY|unix.O_DIRECTORY, 0)
		must(t, err)
		unix.Close(at)
		at = next
	}
	f, err := unix.Openat(at, "f", unix.O_CREAT|unix.O_WRONLY, 0o600)
	must(t, err)
	unix.Close(f)
	unix.Close(at)
}

// A worker can leave directories that are deeper than the path of a file can be long.
func TestCleanRemovesWhatIsTooDeepForGit(t *testing.T) {
	w := newWorld(t, "a.txt", "one\n", ".gitignore", "*.log\n")
	write(t, w.path, "x.log", "ignored\n", "d/x.log", "ignored\n", "b.txt", "b\n")
	long := strings.Repeat("d", 200)
	deepen(t, filepath.Join(w.path, "d"), long, 30)
	must(t, w.git.clean(ctx, w.wt(), nil))
	for name, there := range map[string]bool{"x.log": true, "d/x.log": true, "d/" + long: false, "b.txt": false} {
		if absent(filepath.Join(w.path, name)) == there {
			t.Errorf("%s is there: %v, want %v", name, !there, there)
		}
	}
}
