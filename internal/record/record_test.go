package record

import (
	"bytes"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/git-tilth/git-tilth/internal/jsonl"
)

// lines are real ones, one of each shape, written before events were structs.
func lines(t testing.TB) [][]byte {
	t.Helper()
	data, err := os.ReadFile("testdata/lines.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Split(bytes.TrimSpace(data), []byte{'\n'})
}

// withSkipped returns an old line in its present form, in which each validator's result has a skipped member.
func withSkipped(line string) string {
	return regexp.MustCompile(`("passed":[a-z]+,"seconds":[0-9.e-]+)}`).ReplaceAllString(line, `$1,"skipped":false}`)
}

func TestEventsAreWrittenAsEver(t *testing.T) {
	seen := map[string]bool{}
	for _, line := range lines(t) {
		l := Parse(line)
		at, err := time.Parse(time.RFC3339, l.TS)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		path := t.TempDir() + "/events.jsonl"
		r, err := Open(path, Options{Clock: func() time.Time { return at }})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Append(l.Event()); err != nil {
			t.Fatal(err)
		}
		r.Close()
		got, err := os.ReadFile(path)
		if want := withSkipped(string(line)) + "\n"; err != nil || string(got) != want {
			t.Errorf("%v\n got %s\nwant %s", err, got, want)
		}
		seen[l.Type] = true
	}
	// An event that came later has no line of then.
	if len(seen) < 27 {
		t.Errorf("lines of only %d types", len(seen))
	}
}

func TestEveryStructHasItsRow(t *testing.T) {
	var source []byte
	for _, name := range []string{"events.go", "judging.go", "moves.go"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		source = append(source, text...)
	}
	structs := regexp.MustCompile(`(?m)^type (\w+) struct {\n\tScope\n`).FindAllStringSubmatch(string(source), -1)
	if len(structs) != len(rows) {
		t.Errorf("%d structs embed Scope, %d rows", len(structs), len(rows))
	}
	if len(byType) != len(rows) {
		t.Error("two rows make the same struct")
	}
}

func TestForeignPayloads(t *testing.T) {
	for in, want := range map[string]Event{
		`{"type":"stop","payload":{"reason":5,"detail":"x","iter":2}}`:             &Stop{Scope: Scope{Iter: 2}, Detail: "x"},
		`{"type":"model_call","payload":{"status":"x","eval_tokens":{}}}`:          &ModelCall{Status: new(int)},
		`{"type":"validator_run","payload":{"results":[{"name":"a"},5,null]}}`:     &ValidatorRun{Results: []ValidatorResult{{Name: "a"}, {}, {}}},
		`{"type":"session_start","payload":{"phase":"run","worker_model":null}}`:   &SessionStart{Phase: "run"},
		`{"type":"new","payload":{"task_id":"T-001"}}`:                             &Unknown{Scope: Scope{TaskID: "T-001"}, Type: "new"},
		`{"type":"commit","payload":[1]}`:                                          &Commit{},
		`{"payload":{"phase":"a"},"type":"session_start","type":"model_call"}`:     &ModelCall{Scope: Scope{Phase: "a"}},
		`{"type":"evaluator_verdict","payload":{"evidence":"x","parse_failed":1}}`: &EvaluatorVerdict{},
	} {
		got := Parse([]byte(in)).Event()
		if u, ok := got.(*Unknown); ok {
			u.Payload = nil
		}
		if g, w := string(JSON(got)), string(JSON(want)); g != w || TypeOf(got) != TypeOf(want) {
			t.Errorf("%s\n got %s\nwant %s", in, g, w)
		}
	}
}

func TestLinesOfTomorrow(t *testing.T) {
	const line = `{"ts":"2026-06-01T10:20:30.456Z","type":"new_thing","payload":{"b":{"x":1},"a":2,"task_id":"T-001"}}`
	l := Parse([]byte(line))
	u, ok := l.Event().(*Unknown)
	if task, _ := l.Task(); !ok || u.TaskID != "T-001" || task != "T-001" || string(u.Payload) != `{"b":{"x":1},"a":2,"task_id":"T-001"}` {
		t.Errorf("%+v", u)
	}
}

func FuzzParse(f *testing.F) {
	for _, line := range lines(f) {
		f.Add(line)
	}
	for _, line := range []string{"{}", `{"ts":5,"type":["x"],"payload":7}`, `{"type":"stop","payload":{"seconds":1e999}}`,
		`{"type":"nudge","payload":{"content":` + strings.Repeat("[", 3000) + strings.Repeat("]", 3000) + `}}`,
		`{"type":"tool_result","payload":{"task_id":"T-001","iter":1e300,"result_preview":"\ud800"}}`} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		if !jsonl.IsObject(line) {
			return
		}
		before := slices.Clone(line)
		l := Parse(line)
		ev := l.Event()
		task, _ := l.Task()
		if !bytes.Equal(line, before) {
			t.Fatalf("the line was changed to %q", line)
		}
		if l.Type == "" || l.Payload == nil {
			return
		}
		// For a repeated name, an event has the last value and Task the first.
		once := bytes.Count(l.Payload, []byte("task_id")) == 1 && !bytes.Contains(l.Payload, []byte(`\`))
		if u, ok := ev.(*Unknown); ok && u.Type != l.Type || once && ev.Common().TaskID != task {
			t.Fatalf("%T %+v of %q", ev, ev.Common(), line)
		}
		// An event survives writing and reading.
		var b bytes.Buffer
		if err := encode(&b, Decode(l.Type, bytes.ToValidUTF8(l.Payload, []byte("?")))); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		var again bytes.Buffer
		if err := encode(&again, Decode(TypeOf(ev), b.Bytes())); err != nil || !bytes.Equal(again.Bytes(), b.Bytes()) {
			t.Fatalf("%q became %s, want %s (%v)", line, again.Bytes(), b.Bytes(), err)
		}
	})
}
