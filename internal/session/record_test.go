package session

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/record"
)

// The test binary plays the child processes that some tests need: see the cases.
func TestMain(m *testing.M) {
	switch os.Getenv("SESSION_TEST_CHILD") {
	case "":
		os.Exit(m.Run())
	case "full disk":
		childFullDisk(os.Getenv("SESSION_TEST_DIR"))
	case "append for ever":
		childAppends(os.Getenv("SESSION_TEST_DIR"))
	case "hold the lock":
		childHolds(os.Getenv("SESSION_TEST_DIR"))
	}
}

func child(t *testing.T, what, dir string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "SESSION_TEST_CHILD="+what, "SESSION_TEST_DIR="+dir)
	cmd.Stderr = os.Stderr
	return cmd
}

func childSession(dir string) *Session { return &Session{ID: testID, Dir: dir} }

func fail(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
	os.Exit(1)
}

func TestAppend(t *testing.T) {
	s := newSession(t)
	var seen []string
	r := openRecord(t, s, record.Options{Sink: func(l record.Line) {
		seen = append(seen, string(l.Raw))
		if got := record.Parse(l.Raw); got.TS != l.TS || got.Type != l.Type || !bytes.Equal(got.Payload, l.Payload) {
			t.Errorf("the sink got %+v", l)
		}
	}})
	must(t, r.Append(event("tool_call", p{"tool": "grep", "args": "<a> & \u2028 \xff\n"})))
	must(t, r.Append(&record.Stop{Reason: "all_done"}))
	must(t, r.Append(event("task_done", p{})))
	must(t, r.Append(&record.Unknown{Type: "x", Payload: json.RawMessage("{\n\"a\": 1}")}))
	want := `{"ts":"2026-06-01T10:20:30.456Z","type":"tool_call","payload":{"args":"<a> & \u2028 ` + "\uFFFD" + `\n","tool":"grep"}}
{"ts":"2026-06-01T10:20:30.456Z","type":"stop","payload":{"reason":"all_done"}}
{"ts":"2026-06-01T10:20:30.456Z","type":"task_done","payload":{}}
{"ts":"2026-06-01T10:20:30.456Z","type":"x","payload":{"a":1}}
`
	got := strings.ReplaceAll(read(t, s.Path(RecordFile)), `\ufffd`, "\uFFFD")
	if got != want {
		t.Errorf("the record is\n%s\nwant\n%s", got, want)
	}
	if joined := strings.ReplaceAll(strings.Join(seen, "\n")+"\n", `\ufffd`, "\uFFFD"); joined != want {
		t.Errorf("the sink saw\n%s", joined)
	}
	for _, bad := range []string{"5", `"x"`, "[1]", "{", ""} {
		if err := r.Append(&record.Unknown{Type: "x", Payload: json.RawMessage(bad)}); err == nil {
			t.Errorf("payload %s was taken", bad)
		}
	}
	if int64(len(read(t, s.Path(RecordFile)))) != r.Size() {
		t.Error("a refused event left something behind")
	}
	if info, err := os.Stat(s.Path(RecordFile)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
	must(t, r.Close())
	if err := r.Append(event("x", nil)); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

func TestAppendFromManyGoroutines(t *testing.T) {
	s := newSession(t)
	r := openRecord(t, s, record.Options{})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 50 {
				if err := r.Append(event("tool_result",
					p{"who": i, "n": j, "text": strings.Repeat("x", 3000)})); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	lines, _, skipped := scanned(t, s.Path(RecordFile))
	if len(lines) != 400 || skipped != 0 {
		t.Errorf("%d lines, %d skipped", len(lines), skipped)
	}
}

func TestOpenRecordRepairs(t *testing.T) {
	const whole = `{"ts":"a","type":"x","payload":{}}`
	for name, c := range map[string]struct {
		text, kept string
		cut        float64
		logged     bool
	}{
		"nothing there":         {"", "", 0, false},
		"whole":                 {whole + "\n", whole + "\n", 0, false},
		"torn":                  {whole + "\n" + `{"ts":"b","ty`, whole + "\n", 13, true},
		"only a torn line":      {`{"ts":`, "", 6, true},
		"whole, no newline":     {whole + "\n" + whole, whole + "\n" + whole + "\n", 0, true},
		"no object, no newline": {whole + "\n5", whole + "\n", 1, true},
		"zeros of a lost write": {whole + "\n\x00\x00\x00\x00", whole + "\n", 4, true},
		"rubbish lines stay":    {"5\nrubbish\n", "5\nrubbish\n", 0, false},
		"a long torn line":      {whole + "\n{" + strings.Repeat("x", 3*(8<<10)), whole + "\n", 3*(8<<10) + 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSession(t)
			write(t, s.Path(RecordFile), c.text)
			r := openRecord(t, s, record.Options{})
			must(t, r.Append(event("next", nil)))
			rest, ok := strings.CutPrefix(read(t, s.Path(RecordFile)), c.kept)
			if !ok {
				t.Fatalf("not kept:\n%s", rest)
			}
			lines := strings.Split(strings.TrimSuffix(rest, "\n"), "\n")
			if !c.logged {
				if len(lines) != 1 || !strings.Contains(lines[0], `"next"`) {
					t.Errorf("%q", lines)
				}
				return
			}
			ev := record.Parse([]byte(lines[0]))
			var payload map[string]any
			must(t, json.Unmarshal(ev.Payload, &payload))
			if len(lines) != 2 || ev.Type != "log_repaired" || payload["cut_bytes"] != c.cut || payload["why"] == "" ||
				payload["file"] != RecordFile {
				t.Errorf("%q", lines)
			}
		})
	}
}

func TestOpenRecordRepairsTheOtherLogs(t *testing.T) {
	s := newSession(t)
	write(t, s.Path(LedgerDir, "T-001.jsonl"), "{}\n{\"ts")
	write(t, s.Path(ConversationDir, "T-001.evaluator.jsonl"), "{}")
	write(t, s.Path(ConversationDir, "T-002.jsonl"), "{}\n")
	write(t, s.Path(InterviewFile), "{}\n[")
	openRecord(t, s, record.Options{})
	var files []string
	_, _, err := jsonl.Scan(s.Path(RecordFile), 0, func(_ int64, line []byte) error {
		var payload struct{ File string }
		err := json.Unmarshal(record.Parse(line).Payload, &payload)
		files = append(files, payload.File)
		return err
	})
	must(t, err)
	slices.Sort(files)
	if !slices.Equal(files, []string{"conversation/T-001.evaluator.jsonl", "interview.jsonl", "ledger/T-001.jsonl"}) {
		t.Error(files)
	}
	for _, elem := range [][]string{{LedgerDir, "T-001.jsonl"}, {ConversationDir, "T-001.evaluator.jsonl"},
		{InterviewFile}} {
		if got := read(t, s.Path(elem...)); got != "{}\n" {
			t.Errorf("%v: %q", elem, got)
		}
	}
}

// The disk fills up in the middle of a line. The system's limit on a file's size has the same effect: write(2) writes
// a part and then fails.
func TestAppendOnAFullDisk(t *testing.T) {
	s := newSession(t)
	out, err := child(t, "full disk", s.Dir).Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	lines, end, skipped := scanned(t, s.Path(RecordFile))
	if skipped != 0 || end != int64(len(read(t, s.Path(RecordFile)))) ||
		!strings.Contains(lines[len(lines)-1], "after") {
		t.Errorf("%d skipped, end %d, last %.100s", skipped, end, lines[len(lines)-1])
	}
}

func childFullDisk(dir string) {
	signal.Ignore(syscall.SIGXFSZ)
	s := childSession(dir)
	const limit = 64 << 10
	var old syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &old); err != nil {
		fail("%v", err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: limit, Max: old.Max}); err != nil {
		fail("%v", err)
	}
	var sunk int
	r, err := s.OpenRecord(record.Options{Sink: func(record.Line) { sunk++ }})
	if err != nil {
		fail("%v", err)
	}
	long := p{"x": strings.Repeat("x", 3000)}
	n := 0
	for ; err == nil; n++ {
		size := r.Size()
		if err = r.Append(event("filling", long)); err != nil && r.Size() != size {
			fail("the size went from %d to %d with %v", size, r.Size(), err)
		}
		if n > limit {
			fail("the limit did nothing")
		}
	}
	if !errors.Is(err, syscall.EFBIG) || !strings.HasPrefix(err.Error(), "log filling: ") || sunk != n-1 {
		fail("%v, %d events sunk of %d", err, sunk, n)
	}
	info, err := os.Stat(s.Path(RecordFile))
	if err != nil || info.Size() != r.Size() || info.Size() == limit {
		fail("%d bytes on disk, %d appended (%v)", info.Size(), r.Size(), err)
	}
	// JSON files and single appends keep the existing content.
	if err := jsonl.WriteFile(s.Path(CheckpointFile), []byte(`{"status":"running"}`)); err != nil {
		fail("%v", err)
	}
	if err := jsonl.WriteFile(s.Path(CheckpointFile), bytes.Repeat([]byte{' '}, 2*limit)); !errors.Is(err,
		syscall.EFBIG) {
		fail("an oversized checkpoint: %v", err)
	}
	if cp, err := s.Checkpoint(); err != nil || cp.Status != Running {
		fail("the checkpoint is %+v (%v)", cp, err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 2 {
		fail("left behind: %v", left)
	}
	// With space again, the log continues.
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &old); err != nil {
		fail("%v", err)
	}
	if err := r.Append(event("after", nil)); err != nil {
		fail("%v", err)
	}
}

// A writer that is killed leaves whole lines, but for at most one at the end.
func TestKilledWriter(t *testing.T) {
	s := newSession(t)
	cmd := child(t, "append for ever", s.Dir)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	ready := make([]byte, 1)
	if _, err := out.Read(ready); err != nil {
		t.Fatal(err)
	}
	must(t, cmd.Process.Kill())
	_ = cmd.Wait()
	lines, _, skipped := scanned(t, s.Path(RecordFile))
	if skipped != 0 || len(lines) < 100 {
		t.Errorf("%d lines, %d skipped", len(lines), skipped)
	}
	r := openRecord(t, s, record.Options{})
	must(t, r.Append(event("next", nil)))
	for i, line := range lines {
		if !strings.Contains(line, fmt.Sprintf(`"n":%d,`, i)) {
			t.Fatalf("line %d is %.80s", i, line)
		}
	}
}

func childAppends(dir string) {
	r, err := childSession(dir).OpenRecord(record.Options{})
	for n := 0; err == nil; n++ {
		err = r.Append(event("tool_result", p{"n": n, "x": strings.Repeat("y", 5000)}))
		if n == 100 {
			fmt.Print("r")
		}
	}
	fail("%v", err)
}

func TestSecretsStayOutOfEveryFile(t *testing.T) {
	s := newSession(t)
	const secret = "sk-very-secret"
	redact := record.NewRedactor([]string{"API_KEY=" + secret}, nil)
	r := openRecord(t, s, record.Options{Redact: redact, Sink: func(l record.Line) {
		if bytes.Contains(l.Raw, []byte(secret)) || bytes.Contains(l.Payload, []byte(secret)) {
			t.Errorf("the sink saw it: %s", l.Raw)
		}
	}})
	must(t, r.Append(&record.ToolResult{Preview: "export API_KEY=" + secret}))
	add, shut, err := s.OpenTranscript(record.RoleWorker, record.Scope{TaskID: "T-001"}, testNow, redact)
	must(t, err)
	must(t, add(json.RawMessage(`{"role":"tool","content":"`+secret+`"}`)))
	must(t, shut())
	for _, path := range []string{s.Path(RecordFile), s.Path(ConversationDir, "T-001.jsonl")} {
		if text := read(t, path); strings.Contains(text, secret) || !strings.Contains(text, "[redacted:API_KEY]") {
			t.Errorf("%s: %s", path, text)
		}
	}
}

func BenchmarkAppend(b *testing.B) {
	for _, size := range []int{200, 16_000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			var environ []string
			for i := range 20 {
				environ = append(environ, fmt.Sprintf("SERVICE_%d_TOKEN=ghp_%032d/+=", i, i))
			}
			s := newSession(b)
			opts := record.Options{Clock: time.Now, Redact: record.NewRedactor(environ, nil)}
			r := openRecord(b, s, opts)
			ev := &record.ToolResult{
				Scope: record.Scope{TaskID: "T-001", TraceID: strings.Repeat("a", 32), SpanID: strings.Repeat("b", 16),
					Iter: 12},
				Tool: "read_file", Preview: strings.Repeat("func main() {\n\treturn\n}\n", size/24), Chars: size,
			}
			b.ReportAllocs()
			for b.Loop() {
				if err := r.Append(ev); err != nil {
					b.Fatal(err)
				}
				if r.Size() > 1<<28 {
					b.StopTimer()
					must(b, r.Close())
					must(b, os.Truncate(s.Path(RecordFile), 0))
					r = openRecord(b, s, opts)
					b.StartTimer()
				}
			}
		})
	}
}
