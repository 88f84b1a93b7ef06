// Package otlptest sends exported traces to the collector's own receiver.
package otlptest

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"

	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/view"
	"github.com/git-tilth/git-tilth/internal/view/viewtest"

	"go.opentelemetry.io/collector/confmap"
)

// receiver starts a real OTLP receiver for HTTP on a free port.
func receiver(t *testing.T) (url string, sink *consumertest.TracesSink) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := ln.Addr().String()
	ln.Close()
	factory := otlpreceiver.NewFactory()
	cfg := factory.CreateDefaultConfig()
	conf := confmap.NewFromStringMap(map[string]any{
		"protocols": map[string]any{"http": map[string]any{"endpoint": addr}}})
	if err := conf.Unmarshal(cfg); err != nil {
		t.Fatal(err)
	}
	sink = &consumertest.TracesSink{}
	r, err := factory.CreateTraces(context.Background(), receivertest.NewNopSettings(factory.Type()), cfg, sink)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Start(context.Background(), componenttest.NewNopHost()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Shutdown(context.Background()) })
	return "http://" + addr, sink
}

func story(t *testing.T) *session.Session {
	t.Helper()
	w := viewtest.New(t, session.Store{Root: t.TempDir()})
	viewtest.Story(w)
	return w.S
}

// node is a span and what is under it.
type node struct {
	ptrace.Span
	kids []*node
}

func (n *node) took() time.Duration {
	return n.EndTimestamp().AsTime().Sub(n.StartTimestamp().AsTime())
}

// forest puts the spans of all batches together, trace by trace.
func forest(t *testing.T, batches []ptrace.Traces) map[pcommon.TraceID]*node {
	t.Helper()
	nodes := map[string]*node{}
	var order []*node
	for _, b := range batches {
		for _, rs := range b.ResourceSpans().All() {
			for _, ss := range rs.ScopeSpans().All() {
				for _, s := range ss.Spans().All() {
					key := s.TraceID().String() + s.SpanID().String()
					if nodes[key] != nil {
						t.Errorf("two spans are called %s: %s and %s", key, nodes[key].Name(), s.Name())
					}
					n := &node{Span: s}
					nodes[key] = n
					order = append(order, n)
				}
			}
		}
	}
	roots := map[pcommon.TraceID]*node{}
	for _, n := range order {
		if n.EndTimestamp() < n.StartTimestamp() {
			t.Errorf("%s ends before it begins", n.Name())
		}
		if n.ParentSpanID().IsEmpty() {
			if roots[n.TraceID()] != nil {
				t.Errorf("trace %s has two roots", n.TraceID())
			}
			roots[n.TraceID()] = n
			continue
		}
		parent := nodes[n.TraceID().String()+n.ParentSpanID().String()]
		if parent == nil {
			t.Errorf("%s has a parent that was not sent", n.Name())
			continue
		}
		parent.kids = append(parent.kids, n)
		if n.StartTimestamp() < parent.StartTimestamp() || n.EndTimestamp() > parent.EndTimestamp() {
			t.Errorf("%s does not lie within %s", n.Name(), parent.Name())
		}
	}
	return roots
}

// outline is a trace as text: names and lengths, indented.
func outline(n *node, depth int, b *strings.Builder) {
	fmt.Fprintf(b, "%s%s %s\n", strings.Repeat("  ", depth), n.Name(), n.took())
	for _, k := range n.kids {
		outline(k, depth+1, b)
	}
}

func taskRoot(t *testing.T, roots map[pcommon.TraceID]*node, task string) *node {
	t.Helper()
	for _, r := range roots {
		if v, ok := r.Attributes().Get("tilth.task.id"); ok && v.Str() == task {
			return r
		}
	}
	t.Fatalf("no trace for %s", task)
	return nil
}

// A task that took two reviews, as the receiver got it. Spans come in the order in
// which they ended.
const wantFirst = `task T-001: Parse durations like 3w2d 3m32.821s
  iteration 1 38.2s
    chat acme/large-4 35s
    execute_tool bash 3s
  iteration 2 39.201s
    chat acme/large-4 35s
    execute_tool bash 3s
    execute_tool bash 1ms
  iteration 3 44.055s
    validators 4.5s
      validator go vet 1.4s
      validator go test 3.1s
    execute_tool submit_case 24.05s
    evaluator 18.05s
      chat acme/judge-2 18s
  iteration 4 38.2s
    chat acme/large-4 35s
    execute_tool bash 3s
  iteration 5 53.145s
    validators 4.5s
      validator go vet 1.4s
      validator go test 3.1s
    execute_tool submit_case 24.05s
    evaluator 18.05s
      chat acme/judge-2 18s
    chat acme/large-4 9s
`

func TestReceiverTakesTheTree(t *testing.T) {
	url, sink := receiver(t)
	s := story(t)
	if _, err := view.Export(context.Background(), s, url, io.Discard); err != nil {
		t.Fatal(err)
	}
	roots := forest(t, sink.AllTraces())
	if len(roots) != 4 {
		t.Errorf("%d traces, want one for each of 3 tasks and one for the session", len(roots))
	}
	var b strings.Builder
	outline(taskRoot(t, roots, "T-001"), 0, &b)
	if got := b.String(); got != wantFirst {
		t.Errorf("the trace is\n%s\nwant\n%s", got, wantFirst)
	}
}

// Names, statuses and the gen_ai conventions are what other tools show.
func TestSpansSayWhatTheyAre(t *testing.T) {
	url, sink := receiver(t)
	s := story(t)
	if _, err := view.Export(context.Background(), s, url, io.Discard); err != nil {
		t.Fatal(err)
	}
	roots := forest(t, sink.AllTraces())
	first, third := taskRoot(t, roots, "T-001"), taskRoot(t, roots, "T-003")
	if want := viewtest.TraceID("T-001"); first.TraceID().String() != want {
		t.Errorf("the trace is called %s, in the record %s", first.TraceID(), want)
	}
	if first.Status().Code() != ptrace.StatusCodeOk || third.Status().Code() != ptrace.StatusCodeError ||
		third.Status().Message() != "iter_cap" {
		t.Errorf("statuses are %v and %v (%s)", first.Status().Code(), third.Status().Code(), third.Status().Message())
	}
	call := first.kids[0].kids[0]
	if call.Kind() != ptrace.SpanKindClient {
		t.Errorf("a model call is of kind %v", call.Kind())
	}
	for key, want := range map[string]any{
		"gen_ai.operation.name": "chat", "gen_ai.request.model": "acme/large-4", "gen_ai.provider.name": "openai",
		"gen_ai.usage.input_tokens": int64(9100), "gen_ai.usage.output_tokens": int64(420),
		"gen_ai.usage.cache_read.input_tokens": int64(6370),
		"gen_ai.response.finish_reasons":       []any{"tool_calls"}, "tilth.cost": 9100 * 2e-6,
	} {
		v, ok := call.Attributes().Get(key)
		if !ok || fmt.Sprint(v.AsRaw()) != fmt.Sprint(want) {
			t.Errorf("%s is %v, want %v", key, v.AsRaw(), want)
		}
	}
	for _, key := range []string{"gen_ai.input.messages", "gen_ai.output.messages"} {
		v, _ := call.Attributes().Get(key)
		if !strings.HasPrefix(v.Str(), `[{"parts":[{`) {
			t.Errorf("%s is %.80s", key, v.Str())
		}
	}
	blocked := first.kids[1].kids[2]
	if blocked.Status().Message() != "blocked: git push --force is not for the worker" {
		t.Errorf("the blocked call says %q", blocked.Status().Message())
	}
	review := third.kids[3].kids[len(third.kids[3].kids)-1]
	if v, _ := review.Attributes().Get("gen_ai.evaluation.score.label"); review.Name() != "evaluator" ||
		v.Str() != "reject" {
		t.Errorf("the review is %s, %s", review.Name(), v.Str())
	}
}

// A file and the receiver get the same spans.
func TestFileHoldsTheSame(t *testing.T) {
	s := story(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "trace.json")
	if _, err := view.Export(context.Background(), s, path, io.Discard); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	tr, err := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces(data)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	outline(taskRoot(t, forest(t, []ptrace.Traces{tr}), "T-001"), 0, &b)
	if b.String() != wantFirst {
		t.Errorf("it holds another tree:\n%s", b.String())
	}
	if left, err := filepath.Glob(filepath.Join(dir, ".*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

// A long record goes out in many batches and arrives whole.
func TestLongRecordInBatches(t *testing.T) {
	const events = 20_000
	url, sink := receiver(t)
	w := viewtest.New(t, session.Store{Root: t.TempDir()})
	w.Long(events)
	if _, err := view.Export(context.Background(), w.S, url, io.Discard); err != nil {
		t.Fatal(err)
	}
	if n := len(sink.AllTraces()); n < 10 {
		t.Errorf("%d batches", n)
	}
	calls, tools := 0, 0
	for _, root := range forest(t, sink.AllTraces()) {
		for _, iter := range root.kids {
			for _, k := range iter.kids {
				switch {
				case strings.HasPrefix(k.Name(), "chat "):
					calls++
				case strings.HasPrefix(k.Name(), "execute_tool "):
					tools++
				}
			}
		}
	}
	wantCalls, wantTools := 0, 0
	if _, _, err := jsonl.Scan(w.S.Path(session.RecordFile), 0, func(_ int64, line []byte) error {
		switch record.Parse(line).Type {
		case "model_call":
			wantCalls++
		case "tool_call":
			wantTools++
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if calls != wantCalls || tools != wantTools {
		t.Errorf("%d model calls and %d tools arrived of %d and %d", calls, tools, wantCalls, wantTools)
	}
}

// Whatever a record holds, an export is whole and valid, or an error.
func TestHostileRecord(t *testing.T) {
	url, sink := receiver(t)
	w := viewtest.New(t, session.Store{Root: t.TempDir()})
	viewtest.HostileRecord(w)
	if _, err := view.Export(context.Background(), w.S, url, io.Discard); err != nil {
		t.Fatal(err)
	}
	forest(t, sink.AllTraces())
}

func TestRefusals(t *testing.T) {
	s := story(t)
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	for dest, want := range map[string]string{
		"ftp://example.com/x":                   "no http or https URL",
		"http://":                               "no http or https URL",
		"http://" + closed.Addr().String():      "connection refused",
		filepath.Join(t.TempDir(), "no", "dir"): "no such file or directory",
	} {
		if _, err := view.Export(context.Background(), s, dest, io.Discard); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", dest, err, want)
		}
	}
}
