package view

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
)

// tracer turns the events of a record, in their order, into spans. A span goes out when it ends; parents may follow
// their children. The record has one time for each event, when it was written: a model call or a validator run began
// when the event before it was written, a tool ran from its call to its result.
type tracer struct {
	s       *session.Session
	send    sendFunc
	err     error // the first one of send
	titles  map[string]string
	models  map[string]string // by role
	agents  map[string]string
	session *scope
	tasks   map[string]*scope // of each task the latest run
	runs    map[traceID]int   // how often a trace was begun
	batch   []*span
}

// sendFunc takes one batch of spans.
type sendFunc func(*tracesData) error

// batchSpans is how many spans go out at once: far below what receivers take.
const batchSpans = 500

// scope is one trace while it is read: the session's or a task's.
type scope struct {
	root     *span
	recorded traceID         // what the record calls the trace
	iters    map[spanID]bool // names of iterations that are taken
	last     moment          // of the latest event
	iter     *span
	n        int // number of iter
	review   *span
	tools    []*span
	prompts  map[string]string // the latest prompt of each role
	seq      int               // numbers the spans that the record does not name
	resumed  moment            // when a wait that a failed call announced was over
}

func newTracer(s *session.Session, send sendFunc) *tracer {
	return &tracer{
		s: s, send: send, titles: map[string]string{}, models: map[string]string{}, agents: map[string]string{},
		runs: map[traceID]int{}, tasks: map[string]*scope{},
	}
}

// event takes in the next event of the record.
func (x *tracer) event(e record.Line) error {
	if e.Type == "" {
		return nil
	}
	ev := e.Event()
	at := momentAt(e.TS)
	if x.session == nil {
		x.session = newScope(traceHash("session", x.s.ID), at, "session "+x.s.ID)
		x.session.root.attrs["session.id"] = x.s.ID
	}
	sc := x.session
	if common := ev.Common(); common.TaskID != "" {
		sc = x.enter(common.TaskID, common.TraceID, at)
	}
	at = max(at, sc.last) // a clock went back, or there is no time; the order is what is known
	x.iteration(sc, *ev.Common())
	x.take(sc, ev, e, at)
	sc.last = at
	x.session.last = max(at, x.session.last)
	return x.err
}

// momentAt is a time that a span can carry, the epoch where the event has none.
func momentAt(ts string) moment {
	t := record.ParseTime(ts)
	if t.Year() < 1970 || t.Year() > 2200 {
		return 0
	}
	return moment(t.UnixNano())
}

// enter is the scope of a task's run. Another trace id is another run; those of several tasks may take turns.
func (x *tracer) enter(task, trace string, at moment) *scope {
	id, was := traceHash("task", x.s.ID, task), x.tasks[task]
	if named := readID(id[:], trace); was != nil && (!named || was.recorded == id) {
		return was
	}
	x.end(was)
	if delete(x.tasks, task); len(x.tasks) >= maxOpen {
		x.endTasks()
	}
	at = max(at, x.session.root.Begin)
	x.runs[id]++
	name := "task " + task
	if t := x.titles[task]; t != "" {
		name += ": " + t
	}
	recorded := id
	if n := x.runs[id]; n > 1 { // two runs in one trace would be a trace with two roots
		id = traceHash("again", hex.EncodeToString(id[:]), strconv.Itoa(n))
	}
	sc := newScope(id, at, name)
	sc.recorded = recorded
	sc.root.attrs["tilth.task.id"] = task
	sc.root.attrs["session.id"] = x.s.ID
	sc.root.Links = []spanLink{{x.session.root.TraceID, x.session.root.ID}}
	x.tasks[task] = sc
	return sc
}

// endTasks ends the runs of all tasks, in the order of their ids, so that the same record gives the same batches.
func (x *tracer) endTasks() {
	for _, task := range slices.Sorted(maps.Keys(x.tasks)) {
		x.end(x.tasks[task])
	}
	clear(x.tasks)
}

func newScope(id traceID, at moment, name string) *scope {
	root := &span{TraceID: id, ID: spanHash(id, "root"), Name: name, Kind: kindInternal, Begin: at, attrs: attributes{}}
	return &scope{root: root, last: at, prompts: map[string]string{}, iters: map[spanID]bool{}}
}

// finish ends what is open and sends the rest.
func (x *tracer) finish() error {
	x.endTasks()
	x.end(x.session)
	if len(x.batch) > 0 {
		x.flush()
	}
	return x.err
}

// end closes a scope: what is still open in it ends with its latest event.
func (x *tracer) end(sc *scope) {
	if sc == nil {
		return
	}
	x.endIteration(sc)
	x.put(sc.root, spanID{}, sc.last)
}

func (x *tracer) endIteration(sc *scope) {
	for _, t := range sc.tools {
		x.put(t, sc.parent(), sc.last)
	}
	sc.tools = nil
	x.endReview(sc, sc.last)
	if sc.iter != nil {
		x.put(sc.iter, sc.root.ID, sc.last)
		sc.iter = nil
	}
}

func (x *tracer) endReview(sc *scope, at moment) {
	if sc.review != nil {
		x.put(sc.review, sc.parent(), at)
		sc.review = nil
	}
}

// parent is the span that a new one is put under.
func (sc *scope) parent() spanID {
	if sc.iter != nil {
		return sc.iter.ID
	}
	return sc.root.ID
}

// begin makes a span that the record has no name for. The same record gives the same names, so that exporting twice
// does not double a trace.
func (sc *scope) begin(name string, at moment, attrs attributes) *span {
	sc.seq++
	id := spanHash(sc.root.TraceID, hex.EncodeToString(sc.root.ID[:]), strconv.Itoa(sc.seq))
	return &span{
		TraceID: sc.root.TraceID, ID: id, Name: strings.TrimSpace(name), Kind: kindInternal, Begin: at, attrs: attrs,
	}
}

// fail makes a span one that failed.
func (s *span) fail(why string) { s.Status = spanStatus{why, statusError} }

// put sends a span that ends at end, as soon as a batch is full.
func (x *tracer) put(s *span, parent spanID, end moment) {
	s.Parent, s.End, s.Attributes = parent, end, s.attrs.list()
	if len(x.batch) >= batchSpans {
		x.flush()
	}
	x.batch = append(x.batch, s)
}

func (x *tracer) flush() {
	if x.err == nil {
		x.err = x.send(tracesOf(x.s.ID, x.batch))
	}
	x.batch = nil
}

// readID reads the record's name of a trace or a span. It reports whether there was one; all zeros is none.
func readID(id []byte, s string) bool {
	read, err := hex.DecodeString(s)
	if err != nil || len(read) != len(id) || strings.Trim(s, "0") == "" {
		return false
	}
	copy(id, read)
	return true
}

func traceHash(parts ...string) (id traceID) {
	h := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	copy(id[:], h[:])
	return id
}

func spanHash(trace traceID, parts ...string) (id spanID) {
	h := sha256.Sum256(append(trace[:], strings.Join(parts, "\x00")...))
	copy(id[:], h[:])
	return id
}
