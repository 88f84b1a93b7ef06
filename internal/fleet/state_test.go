package fleet

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/session"
)

// TestARecordIsReadOnce: from a record that has grown, or has a new end after a cut, a writer makes the same as a fresh
// writer, without reading its beginning again.
func TestARecordIsReadOnce(t *testing.T) {
	dir := t.TempDir()
	if out, err := exec.Command("git", "init", "-q", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	path := filepath.Join(dir, session.RecordFile)
	tree := func(w *writer) string {
		root := node{}
		size := int64(-1)
		if fi, err := os.Stat(path); err == nil {
			size = fi.Size()
		}
		if err := w.add(root, session.RecordFile, path, size); err != nil {
			t.Fatal(err)
		}
		id, err := w.tree(root)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	open := func(name string) *writer {
		git := gitx.New(os.Environ(), false, nil)
		scratch, err := openScratch(git, filepath.Join(dir, ".git"), filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return &writer{scratch: scratch}
	}
	one := open("one")
	text := []byte{}
	for i, step := range []struct{ keep, add int }{
		{0, 0}, {0, 10}, {10, chunkSize - 10}, {chunkSize, 0}, {chunkSize, 3*chunkSize + 5}, {4*chunkSize + 5, 7},
		{4*chunkSize + 1, 2 * chunkSize}, {4*chunkSize - 3, 3 * chunkSize}, {2*chunkSize + 9, 5 * chunkSize}, {0, 99},
	} {
		text = append(text[:step.keep], bytes.Repeat([]byte{'a' + byte(i)}, step.add)...)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if got, want := tree(one), tree(open("other")); got != want {
			t.Errorf("step %d: %s, want %s", i, got, want)
		}
		if len(one.chunks) != len(text)/chunkSize {
			t.Errorf("step %d: %d chunks are known of %d bytes", i, len(one.chunks), len(text))
		}
	}
	// Known chunks are not read again.
	text = bytes.Repeat([]byte("x"), 3*chunkSize)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	before := tree(one)
	text[0] = 'y'
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if after := tree(one); after != before {
		t.Error("the first chunk was read again")
	}
}
