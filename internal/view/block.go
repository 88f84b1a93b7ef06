package view

import (
	"encoding/json"
	"strconv"

	"github.com/git-tilth/git-tilth/internal/record"
)

// A page gets its events in blocks. Each has an index, which the page reads at once, and the events themselves, which it
// parses when a reader comes near.
const (
	blockEvents = 512
	blockBytes  = 512 << 10
	maxNames    = 1000 // distinct types or tasks of a page; more come from no harness
	maxFact     = 400  // characters of a text that the index repeats
)

// names numbers the strings that repeat in an index. Numbers are never reused, so that a page only has to be told the
// new ones.
type names struct {
	number map[string]int
	fresh  []string // not yet told
}

func (n *names) of(s string) int {
	if i, ok := n.number[s]; ok {
		return i
	}
	if len(n.number) >= maxNames || len(s) > 100 {
		s = "other"
		if i, ok := n.number[s]; ok {
			return i
		}
	}
	if n.number == nil {
		n.number = make(map[string]int)
	}
	i := len(n.number)
	n.number[s] = i
	n.fresh = append(n.fresh, s)
	return i
}

// blocks turns lines of a record into blocks for a page.
type blocks struct {
	scan         safeJSON
	types, tasks names
	n            int
	start, last  int64 // Unix milliseconds of the block's first and latest event
	events       []byte
	typ, task    []byte
	iter, dt     []byte
	facts, cut   []byte
	commits      []string // sha of each commit in the block
	total        int      // events of all blocks
}

// add takes one line of the record. It reports whether the block is full.
func (b *blocks) add(line []byte) (full bool) {
	e := record.Parse(line)
	if len(b.events) > 0 {
		b.events = append(b.events, ",\n"...)
	}
	out, left, err := b.scan.copyEvent(b.events, line)
	if err != nil {
		// The session's reader has found it to be an object; what this one cannot take is shown as text.
		out, left = asText(b.events, e)
	}
	b.events = out
	b.index(e)
	if left > 0 {
		b.cut = appendPair(b.cut, b.n)
		b.cut = strconv.AppendInt(b.cut, int64(left), 10)
		b.cut = append(b.cut, ']')
	}
	b.n++
	b.total++
	return b.n >= blockEvents || len(b.events) >= blockBytes
}

// asText appends what stands in for an event that is too deep or too wide for a page: its beginning as one string.
func asText(out []byte, e record.Line) (_ []byte, left int) {
	type beginning struct {
		Text string `json:"text"`
	}
	part := e.Raw[:min(len(e.Raw), maxString/4)]
	data, err := json.Marshal(struct {
		TS      string    `json:"ts"`
		Type    string    `json:"type"`
		Payload beginning `json:"payload"`
	}{e.TS, e.Type, beginning{string(part)}})
	if err != nil {
		data = []byte("{}")
	}
	return append(out, data...), len(e.Raw) - len(part)
}

// index adds an event to the block's columns.
func (b *blocks) index(e record.Line) {
	ev := e.Event()
	common := ev.Common()
	sep := b.n > 0
	b.typ = appendInt(b.typ, sep, int64(b.types.of(e.Type)))
	task := int64(-1)
	if common.TaskID != "" {
		task = int64(b.tasks.of(common.TaskID))
	}
	b.task = appendInt(b.task, sep, task)
	b.iter = appendInt(b.iter, sep, int64(min(max(common.Iter, 0), 1e6)))
	b.dt = appendInt(b.dt, sep, b.elapsed(e.TS))
	if f := factsOf(ev); f != (facts{}) {
		if isObjectID(f.SHA) {
			b.commits = append(b.commits, f.SHA)
		}
		data, err := json.Marshal(f) // escapes <, >, & and the line separators
		if err == nil {
			b.facts = append(append(appendPair(b.facts, b.n), data...), ']')
		}
	}
}

// elapsed is the time since the event before in milliseconds; clocks may go back.
func (b *blocks) elapsed(ts string) int64 {
	at := b.last
	if t := parseTime(ts); !t.IsZero() {
		at = t.UnixMilli()
	}
	if b.n == 0 {
		b.start, b.last = at, at
	}
	d := at - b.last
	b.last = at
	return d
}

// isObjectID reports whether s could name a commit: what is no hexadecimal number is never handed to git.
func isObjectID(s string) bool {
	if len(s) < 4 || len(s) > 64 {
		return false
	}
	for i := range len(s) {
		if !isHex(s[i]) {
			return false
		}
	}
	return true
}

// appendIndex appends the block's index as JSON.
func (b *blocks) appendIndex(out []byte) []byte {
	out = append(out, `{"n":`...)
	out = strconv.AppendInt(out, int64(b.n), 10)
	out = append(out, `,"t0":`...)
	out = strconv.AppendInt(out, b.start, 10)
	out = append(out, `,"names":`...)
	out = appendStrings(out, b.types.fresh)
	out = append(out, `,"tasks":`...)
	out = appendStrings(out, b.tasks.fresh)
	for _, col := range []struct {
		name string
		data []byte
	}{{"type", b.typ}, {"task", b.task}, {"iter", b.iter}, {"dt", b.dt}, {"facts", b.facts}, {"cut", b.cut}} {
		out = append(out, ',', '"')
		out = append(out, col.name...)
		out = append(out, '"', ':', '[')
		out = append(out, col.data...)
		out = append(out, ']')
	}
	return append(out, '}')
}

// reset begins the next block.
func (b *blocks) reset() {
	b.n = 0
	b.types.fresh, b.tasks.fresh = b.types.fresh[:0], b.tasks.fresh[:0]
	b.events, b.typ, b.task, b.iter = b.events[:0], b.typ[:0], b.task[:0], b.iter[:0]
	b.dt, b.facts, b.cut, b.commits = b.dt[:0], b.facts[:0], b.cut[:0], b.commits[:0]
	if cap(b.events) > 4*maxEvent {
		b.events = nil // one huge event must not hold its memory to the end
	}
}

func appendInt(out []byte, sep bool, v int64) []byte {
	if sep {
		out = append(out, ',')
	}
	return strconv.AppendInt(out, v, 10)
}

// appendPair begins the pair [n,… in a sparse column.
func appendPair(out []byte, n int) []byte {
	if len(out) > 0 {
		out = append(out, ',')
	}
	out = append(out, '[')
	out = strconv.AppendInt(out, int64(n), 10)
	return append(out, ',')
}

func appendStrings(out []byte, list []string) []byte {
	v, err := json.Marshal(list)
	if err != nil || len(list) == 0 {
		return append(out, "[]"...)
	}
	return append(out, v...)
}
