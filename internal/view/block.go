package view

import (
	"maps"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/record"
)

// A page gets its events in blocks. Each has an index, which the page reads at once, and the events, which the page
// parses when the reader scrolls near them.
const (
	blockEvents = 512
	blockBytes  = 512 << 10
	maxName     = 100 // bytes of a type or a task; git-tilth writes shorter ones
	maxFact     = 400 // characters of a text that the index repeats
)

// names lists strings that repeat in an index; the index has their numbers.
type names []string

func (n *names) of(s string) int {
	if len(s) > maxName {
		s = "other"
	}
	i := slices.Index(*n, s)
	if i < 0 {
		i = len(*n)
		*n = append(*n, s)
	}
	return i
}

// blocks turns lines of a record into blocks for a page.
type blocks struct {
	last     int64 // Unix milliseconds of the latest event
	events   []byte
	index    blockIndex
	seen     int // events so far
	sections []section
}

// section is an event at which the part of the record that a rewind supersedes may begin.
type section struct {
	off int64
	n   int // number, starting at 1
}

// blockIndex has the fields of a block's events that a page needs before it parses them: a column for each field of all
// events, and pairs of an event's number and a value for rare fields.
type blockIndex struct {
	N     int      `json:"n"`
	Start int64    `json:"t0"`    // Unix milliseconds of the first event
	Names names    `json:"names"` // names of its types
	Tasks names    `json:"tasks"` // tasks of its events, "" for none
	Type  []int    `json:"type"`
	Task  []int    `json:"task"`
	Iter  []int    `json:"iter"`
	DT    []int64  `json:"dt"` // milliseconds since the event before
	Facts [][2]any `json:"facts,omitempty"`
	Cut   [][2]int `json:"cut,omitempty"` // bytes of an event's texts that were left out
}

// add takes one line of the record. It reports whether the block is full.
func (b *blocks) add(e record.Line) (full bool) {
	if len(b.events) > 0 {
		b.events = append(b.events, ",\n"...)
	}
	out, ok := copyEvent(b.events, e.Raw)
	b.note(e)
	if !ok {
		left := 0
		if out, left = asText(b.events, e); left > 0 {
			b.index.Cut = append(b.index.Cut, [2]int{b.index.N, left})
		}
	}
	b.events = out
	b.index.N++
	return b.index.N >= blockEvents || len(b.events) >= blockBytes
}

// maxBeginning is the number of bytes that a page shows of an event that is too deep or too big for it.
const maxBeginning = 64 << 10

// asText appends the beginning of such an event as one string.
func asText(out []byte, e record.Line) (_ []byte, left int) {
	type beginning struct {
		Text string `json:"text"`
	}
	part := e.Raw[:min(len(e.Raw), maxBeginning)]
	data := inPage(struct {
		TS      string    `json:"ts"`
		Type    string    `json:"type"`
		Payload beginning `json:"payload"`
	}{e.TS, e.Type, beginning{string(part)}})
	return append(out, data...), len(e.Raw) - len(part)
}

// note adds an event to the block's index.
func (b *blocks) note(e record.Line) {
	ev := e.Brief()
	common, x := ev.Common(), &b.index
	x.Type, x.Task = append(x.Type, x.Names.of(e.Type)), append(x.Task, x.Tasks.of(common.TaskID))
	x.Iter, x.DT = append(x.Iter, min(max(common.Iter, 0), 1e6)), append(x.DT, b.elapsed(e.TS))
	f := factsOf(ev)
	b.seen++
	switch e.Type {
	case "session_start", "seed_committed", "session_resume", "context_reset", "stop", "log_repaired",
		"session_rewound", "session_undone":
		if at, tasks, back := e.WentBack(); back {
			f.Back, f.Moved = b.sectionAt(at), strings.Join(slices.Sorted(maps.Keys(tasks)), " ")
		}
		b.sections = append(b.sections, section{e.Off, b.seen})
	}
	if f != (facts{}) {
		x.Facts = append(x.Facts, [2]any{x.N, f})
	}
}

// sectionAt returns the number of the first section that begins at off or behind it, 0 for none.
func (b *blocks) sectionAt(off int64) int {
	for _, s := range b.sections {
		if s.off >= off {
			return s.n
		}
	}
	return 0
}

// elapsed returns the time since the event before in milliseconds; clocks may go back.
func (b *blocks) elapsed(ts string) int64 {
	at := b.last
	if t := record.ParseTime(ts); !t.IsZero() {
		at = t.UnixMilli()
	}
	if b.index.N == 0 {
		b.index.Start, b.last = at, at
	}
	d := at - b.last
	b.last = at
	return d
}

// reset begins the next block.
func (b *blocks) reset() {
	b.index = blockIndex{}
	if b.events = b.events[:0]; cap(b.events) > 4*maxEvent {
		b.events = nil // do not keep the memory of one huge event
	}
}
