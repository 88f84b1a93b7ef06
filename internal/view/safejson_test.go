package view

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/view/viewtest"
)

func TestCopyEvent(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"plain", `{"ts":"x","type":"t","payload":{"a":1}}`, `{"ts":"x","type":"t","payload":{"a":1}}`},
		{"end of script", `{"a":"</script>"}`, `{"a":"\u003c/script\u003e"}`},
		{"entity", `{"a&b":"&lt;"}`, `{"a\u0026b":"\u0026lt;"}`},
		{"line separators", "{\"a\":\"\u2028\u2029\"}", `{"a":"\u2028\u2029"}`},
		{"broken UTF-8", "{\"a\":\"\xff-\xc0\"}", "{\"a\":\"\uFFFD-\uFFFD\"}"},
		{"escapes stay", `{"a":"\u003c\ud800\n\/\""}`, `{"a":"\u003c\ud800\n\/\""}`},
		{"brackets in a string", `{"a":"` + strings.Repeat("[", 100) + `\""}`, `{"a":"` + strings.Repeat("[", 100) + `\""}`},
	} {
		got, ok := copyEvent([]byte("before"), []byte(c.in))
		if !ok || string(got) != "before"+c.want {
			t.Errorf("%s: %s, %v; want %s", c.name, got, ok, c.want)
		}
	}
}

// A page has the beginning of a large event, and the size of the rest.
func TestTooMuchForAPage(t *testing.T) {
	for name, line := range map[string]string{
		"big":  `{"type":"t","payload":{"a":"` + strings.Repeat("x", maxEvent) + `"}}`,
		"deep": `{"type":"t","payload":` + strings.Repeat("[", maxDepth) + strings.Repeat("]", maxDepth) + `}`,
	} {
		index, events := blockOf(t, []byte(line))
		if len(events[0]) > 2*maxBeginning || !strings.Contains(string(events[0]), `"text":"{\"type\"`) ||
			(index["cut"] != nil) != (name == "big") {
			t.Errorf("%s: %.100s, cut %v", name, events[0], index["cut"])
		}
	}
}

// blockOf puts lines into one block and reads it back as the page does.
func blockOf(t testing.TB, lines ...[]byte) (index map[string]any, events []json.RawMessage) {
	t.Helper()
	var b blocks
	for _, l := range lines {
		b.add(record.Parse(l))
	}
	data, err := json.Marshal(b.index)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &index); err != nil {
		t.Fatalf("the index is no JSON: %v\n%s", err, data)
	}
	body := append(append([]byte("["), b.events...), ']')
	if err := json.Unmarshal(body, &events); err != nil {
		t.Fatalf("the events are no JSON: %v\n%.2000s", err, body)
	}
	for _, part := range [][]byte{data, b.events} {
		if bytes.ContainsAny(part, "<>&") || !utf8.Valid(part) {
			t.Fatalf("unsafe in a script element: %.2000s", part)
		}
	}
	return index, events
}

func TestBlock(t *testing.T) {
	index, events := blockOf(t,
		[]byte(`{"ts":"2026-06-11T22:04:10Z","type":"session_start","payload":{"phase":"run"}}`),
		[]byte(`{"ts":"2026-06-11T22:04:11.5Z","type":"model_call","payload":{"task_id":"T-001","iter":2,"prompt_tokens":100,"eval_tokens":5,"cost":0.25,"phase":"evaluator"}}`),
		[]byte(`{"ts":"2026-06-11T22:04:11Z","type":"evaluator_verdict","payload":{"task_id":"T-001","iter":2,"verdict":"reject","rejection_category":"weak_test","concern":"<b>"}}`),
		[]byte(`{"ts":"nonsense","type":"session_start","payload":null}`),
	)
	for key, want := range map[string]any{
		"n": 4.0, "t0": 1781215450000.0, "names": []any{"session_start", "model_call", "evaluator_verdict"},
		"tasks": []any{"", "T-001"},
		"type":  []any{0.0, 1.0, 2.0, 0.0}, "task": []any{0.0, 1.0, 1.0, 0.0}, "iter": []any{0.0, 2.0, 2.0, 0.0},
		"dt": []any{0.0, 1500.0, -500.0, 0.0},
		"facts": []any{
			[]any{0.0, map[string]any{"ph": "run"}},
			[]any{1.0, map[string]any{"p": 100.0, "e": 5.0, "$": 0.25, "ph": "evaluator"}},
			[]any{2.0, map[string]any{"v": "reject"}},
		},
		"cut": nil,
	} {
		if !reflect.DeepEqual(index[key], want) {
			t.Errorf("%s is %v, want %v", key, index[key], want)
		}
	}
	if len(events) != 4 {
		t.Errorf("%d events", len(events))
	}
}

func TestHostileRecordInBlocks(t *testing.T) {
	w := viewtest.New(t, session.Store{Root: t.TempDir()})
	viewtest.HostileRecord(w)
	var lines [][]byte
	_, skipped, err := jsonl.Scan(w.S.Path(session.RecordFile), 0, func(_ int64, line []byte) error {
		lines = append(lines, bytes.Clone(line))
		return nil
	})
	if err != nil || skipped == 0 {
		t.Fatal(skipped, err)
	}
	for i := 0; i < len(lines); i += 100 {
		part := lines[i:min(i+100, len(lines))]
		if _, events := blockOf(t, part...); len(events) != len(part) {
			t.Errorf("%d events of %d lines", len(events), len(part))
		}
	}
}

// An object for encoding/json is the same object in the page.
func FuzzCopyEvent(f *testing.F) {
	f.Add([]byte(`{"ts":"2026-06-11T22:04:10Z","type":"model_call","payload":{"task_id":"T-001","iter":2,"cost":1e-3,"content":"</script>\u2028"}}`))
	f.Add([]byte("{\"a\":\"\xff\xed\xa0\x80\",\"b\":[[[{}]]],\"c\":-0.0e-1}"))
	f.Add([]byte(`{"payload":{"payload":{"iter":1}},"type":["x"],"ts":null}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		var want, got any
		wantErr := json.Unmarshal(line, &want)
		if _, isObject := want.(map[string]any); isObject != jsonl.IsObject(bytes.TrimSpace(line)) {
			t.Fatalf("object: %v (%v), and not so for the record", isObject, wantErr)
		} else if !isObject {
			return
		}
		out, ok := copyEvent(nil, line)
		if !ok {
			return
		}
		if bytes.ContainsAny(out, "<>&") || !utf8.Valid(out) {
			t.Fatalf("unsafe: %q", out)
		}
		if err := json.Unmarshal(out, &got); err != nil {
			t.Fatalf("%v: %q", err, out)
		}
		if utf8.Valid(line) && !reflect.DeepEqual(got, want) {
			t.Fatalf("%q became %q", line, out)
		}
		blockOf(t, line)
	})
}
