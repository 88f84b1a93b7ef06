package view

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/view/viewtest"
)

// Whatever two events say, the spans are a tree: one root a trace, every other span
// within its parent, no name twice.
func FuzzTrace(f *testing.F) {
	f.Add([]byte(`{"ts":"2026-06-11T22:04:10Z","type":"tool_call","payload":{"task_id":"T-001","iter":1,"span_id":"00000000000000aa","tool":"bash"}}`),
		[]byte(`{"ts":"2026-06-11T22:04:09Z","type":"evaluator_verdict","payload":{"task_id":"T-001","iter":2,"span_id":"00000000000000aa","verdict":"reject"}}`))
	f.Add([]byte(`{"type":"validator_run","payload":{"results":[{"seconds":1e300},{"seconds":-5},3]}}`), []byte(`{"ts":"9999-01-01T00:00:00Z","type":"model_call","payload":{"wait_seconds":1e9,"phase":"evaluator"}}`))
	f.Add([]byte(`{"ts":"2026-06-11T22:04:10Z","type":"tool_call","payload":{"task_id":"T-001","iter":1,"tool":"bash"}}`),
		[]byte(`{"ts":"2026-06-11T22:04:11Z","type":"tool_call","payload":{"task_id":"T-002","iter":1,"tool":"bash"}}`))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		var spans []*span
		x := newTracer(&session.Session{ID: "20260611-220410-abcdef"}, func(t *tracesData) error {
			spans = append(spans, t.ResourceSpans[0].ScopeSpans[0].Spans...)
			return nil
		})
		for _, line := range [][]byte{a, b, a, b, b} {
			if len(line) == 0 || line[0] != '{' {
				return
			}
			if err := x.event(record.Parse(line)); err != nil {
				t.Fatal(err)
			}
		}
		if err := x.finish(); err != nil {
			t.Fatal(err)
		}
		type name struct {
			traceID
			spanID
		}
		byName := map[name]*span{}
		for _, s := range spans {
			if byName[name{s.TraceID, s.ID}] != nil {
				t.Fatalf("two spans are called %x", s.ID)
			}
			byName[name{s.TraceID, s.ID}] = s
		}
		roots := map[traceID]bool{}
		for _, s := range spans {
			if s.End < s.Begin {
				t.Fatalf("%s ends before it begins", s.Name)
			}
			if s.Parent == (spanID{}) {
				if roots[s.TraceID] {
					t.Fatalf("two roots in %x", s.TraceID)
				}
				roots[s.TraceID] = true
				continue
			}
			p := byName[name{s.TraceID, s.Parent}]
			if p == nil || s.Begin < p.Begin || s.End > p.End {
				t.Fatalf("%s does not lie within its parent", s.Name)
			}
		}
	})
}

// Tasks whose events take turns have one trace each, with each iteration once and its own prompts.
func TestTraceOfLanes(t *testing.T) {
	w := viewtest.New(t, session.Store{Root: t.TempDir()})
	viewtest.Lanes(w)
	names := map[string]int{}
	x := newTracer(w.S, func(d *tracesData) error {
		for _, s := range d.ResourceSpans[0].ScopeSpans[0].Spans {
			if s.Parent == (spanID{}) || strings.HasPrefix(s.Name, "iteration") {
				names[s.Name]++
			}
		}
		return nil
	})
	_, _, err := record.Scan(w.S.Path(session.RecordFile), 0, x.event)
	if err == nil {
		err = x.finish()
	}
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int{"task T-001": 1, "task T-002": 1, "task T-003": 1, "session " + w.S.ID: 1,
		"iteration 5": 3, "iteration 6": 2, "iteration 12": 1} {
		if names[name] != want {
			t.Errorf("%d spans called %q, want %d", names[name], name, want)
		}
	}
}

// A message small enough to be checked by hand.
func TestEncoding(t *testing.T) {
	data := tracesOf("S", []*span{{
		TraceID: traceID{15: 1}, ID: spanID{7: 2}, Name: "n\xff", Kind: kindClient, Begin: 1, End: 300,
		Attributes: attributes{"a": int64(-1), "b": true, "c": 0.5, "d": []string{"", "x"}, "e": ""}.list(),
		Status:     spanStatus{"m", statusError},
	}})
	data.ResourceSpans[0].Resource.Attributes = []attribute{}
	data.ResourceSpans[0].ScopeSpans[0].Scope.Name = "s"
	const wantJSON = `{"resourceSpans":[{"resource":{"attributes":[]},"scopeSpans":[{"scope":{"name":"s"},"spans":[{` +
		`"traceId":"00000000000000000000000000000001","spanId":"0000000000000002","name":"n\ufffd","kind":3,` +
		`"startTimeUnixNano":"1","endTimeUnixNano":"300","attributes":[{"key":"a","value":{"intValue":"-1"}},` +
		`{"key":"b","value":{"boolValue":true}},{"key":"c","value":{"doubleValue":0.5}},` +
		`{"key":"d","value":{"arrayValue":{"values":[{"stringValue":""},{"stringValue":"x"}]}}}],` +
		`"status":{"message":"m","code":2}}]}]}]}`
	if got, err := json.Marshal(data); err != nil || string(got) != wantJSON {
		t.Errorf("%v\n%s\nwant\n%s", err, got, wantJSON)
	}
}

// BenchmarkExport writes 100,000 events as OTLP JSON.
func BenchmarkExport(b *testing.B) {
	s := long(b, 100_000)
	info, err := os.Stat(s.Path(session.RecordFile))
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(info.Size())
	path := s.Path("trace.json")
	for b.Loop() {
		if _, err := Export(b.Context(), s, path, nil); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(peakMiB(), "peak-MiB")
}
