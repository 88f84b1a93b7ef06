package fleet

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/git-tilth/git-tilth/internal/gitx"
	"github.com/git-tilth/git-tilth/internal/session"
)

// TestARecordIsReadOnce: the session commit of a grown or truncated record is the same with and without knowledge of
// the last one, and only new chunks are read.
func TestARecordIsReadOnce(t *testing.T) {
	dir := t.TempDir()
	git := func(args ...string) string {
		out, err := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=x", "-c", "user.email=x@y"},
			args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %s", args, out)
		}
		return strings.TrimSpace(string(out))
	}
	git("init", "-q")
	git("commit", "-q", "--allow-empty", "-m", "x")
	tip := git("rev-parse", "HEAD")
	scratch, err := openScratch(gitx.New(os.Environ(), false, nil), filepath.Join(dir, ".git"),
		filepath.Join(dir, "scratch"))
	if err != nil {
		t.Fatal(err)
	}
	w := &writer{s: &session.Session{Dir: dir}, scratch: scratch}
	made := func(text []byte, had []entry) (commit string, read int) {
		if err := os.WriteFile(filepath.Join(dir, session.RecordFile), text, 0o600); err != nil {
			t.Fatal(err)
		}
		var lines bytes.Buffer
		if err := w.addRecord(&lines, int64(len(text)), had); err != nil {
			t.Fatal(err)
		}
		commit, err := scratch.importCommit(t.Context(), state{Tip: tip, Files: tip}, "", lines.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		return commit, lines.Len()
	}
	var text []byte
	var had []entry
	for i, step := range []struct{ keep, add int }{
		{0, 0}, {0, 10}, {10, chunkSize - 10}, {chunkSize, 0}, {chunkSize, 3*chunkSize + 5}, {4*chunkSize + 5, 7},
		{4*chunkSize + 1, 2 * chunkSize}, {4*chunkSize - 3, 3 * chunkSize}, {2*chunkSize + 9, 5 * chunkSize}, {0, 99},
	} {
		text = append(text[:step.keep], bytes.Repeat([]byte{'a' + byte(i)}, step.add)...)
		got, _ := made(text, had)
		if want, _ := made(text, nil); got != want {
			t.Errorf("step %d: %s, want %s", i, got, want)
		}
		if had, err = scratch.entries(t.Context(), got, session.RecordFile); err != nil {
			t.Fatal(err)
		}
	}
	text = bytes.Repeat([]byte("x"), 3*chunkSize)
	before, _ := made(text, nil)
	if had, err = scratch.entries(t.Context(), before, session.RecordFile); err != nil {
		t.Fatal(err)
	}
	text[0] = 'y'
	if after, read := made(text, had); after != before || read > chunkSize {
		t.Error("the first chunk was read again")
	}
}
