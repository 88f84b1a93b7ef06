package view

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
)

// tracer turns the events of a record, in their order, into spans. A span goes out
// when it ends; parents may follow their children. The record has one time for each
// event, when it was written: a model call or a validator run began when the event
// before it was written, a tool ran from its call to its result.
type tracer struct {
	s       *session.Session
	out     sink
	titles  map[string]string
	models  map[string]string // by role
	agents  map[string]string
	session *scope
	task    *scope
	runs    map[pcommon.TraceID]int // how often a trace was begun
	batch   ptrace.Traces
	spans   ptrace.SpanSlice
}

// scope is one trace while it is read: the session's or a task's.
type scope struct {
	trace    pcommon.TraceID
	recorded pcommon.TraceID // what the record calls it
	root     pcommon.SpanID
	iters    map[pcommon.SpanID]bool // names of iterations that are taken
	name     string
	begin    time.Time
	last     time.Time // of the latest event
	attrs    map[string]any
	err      string
	ok       bool
	events   []spanEvent
	iter     *open
	review   *open
	tools    []*open
	prompts  map[string]string // the latest prompt of each role
	seq      int               // numbers the spans that the record does not name
	resumed  time.Time         // when a wait that a failed call announced was over
}

// open is a span that has begun.
type open struct {
	id     pcommon.SpanID
	n      int64
	name   string
	begin  time.Time
	attrs  map[string]any
	events []spanEvent
	err    string
}

type spanEvent struct {
	at    time.Time
	name  string
	attrs map[string]any
}

func newTracer(s *session.Session, out sink) *tracer {
	x := &tracer{s: s, out: out, titles: map[string]string{}, models: map[string]string{}, agents: map[string]string{}, runs: map[pcommon.TraceID]int{}}
	x.newBatch()
	return x
}

func (x *tracer) newBatch() {
	x.batch = ptrace.NewTraces()
	rs := x.batch.ResourceSpans().AppendEmpty()
	rs.Resource().Attributes().PutStr("service.name", "git-tilth")
	rs.Resource().Attributes().PutStr("session.id", x.s.ID)
	ss := rs.ScopeSpans().AppendEmpty()
	ss.Scope().SetName("github.com/git-tilth/git-tilth")
	x.spans = ss.Spans()
}

// event takes in the next event of the record.
func (x *tracer) event(e record.Line) error {
	if e.Type == "" {
		return nil
	}
	p := gjson.ParseBytes(e.Payload)
	at := spanTime(e.TS)
	if x.session == nil {
		x.session = newScope(hash("session", x.s.ID), at, "session "+x.s.ID)
		x.session.attrs["session.id"] = x.s.ID
	}
	sc := x.session
	if task := p.Get("task_id").String(); task != "" {
		var err error
		if sc, err = x.enter(task, p.Get("trace_id").String(), at); err != nil {
			return err
		}
	}
	if at.Before(sc.last) {
		at = sc.last // a clock went back, or there is no time; order is what is known
	}
	if err := x.take(sc, e.Type, p, at); err != nil {
		return err
	}
	sc.last = at
	if sc != x.session && at.After(x.session.last) {
		x.session.last = at
	}
	return nil
}

// spanTime is a time that a span can carry, the epoch where the event has none.
func spanTime(ts string) time.Time {
	t := parseTime(ts)
	if t.Year() < 1970 || t.Year() > 2200 {
		return time.Unix(0, 0)
	}
	return t
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// enter is the scope of a task's run. Another trace id, or another task, is another run.
func (x *tracer) enter(task, trace string, at time.Time) (*scope, error) {
	id, ok := traceID(trace)
	if !ok {
		id = hash("task", x.s.ID, task)
	}
	if x.task != nil && x.task.recorded == id && x.task.attrs["tilth.task.id"] == task {
		return x.task, nil
	}
	if err := x.end(x.task); err != nil {
		return nil, err
	}
	at = later(at, x.session.begin)
	x.runs[id]++
	name := "task " + task
	if t := x.titles[task]; t != "" {
		name += ": " + t
	}
	recorded := id
	if n := x.runs[id]; n > 1 { // two runs in one trace would be a trace with two roots
		id = hash("again", hex.EncodeToString(id[:]), strconv.Itoa(n))
	}
	x.task = newScope(id, at, name)
	x.task.recorded = recorded
	x.task.attrs["tilth.task.id"] = task
	x.task.attrs["session.id"] = x.s.ID
	return x.task, nil
}

func newScope(id pcommon.TraceID, at time.Time, name string) *scope {
	return &scope{trace: id, root: spanHash(id, "root"), name: name, begin: at, last: at, attrs: map[string]any{},
		prompts: map[string]string{}, iters: map[pcommon.SpanID]bool{}}
}

// finish ends what is open and sends the rest.
func (x *tracer) finish() error {
	if err := x.end(x.task); err != nil {
		return err
	}
	if err := x.end(x.session); err != nil {
		return err
	}
	if x.spans.Len() == 0 {
		return nil
	}
	return x.out.write(x.batch)
}

// end closes a scope: what is still open in it ends with its latest event.
func (x *tracer) end(sc *scope) error {
	if sc == nil {
		return nil
	}
	if err := x.endIteration(sc, sc.last); err != nil {
		return err
	}
	root := &open{id: sc.root, name: sc.name, begin: sc.begin, attrs: sc.attrs, events: sc.events, err: sc.err}
	span, err := x.put(sc, root, pcommon.SpanID{}, sc.last)
	if err != nil {
		return err
	}
	if sc.ok {
		span.Status().SetCode(ptrace.StatusCodeOk)
	}
	if sc != x.session {
		l := span.Links().AppendEmpty()
		l.SetTraceID(x.session.trace)
		l.SetSpanID(x.session.root)
	}
	return nil
}

func (x *tracer) endIteration(sc *scope, at time.Time) error {
	for _, t := range sc.tools {
		if _, err := x.put(sc, t, sc.parent(), at); err != nil {
			return err
		}
	}
	sc.tools = nil
	if err := x.endReview(sc, at); err != nil {
		return err
	}
	if sc.iter == nil {
		return nil
	}
	o := sc.iter
	sc.iter = nil
	_, err := x.put(sc, o, sc.root, at)
	return err
}

func (x *tracer) endReview(sc *scope, at time.Time) error {
	if sc.review == nil {
		return nil
	}
	o := sc.review
	sc.review = nil
	_, err := x.put(sc, o, sc.iterationOrRoot(), at)
	return err
}

// parent is the span that a new one is put under.
func (sc *scope) parent() pcommon.SpanID { return sc.iterationOrRoot() }

func (sc *scope) iterationOrRoot() pcommon.SpanID {
	if sc.iter != nil {
		return sc.iter.id
	}
	return sc.root
}

// nextID names a span that the record has no name for; the same record gives the
// same names, so that exporting twice does not double a trace.
func (sc *scope) nextID() pcommon.SpanID {
	sc.seq++
	return spanHash(sc.trace, hex.EncodeToString(sc.root[:]), strconv.Itoa(sc.seq))
}

// put writes a span that ends at end, and sends the batch when it is full.
func (x *tracer) put(sc *scope, o *open, parent pcommon.SpanID, end time.Time) (ptrace.Span, error) {
	if x.spans.Len() >= batchSpans {
		if err := x.out.write(x.batch); err != nil {
			return ptrace.Span{}, err
		}
		x.newBatch()
	}
	s := x.spans.AppendEmpty()
	s.SetTraceID(sc.trace)
	s.SetSpanID(o.id)
	s.SetParentSpanID(parent)
	s.SetName(o.name)
	s.SetKind(ptrace.SpanKindInternal)
	if o.attrs["gen_ai.operation.name"] == "chat" {
		s.SetKind(ptrace.SpanKindClient)
	}
	s.SetStartTimestamp(pcommon.NewTimestampFromTime(o.begin))
	s.SetEndTimestamp(pcommon.NewTimestampFromTime(end))
	putAttrs(s.Attributes(), o.attrs)
	for _, e := range o.events {
		ev := s.Events().AppendEmpty()
		ev.SetName(e.name)
		ev.SetTimestamp(pcommon.NewTimestampFromTime(e.at))
		putAttrs(ev.Attributes(), e.attrs)
	}
	if o.err != "" {
		s.Status().SetCode(ptrace.StatusCodeError)
		s.Status().SetMessage(o.err)
	}
	return s, nil
}

// putAttrs writes attributes in a fixed order, so that two exports are the same.
func putAttrs(m pcommon.Map, attrs map[string]any) {
	for _, k := range sortedKeys(attrs) {
		switch v := attrs[k].(type) {
		case string:
			if v != "" {
				m.PutStr(k, strings.ToValidUTF8(v, "\uFFFD"))
			}
		case int64:
			m.PutInt(k, v)
		case float64:
			m.PutDouble(k, v)
		case bool:
			m.PutBool(k, v)
		case []string:
			list := m.PutEmptySlice(k)
			for _, item := range v {
				list.AppendEmpty().SetStr(strings.ToValidUTF8(item, "\uFFFD"))
			}
		}
	}
}

// traceID reads the record's name of a trace; all zeros is none.
func traceID(s string) (id pcommon.TraceID, ok bool) {
	if len(s) != 2*len(id) {
		return id, false
	}
	if _, err := hex.Decode(id[:], []byte(s)); err != nil {
		return pcommon.TraceID{}, false
	}
	return id, !id.IsEmpty()
}

func spanID(s string) (id pcommon.SpanID, ok bool) {
	if len(s) != 2*len(id) {
		return id, false
	}
	if _, err := hex.Decode(id[:], []byte(s)); err != nil {
		return pcommon.SpanID{}, false
	}
	return id, !id.IsEmpty()
}

func hash(parts ...string) (id pcommon.TraceID) {
	h := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	copy(id[:], h[:])
	return id
}

func spanHash(trace pcommon.TraceID, parts ...string) (id pcommon.SpanID) {
	h := sha256.Sum256(append(trace[:], strings.Join(parts, "\x00")...))
	copy(id[:], h[:])
	return id
}
