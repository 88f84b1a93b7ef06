package view

import (
	"encoding/json"
	"strconv"
)

// A page gets its events in blocks. Each has an index, which the page reads at
// once, and the events themselves, which it parses when a reader comes near.
const (
	blockEvents = 512
	blockBytes  = 512 << 10
	maxNames    = 1000 // distinct types or tasks of a page; more come from no harness
	maxFact     = 400  // bytes of a text that the index repeats
)

// names numbers the strings that repeat in an index. Numbers are never reused, so
// that a page only has to be told the new ones.
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
	before := len(b.events)
	if before > 0 {
		b.events = append(b.events, ",\n"...)
	}
	out, err := b.scan.copyEvent(b.events, line)
	left := b.scan.left
	if err != nil {
		// The session's reader has found it to be an object; what this one cannot
		// take is shown as text.
		out, left = b.asText(line)
	}
	b.events = out
	b.index()
	if left > 0 {
		b.cut = appendPair(b.cut, b.n)
		b.cut = strconv.AppendInt(b.cut, int64(left), 10)
		b.cut = append(b.cut, ']')
	}
	b.n++
	b.total++
	return b.n >= blockEvents || len(b.events) >= blockBytes
}

// asText stands in for an event that is too deep or too wide for a page: its
// beginning as one string.
func (b *blocks) asText(line []byte) (out []byte, left int) {
	typ := plainString(b.scan.part(b.scan.typ))
	ts := plainString(b.scan.part(b.scan.ts))
	part := line[:min(len(line), maxString/4)]
	v, err := json.Marshal(map[string]any{"ts": ts, "type": typ, "payload": map[string]string{"text": string(part)}})
	if err != nil {
		v = []byte("{}")
	}
	return append(b.events, v...), len(line) - len(part)
}

// raw2 is a value of the envelope.
func (s *safeJSON) part(at span) []byte {
	if !at.ok() {
		return nil
	}
	return at.of(s.in)
}

// index adds the event just read to the block's columns.
func (b *blocks) index() {
	s := &b.scan
	sep := b.n > 0
	typ := plainString(s.part(s.typ))
	b.typ = appendInt(b.typ, sep, int64(b.types.of(typ)))
	task := int64(-1)
	if id := s.str(fTask); id != "" {
		task = int64(b.tasks.of(id))
	}
	b.task = appendInt(b.task, sep, task)
	b.iter = appendInt(b.iter, sep, int64(min(max(s.num(fIter), 0), 1e6)))
	b.dt = appendInt(b.dt, sep, b.elapsed(s.part(s.ts)))
	b.remember(typ)
	at := len(b.facts)
	b.facts = appendPair(b.facts, b.n)
	if facts, ok := appendFacts(b.facts, s, typ); ok {
		b.facts = append(facts, ']')
	} else {
		b.facts = b.facts[:at]
	}
}

// elapsed is the time since the event before in milliseconds; clocks may go back.
func (b *blocks) elapsed(ts []byte) int64 {
	at := b.last
	if t, ok := eventTime(ts); ok {
		at = t.UnixMilli()
	}
	if b.n == 0 {
		b.start, b.last = at, at
	}
	d := at - b.last
	b.last = at
	return d
}

// remember notes the commits, whose diffs a page shows.
func (b *blocks) remember(typ string) {
	if typ != "commit" && typ != "seed_committed" {
		return
	}
	if sha := b.scan.str(fSHA); isObjectID(sha) {
		b.commits = append(b.commits, sha)
	}
}

// isObjectID tells whether s could name a commit: what is no hexadecimal number
// is never handed to git.
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

// appendFacts appends the members of an event that the page's head is computed
// from: {"p":prompt tokens, "e":eval tokens, "c":cached, "r":reasoning, "$":cost,
// "ph":phase, "h":health, "v":verdict, "g":category, "w":concern, "x":parse
// failed, "ok":passed, "why":reason, "sha":commit, "o":outcome}.
func appendFacts(out []byte, s *safeJSON, typ string) ([]byte, bool) {
	f := factWriter{out: append(out, '{')}
	switch typ {
	case "model_call":
		f.number("p", s.num(fPrompt))
		f.number("e", s.num(fEval))
		f.number("c", s.num(fCached))
		f.number("r", s.num(fReasoning))
		f.number("$", s.num(fCost))
		f.number("tot", s.num(fTotal))
		f.text("ph", s.str(fPhase))
		if h := s.str(fHealth); h != "ok" {
			f.text("h", h)
		}
	case "evaluator_verdict", "judge_verdict":
		v := s.str(fVerdict)
		if v == "" && s.isTrue(fAccept) {
			v = "accept" // Python Tilth's older form
		}
		f.text("v", v)
		f.text("g", s.str(fCategory))
		f.text("w", s.str(fConcern))
		f.text("next", s.str(fNextStep))
		f.flag("x", s.isTrue(fParseFailed))
	case "validator_run":
		if raw := s.raw(fPassed); raw != nil {
			f.number("ok", map[bool]float64{true: 1, false: -1}[s.isTrue(fPassed)])
		}
	case "task_failed", "stop":
		f.text("why", s.str(fReason))
	case "session_start", "session_resume":
		f.text("ph", s.str(fPhase))
		f.text("why", s.str(fLastStop))
	case "commit", "seed_committed":
		f.text("sha", s.str(fSHA))
	case "hook_run":
		f.text("o", s.str(fOutcome))
	case "prompt_assembled":
		f.text("ph", s.str(fRole))
	case "tool_call":
		f.text("t", s.str(fTool))
	}
	return append(f.out, '}'), f.any
}

type factWriter struct {
	out []byte
	any bool
}

func (f *factWriter) key(k string) {
	if f.any {
		f.out = append(f.out, ',')
	}
	f.any = true
	f.out = append(f.out, '"')
	f.out = append(f.out, k...)
	f.out = append(f.out, '"', ':')
}

func (f *factWriter) number(k string, v float64) {
	if v != 0 {
		f.key(k)
		f.out = strconv.AppendFloat(f.out, v, 'g', -1, 64)
	}
}

func (f *factWriter) flag(k string, v bool) {
	if v {
		f.number(k, 1)
	}
}

func (f *factWriter) text(k, v string) {
	if v == "" {
		return
	}
	f.key(k)
	f.out = appendSafeString(f.out, v, maxFact)
}

// appendSafeString appends s as a JSON string that can stand in a script element.
func appendSafeString(out []byte, s string, max int) []byte {
	if len(s) > max {
		s = s[:max] + "…"
	}
	plain := true
	for i := range len(s) {
		if special[s[i]] {
			plain = false
			break
		}
	}
	if plain {
		out = append(out, '"')
		out = append(out, s...)
		return append(out, '"')
	}
	v, err := json.Marshal(s) // escapes <, >, & and the line separators
	if err != nil {
		return append(out, `""`...)
	}
	return append(out, v...)
}
