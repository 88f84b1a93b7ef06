package held

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// treeOf lists everything below a directory with modes, times of files, and contents.
func treeOf(t *testing.T, dir string) string {
	t.Helper()
	var out strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		fi, err := d.Info()
		rel, _ := filepath.Rel(dir, path)
		content, _ := os.Readlink(path)
		if fi.Mode().IsRegular() {
			data, _ := os.ReadFile(path)
			content = string(data) + fi.ModTime().UTC().String()
		}
		fmt.Fprintf(&out, "%q %s %q\n", rel, fi.Mode(), content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestArchive brings files of all kinds back, also over other files, and twice. Links lead nowhere else.
func TestArchive(t *testing.T) {
	top := t.TempDir()
	dir, to := filepath.Join(top, "dir"), filepath.Join(top, "state.tar")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	modes := map[string]os.FileMode{"a/one": 0o640, "a/b/\xff\nodd": 0o755, "closed/in": 0o600, "top": 0o400}
	for name, mode := range modes {
		path := filepath.Join(dir, name)
		must(os.MkdirAll(filepath.Dir(path), 0o755))
		must(os.WriteFile(path, []byte(name), 0o600))
		must(os.Chmod(path, mode))
		at := time.Date(2026, 1, 2, 3, 4, 5, 678_000_000, time.UTC)
		must(os.Chtimes(path, at, at))
	}
	must(os.MkdirAll(filepath.Join(dir, "a/empty"), 0o700))
	must(os.Symlink("../../elsewhere", filepath.Join(dir, "a/link")))
	must(os.Chmod(filepath.Join(dir, "closed"), 0o500))
	before := treeOf(t, dir)
	paths := []string{"a", "closed", "top", "gone", "top/below"}
	must(writeArchive(dir, paths, to))
	if now := treeOf(t, dir); now != before {
		t.Fatalf("writing changed\n%s\nto\n%s", before, now)
	}
	must(os.WriteFile(filepath.Join(dir, "a/one"), []byte("other"), 0o600))
	must(os.Remove(filepath.Join(dir, "a/link")))
	must(os.MkdirAll(filepath.Join(dir, "a/link/x"), 0o755))
	root, err := os.OpenRoot(dir)
	must(err)
	defer root.Close()
	must(removeIn(root, "closed/in"))
	must(removeIn(root, "top"))
	must(removeIn(root, "top/below"))
	for range 2 {
		must(extractArchive(dir, to))
		if now := treeOf(t, dir); now != before {
			t.Errorf("the archive has\n%s\nwant\n%s", now, before)
		}
	}
	must(os.Symlink(top, filepath.Join(dir, "out")))
	if err := removeIn(root, "out/state.tar"); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a link leads out: %v", err)
	}
	if err := removeIn(root, "../state.tar"); err == nil {
		t.Error("a path leads out")
	}
}
