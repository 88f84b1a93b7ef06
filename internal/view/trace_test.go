package view

import (
	"os"
	"testing"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
)

// keeper is a sink that keeps what it gets.
type keeper struct{ spans []ptrace.Span }

func (k *keeper) write(t ptrace.Traces) error {
	for _, rs := range t.ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			for _, s := range ss.Spans().All() {
				k.spans = append(k.spans, s)
			}
		}
	}
	return nil
}

func (k *keeper) close() error { return nil }
func (k *keeper) abort()       {}

// Whatever two events say, the spans are a tree: one root a trace, every other span
// within its parent, no name twice.
func FuzzTrace(f *testing.F) {
	f.Add([]byte(`{"ts":"2026-06-11T22:04:10Z","type":"tool_call","payload":{"task_id":"T-001","iter":1,"span_id":"00000000000000aa","tool":"bash"}}`),
		[]byte(`{"ts":"2026-06-11T22:04:09Z","type":"evaluator_verdict","payload":{"task_id":"T-001","iter":2,"span_id":"00000000000000aa","verdict":"reject"}}`))
	f.Add([]byte(`{"type":"validator_run","payload":{"results":[{"seconds":1e300},{"seconds":-5},3]}}`), []byte(`{"ts":"9999-01-01T00:00:00Z","type":"model_call","payload":{"wait_seconds":1e9,"phase":"evaluator"}}`))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		k := &keeper{}
		x := newTracer(&session.Session{ID: "20260611-220410-abcdef"}, k)
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
		byID := map[string]ptrace.Span{}
		for _, s := range k.spans {
			id := s.TraceID().String() + s.SpanID().String()
			if _, twice := byID[id]; twice {
				t.Fatalf("two spans are called %s", id)
			}
			byID[id] = s
		}
		roots := map[string]bool{}
		for _, s := range k.spans {
			trace := s.TraceID().String()
			if s.EndTimestamp() < s.StartTimestamp() {
				t.Fatalf("%s ends before it begins", s.Name())
			}
			if s.ParentSpanID().IsEmpty() {
				if roots[trace] {
					t.Fatalf("two roots in %s", trace)
				}
				roots[trace] = true
				continue
			}
			p, ok := byID[trace+s.ParentSpanID().String()]
			if !ok || s.StartTimestamp() < p.StartTimestamp() || s.EndTimestamp() > p.EndTimestamp() {
				t.Fatalf("%s does not lie within its parent", s.Name())
			}
		}
	})
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
		if _, err := Export(b.Context(), s, path); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(peakMiB(), "peak-MiB")
}
