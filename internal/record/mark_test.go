package record

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A mark is the length and hash of the file, also with another process's lines, and at every call.
func TestMarkIsTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "events.jsonl")
	for run := range 3 {
		r, err := Open(path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		for n := range 50 {
			if err := r.Append(&TaskDone{Scope: Scope{TaskID: "T-001"}, Summary: "done"}); err != nil {
				t.Fatal(err)
			}
			if n%7 != run {
				continue
			}
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			want := sha256.Sum256(data)
			size, sum, err := r.Mark()
			if err != nil || size != int64(len(data)) || sum != hex.EncodeToString(want[:]) {
				t.Fatalf("run %d, event %d: %d %s %v, want %d %x", run, n, size, sum, err, len(data), want)
			}
		}
		r.Close()
	}
}

// A record that the user edits meanwhile, in place or by replacing it, is continued in its new form.
func TestAPersonEditsTheRecord(t *testing.T) {
	for name, edit := range map[string]func(path string, old []byte) error{
		"more": func(path string, old []byte) error {
			return os.WriteFile(path, append(old, "{\"type\":\"x\",\"payload\":{}}\n"...), 0o600)
		},
		"less": func(path string, old []byte) error { return os.Truncate(path, int64(len(old)/2)) },
		"another file": func(path string, old []byte) error {
			if err := os.WriteFile(path+".new", old[:len(old)/2], 0o600); err != nil {
				return err
			}
			return os.Rename(path+".new", path)
		},
		"gone": func(path string, _ []byte) error { return os.Remove(path) },
	} {
		path := filepath.Join(t.TempDir(), "events.jsonl")
		r, err := Open(path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		append := func(summary string) int64 {
			t.Helper()
			if err := r.Append(&TaskDone{Summary: summary}); err != nil {
				t.Fatal(name, err)
			}
			return r.Size()
		}
		append("one")
		append("two")
		if _, _, err := r.Mark(); err != nil {
			t.Fatal(err)
		}
		old, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := edit(path, old); err != nil {
			t.Fatal(err)
		}
		end := append("three")
		data, err := os.ReadFile(path)
		if err != nil || int64(len(data)) != end || !strings.Contains(string(data), "three") {
			t.Errorf("%s: %d bytes, it says %d: %s (%v)", name, len(data), end, data, err)
		}
		want := sha256.Sum256(data)
		if size, sum, err := r.Mark(); err != nil || size != end || sum != hex.EncodeToString(want[:]) {
			t.Errorf("%s: the mark is %d %s %v", name, size, sum, err)
		}
	}
}
