package gitx

import (
	"bytes"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestObjectsUnderAnotherName lets a name lead to the object of another one, which was there before the session.
func TestObjectsUnderAnotherName(t *testing.T) {
	w := newWorld(t, "a", "good")
	objects := filepath.Join(w.common, "objects")
	good := strings.TrimSpace(w.sh(w.repo, "rev-parse", "HEAD:a"))
	for name, plant := range map[string]func(evil string) error{
		"file": func(evil string) error {
			must(t, os.MkdirAll(filepath.Join(objects, evil[:2]), 0o777))
			return os.Symlink(filepath.Join(objects, good[:2], good[2:]), filepath.Join(objects, evil[:2], evil[2:]))
		},
		"directory": func(evil string) error {
			return os.Symlink(filepath.Join(objects, good[:2]), filepath.Join(objects, evil[:2]))
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := w.git.newObjects(w.common, time.Now().Add(time.Hour)) // so that no file is new
			must(t, o.check(ctx))
			evil := "ff" + good[2:]
			must(t, plant(evil))
			t.Cleanup(func() { os.RemoveAll(filepath.Join(objects, evil[:2])) })
			if err := o.check(ctx); err == nil || !strings.Contains(err.Error(), evil) {
				t.Errorf("the object %s passed: %v", evil, err)
			}
		})
	}
}

// forgePack packs everything and lets the index name the blob of a by an id that is not its own. The tree has the
// forged one.
func forgePack(t *testing.T, w *world) (id, tree string) {
	t.Helper()
	good := strings.TrimSpace(w.sh(w.repo, "rev-parse", "HEAD:a"))
	w.sh(w.repo, "repack", "-adq")
	found, err := filepath.Glob(filepath.Join(w.common, "objects", "pack", "*.idx"))
	must(t, err)
	equal(t, "packs", len(found), 1)
	index, err := os.ReadFile(found[0])
	must(t, err)
	name, err := hex.DecodeString(good)
	must(t, err)
	at := bytes.Index(index, name)
	index[at+len(name)-1] ^= 1
	must(t, os.Chmod(found[0], 0o600))
	must(t, os.WriteFile(found[0], index, 0o600))
	id = hex.EncodeToString(index[at : at+len(name)])
	cmd := exec.Command("git", "-C", w.repo, "mktree", "--missing")
	cmd.Stdin = strings.NewReader("100644 blob " + id + "\ta\n")
	out, err := cmd.Output()
	must(t, err)
	return id, strings.TrimSpace(string(out))
}

// TestObjectsOfAForgedPack: a small pack is read whole, of a large one what is judged.
func TestObjectsOfAForgedPack(t *testing.T) {
	w := newWorld(t, "a", "good")
	id, tree := forgePack(t, w)
	if out, err := w.try(w.repo, "cat-file", "-p", tree+":a"); err != nil || out != "good" {
		t.Fatalf("git itself reads %q, %v", out, err)
	}
	whole := w.git.newObjects(w.common, time.Time{})
	if err := whole.check(ctx); err == nil || !strings.Contains(err.Error(), ".idx") {
		t.Errorf("read whole: %v", err)
	}
	part := w.git.newObjects(w.common, time.Time{})
	part.largest = 0
	must(t, part.check(ctx, strings.TrimSpace(w.sh(w.repo, "mktree"))))
	for range 2 { // the pack is no news the second time
		if err := part.check(ctx, tree); err == nil || !strings.Contains(err.Error(), id) {
			t.Errorf("read in part: %v", err)
		}
	}
}

// TestObjectsThatAreWritten: what was there before is not read, what is new is read once, and what is wrong is named.
func TestObjectsThatAreWritten(t *testing.T) {
	w := newWorld(t, "a", "good")
	o := w.git.newObjects(w.common, time.Time{})
	must(t, o.check(ctx))
	if len(o.checked) == 0 {
		t.Error("no object was looked at")
	}
	id := strings.TrimSpace(w.sh(w.repo, "rev-parse", "HEAD:a"))
	file := filepath.Join(w.common, "objects", id[:2], id[2:])
	evil := strings.TrimSpace(w.sh(w.repo, "rev-parse", "HEAD"))
	content, err := os.ReadFile(filepath.Join(w.common, "objects", evil[:2], evil[2:]))
	must(t, err)
	must(t, os.Chmod(file, 0o600))
	must(t, os.WriteFile(file, content, 0o600))
	if err := o.check(ctx); err == nil || !strings.Contains(err.Error(), id) {
		t.Errorf("written over: %v", err)
	}
	if err := w.git.newObjects(w.common, time.Now().Add(time.Hour)).check(ctx); err != nil {
		t.Errorf("of before the session: %v", err)
	}
}

// TestLogOfAForgedCommitGraph has the graph say of a commit that its tree is another one, which a verdict may name.
func TestLogOfAForgedCommitGraph(t *testing.T) {
	w := newWorld(t, "a", "good")
	good := strings.TrimSpace(w.sh(w.repo, "rev-parse", "HEAD^{tree}"))
	write(t, w.repo, "a", "evil")
	w.sh(w.repo, "commit", "-qam", "evil")
	tip := strings.TrimSpace(w.sh(w.repo, "rev-parse", "HEAD"))
	evil := strings.TrimSpace(w.sh(w.repo, "rev-parse", "HEAD^{tree}"))
	w.sh(w.repo, "commit-graph", "write", "--reachable")
	file := filepath.Join(w.common, "objects", "info", "commit-graph")
	graph, err := os.ReadFile(file)
	must(t, err)
	was, err := hex.DecodeString(evil)
	must(t, err)
	is, err := hex.DecodeString(good)
	must(t, err)
	must(t, os.Chmod(file, 0o600))
	must(t, os.WriteFile(file, bytes.Replace(graph, was, is, 1), 0o600))
	equal(t, "the forged tree", strings.TrimSpace(w.sh(w.repo, "log", "-1", "--format=%T")), good)

	commits, err := w.git.Log(ctx, w.common, tip, "", 1)
	must(t, err)
	equal(t, "the tree", commits[0].Tree, evil)
}

// TestObjectsBehindPipes: whoever opens a pipe waits for a writer, who may never come.
func TestObjectsBehindPipes(t *testing.T) {
	w := newWorld(t, "a", "good")
	objects := filepath.Join(w.common, "objects")
	must(t, os.RemoveAll(filepath.Join(objects, "pack")))
	for _, pipe := range []string{"zz", "pack"} {
		must(t, unix.Mkfifo(filepath.Join(objects, pipe), 0o600))
	}
	must(t, w.git.newObjects(w.common, time.Time{}).check(ctx))
}
