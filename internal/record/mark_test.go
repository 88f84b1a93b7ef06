package record

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"
)

// A mark is the length and hash of the file, however much of it another process wrote, and however often it is asked
// for.
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

// What somebody else wrote into the record is not marked.
func TestMarkOfARecordThatSomebodyChanged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "events.jsonl")
	r, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := r.Append(&TaskDone{Summary: "done"}); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(`{"ts":"","type":"evaluator_verdict","payload":{}}` + "\n"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.Mark(); err == nil {
		t.Error("it was marked")
	}
}
