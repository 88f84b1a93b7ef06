package session

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/git-tilth/git-tilth/internal/record"
)

func TestLedger(t *testing.T) {
	s := newSession(t)
	if got, err := s.ReadLedger("T-001", 5); err != nil || got != nil {
		t.Errorf("a missing ledger: %v %v", got, err)
	}
	lines := ""
	for i := range 7 {
		lines += string(record.JSON(LedgerEntry{
			TS: "2026-06-01T10:20:30.456Z", Iter: int64(i + 1), DiffSummary: "1 file",
			Case: json.RawMessage(`{"summary":"s"}`), Verdict: json.RawMessage(`{"verdict":"reject"}`),
		})) + "\n"
	}
	must(t, os.MkdirAll(s.Path(LedgerDir), 0o700))
	write(t, s.Path(LedgerDir, "T-001.jsonl"), lines)
	got, err := s.ReadLedger("T-001", 3)
	if err != nil || len(got) != 3 || got[0].Iter != 5 || got[2].Iter != 7 || string(got[2].Verdict) != `{"verdict":"reject"}` {
		t.Errorf("%+v %v", got, err)
	}
	line := strings.SplitN(read(t, s.Path(LedgerDir, "T-001.jsonl")), "\n", 2)[0]
	if want := `{"ts":"2026-06-01T10:20:30.456Z","iter":1,"diff_summary":"1 file","case":{"summary":"s"},"verdict":{"verdict":"reject"}}`; line != want {
		t.Errorf("%s\nwant\n%s", line, want)
	}
	// Rubbish, entries with more members and a torn end.
	write(t, s.Path(LedgerDir, "T-002.jsonl"),
		"\n{not json}\n5\n{\"iter\": 2, \"diff_summary\": \"1 file\", \"x\": "+
			"1}\n{\"iter\":\"odd\"}\n{\"iter\":4}\n{\"iter\": 3")
	got, err = s.ReadLedger("T-002", 0)
	if err != nil || len(got) != 2 || got[0].Iter != 2 || got[1].Iter != 4 || got[1].Case != nil {
		t.Errorf("%+v %v", got, err)
	}
	for _, bad := range []string{"", ".", "..", "../x", "a/b", ".hidden", "x\x00", `a\b`} {
		if _, err := s.ReadLedger(bad, 1); err == nil {
			t.Errorf("task %q names a file", bad)
		}
		if _, _, err := s.OpenTranscript(record.RoleWorker, record.Scope{TaskID: bad}, testNow, nil); err == nil {
			t.Errorf("task %q names a file", bad)
		}
	}
}

func TestTranscript(t *testing.T) {
	s := newSession(t)
	add, shut, err := s.OpenTranscript(record.RoleWorker, record.Scope{TaskID: "T-001"}, testNow, nil)
	must(t, err)
	must(t, add(json.RawMessage(`{"role":"user","content":"one"}`)))
	must(t, shut())
	add, shut, err = s.OpenTranscript(record.RoleWorker, record.Scope{TaskID: "T-001", TraceID: "t"}, testNow, nil)
	must(t, err)
	messages := []string{`{"role":"user","content":"<b>&","n":1.50}`, `{"role":"assistant", "type":"context_reset", "reasoning_details":[{"x":null}]}`}
	for _, m := range messages {
		must(t, add(json.RawMessage(m)))
	}
	must(t, add(json.RawMessage("{\r\n  \"role\": \"tool\",\n  \"content\": \"a\\nb\"\n}\n")))
	for _, bad := range []string{"", "5", "[]", "{", `{"a":}`} {
		if err := add(json.RawMessage(bad)); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
	must(t, shut())
	got, err := s.ReadTranscript(record.RoleWorker, "T-001")
	if err != nil || len(got) != 3 || string(got[0]) != messages[0] || string(got[1]) != messages[1] || !sameJSON(got[2], []byte(`{"role":"tool","content":"a\nb"}`)) {
		t.Errorf("%s %v", got, err)
	}
	if lines := strings.Count(read(t, s.Path("conversation", "T-001.jsonl")), "\n"); lines != 6 {
		t.Errorf("%d lines", lines)
	}
	if got, err := s.ReadTranscript(record.RoleEvaluator, "T-001"); err != nil || got != nil {
		t.Errorf("%s %v", got, err)
	}

	add, shut, err = s.OpenTranscript(record.RoleInterview, record.Scope{}, testNow, nil)
	must(t, err)
	must(t, add(json.RawMessage(`{"role":"user"}`)))
	must(t, shut())
	if got := read(t, s.Path(InterviewFile)); got != "{\"role\":\"user\"}\n" {
		t.Error(got)
	}
}

func TestProgress(t *testing.T) {
	s := newSession(t)
	one, two, three := ProgressLine("T-001", "done", "a\ttitle\nof lines"),
		ProgressLine("T-002", "failed:iter_cap", "two"), ProgressLine("T-003", "done", "three")
	must(t, s.WriteProgress([]string{one, two}))
	if got, want := read(t,
		s.Path(ProgressFile)), "T-001\tdone\ta title of lines\nT-002\tfailed:iter_cap\ttwo\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	write(t, s.Path(ProgressFile), read(t, s.Path(ProgressFile))+"T-003\tdo")
	must(t, s.WriteProgress([]string{one, two, three}))
	if got, want := read(t, s.Path(ProgressFile)), one+"\n"+two+"\n"+three+"\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	must(t, s.WriteProgress(nil))
	if _, err := os.Lstat(s.Path(ProgressFile)); err == nil {
		t.Error("the file is there without a line")
	}
}

// TestWriteLedger writes a ledger from its record. A ledger that began in another record keeps its entries.
func TestWriteLedger(t *testing.T) {
	s := newSession(t)
	r, err := s.OpenRecord(record.Options{})
	must(t, err)
	for _, verdict := range []string{"reject", "accept"} {
		must(t, r.Append(&record.EvaluatorVerdict{Scope: record.Scope{TaskID: "T-001"}, Verdict: verdict}))
	}
	must(t, r.Close())
	state, err := s.State()
	must(t, err)
	path, task := s.Path(LedgerDir, "T-001.jsonl"), state.Tasks["T-001"]
	written := func(task record.Task, want bool) {
		t.Helper()
		if changed, err := s.WriteLedger("T-001", task); err != nil || changed != want {
			t.Fatalf("%v %v, want %v", changed, err, want)
		}
	}
	written(task, true)
	whole := read(t, path)
	if n := strings.Count(whole, "\n"); n != 2 {
		t.Fatalf("%d lines: %s", n, whole)
	}
	written(task, false)
	for _, damaged := range []string{"", whole[:len(whole)-1], whole + "{}\n", whole + "no entry\n"} {
		write(t, path, damaged)
		written(task, true)
		if got := read(t, path); got != whole {
			t.Errorf("%q becomes %q", damaged, got)
		}
	}
	theirs := `{"ts":"t","iter":1,"diff_summary":"","case":{},"verdict":{"verdict":"theirs"}}` + "\n"
	task.Shared = true
	write(t, path, theirs)
	written(task, true)
	if got := read(t, path); got != theirs+whole {
		t.Errorf("the inherited ledger: %q", got)
	}
	written(task, false)
	written(record.Task{Shared: true}, false)
	written(record.Task{}, true)
	if _, err := os.Lstat(path); err == nil {
		t.Error("a ledger without an entry is there")
	}
}
