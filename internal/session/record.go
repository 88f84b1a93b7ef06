package session

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/git-tilth/git-tilth/internal/text"
)

// Event is one line of the record.
type Event struct {
	TS      string          `json:"ts"` // RFC 3339, UTC
	Type    string          `json:"type"`
	Payload json.RawMessage `json:"payload"` // an object
}

// ParseEvent reads a line that a scan handed out. Fields of another type than theirs are empty; Payload is a part of
// line, not a copy.
func ParseEvent(line []byte) Event {
	var ev Event
	eachMember(asString(line), func(key, raw string) bool {
		switch {
		case key == "ts" && raw[0] == '"':
			ev.TS = strings.Clone(unquote(raw))
		case key == "type" && raw[0] == '"':
			ev.Type = strings.Clone(unquote(raw))
		case key == "payload" && isObjectText(raw):
			ev.Payload = bytesOf(raw)
		}
		return true
	})
	return ev
}

// RecordOptions are what a record needs from outside. The zero value redacts nothing and uses the system's clock.
type RecordOptions struct {
	Redact *Redactor
	Clock  func() time.Time
	// Sink sees every event after it was written: the line without its newline and the parsed event, both valid only
	// until Sink returns. It is called under the record's lock, one event at a time, in order.
	Sink func(line []byte, ev Event)
}

// Record is events.jsonl open for appending. It is safe for concurrent use; only the lock's holder may have one.
type Record struct {
	of   *Session
	opts RecordOptions
	out  *appender
	mu   sync.Mutex
	buf  bytes.Buffer
	enc  *json.Encoder
}

// OpenRecord opens the record of the session, made if it is missing. What a crash left at the end of the record, and of
// the session's other JSON-lines files, is repaired first, and logged as log_repaired.
func (s *Session) OpenRecord(opts RecordOptions) (*Record, error) {
	if opts.Clock == nil {
		opts.Clock = time.Now
	}
	out, repair, err := openAppender(s.Path(RecordFile), isObject)
	if err != nil {
		return nil, err
	}
	r := &Record{of: s, opts: opts, out: out}
	r.enc = json.NewEncoder(&r.buf)
	r.enc.SetEscapeHTML(false)
	repair.File = RecordFile
	repairs := append([]Repair{repair}, s.repairOthers()...)
	for _, rep := range repairs {
		if rep.Why() == "" {
			continue
		}
		payload := map[string]any{"file": rep.File, "cut_bytes": rep.CutBytes, "why": rep.Why()}
		if err := r.AppendSync("log_repaired", payload); err != nil {
			out.close()
			return nil, err
		}
	}
	return r, nil
}

// repairOthers repairs the ledgers, the transcripts and the interview. A file that cannot be opened is left to whoever
// will append to it, and who will then say so.
func (s *Session) repairOthers() []Repair {
	paths := []string{s.Path(InterviewFile)}
	for _, dir := range []string{LedgerDir, ConversationDir} {
		more, _ := filepath.Glob(filepath.Join(text.GlobQuote(s.Path(dir)), "*.jsonl"))
		paths = append(paths, more...)
	}
	var repairs []Repair
	for _, path := range paths {
		f, err := OpenFile(path, os.O_RDWR|os.O_APPEND)
		if err != nil {
			continue
		}
		rep, err := repairTail(f, isObject)
		f.Close()
		if rel, rerr := filepath.Rel(s.Dir, path); err == nil && rerr == nil && rep.Why() != "" {
			rep.File = rel
			repairs = append(repairs, rep)
		}
	}
	return repairs
}

// Append writes one event. payload must encode to a JSON object; nil is an empty one. When Append returns, the line is in
// the file, safe from a crash of the process; it costs microseconds.
func (r *Record) Append(typ string, payload any) error { return r.append(typ, payload, false) }

// AppendSync is Append and an fsync, safe from a crash of the machine too: for verdicts, commits, stops and the seed.
func (r *Record) AppendSync(typ string, payload any) error { return r.append(typ, payload, true) }

func (r *Record) append(typ string, payload any, sync bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	line, ev, err := r.encode(typ, payload)
	if err == nil {
		err = r.out.add(line, sync)
	}
	if err != nil {
		return fmt.Errorf("log %s: %w", typ, err)
	}
	if r.opts.Sink != nil {
		r.opts.Sink(line[:len(line)-1], ev)
	}
	return nil
}

// encode builds the line in r.buf, with its newline, redacted.
func (r *Record) encode(typ string, payload any) ([]byte, Event, error) {
	r.buf.Reset()
	ts := FormatTime(r.opts.Clock())
	r.buf.WriteString(`{"ts":"` + ts + `","type":`)
	if err := r.enc.Encode(typ); err != nil {
		return nil, Event{}, err
	}
	r.trimNewline()
	r.buf.WriteString(`,"payload":`)
	at := r.buf.Len()
	if payload == nil {
		payload = struct{}{}
	}
	if err := r.enc.Encode(payload); err != nil {
		return nil, Event{}, err
	}
	r.trimNewline()
	raw := r.buf.Bytes()[at:]
	if len(raw) == 0 || raw[0] != '{' {
		return nil, Event{}, errors.New("the payload is no JSON object")
	}
	// Only the payload is redacted: a secret that is also an event's name cannot make the record unreadable.
	if clean := r.opts.Redact.JSON(raw); len(clean) != len(raw) || &clean[0] != &raw[0] {
		r.buf.Truncate(at)
		r.buf.Write(clean)
	}
	end := r.buf.Len()
	r.buf.WriteString("}\n")
	line := r.buf.Bytes()
	if len(line) > maxLine {
		return nil, Event{}, fmt.Errorf("the event is %d bytes long, more than a line may be", len(line))
	}
	return line, Event{TS: ts, Type: typ, Payload: line[at:end:end]}, nil
}

// AppendLedger adds an entry to a task's ledger, redacted like an event, and with the time if it has none.
func (r *Record) AppendLedger(task string, entry LedgerEntry) error {
	if entry.TS == "" {
		entry.TS = FormatTime(r.opts.Clock())
	}
	return r.of.appendLedger(task, entry, r.opts.Redact)
}

// trimNewline drops the newline with which Encode ends.
func (r *Record) trimNewline() { r.buf.Truncate(r.buf.Len() - 1) }

// Size is the length of the record in bytes: where the next event will begin.
func (r *Record) Size() int64 { return r.out.length() }

// Close closes the file. Appending after it is an error.
func (r *Record) Close() error { return r.out.close() }

// FirstEvent finds the oldest event of one of the given types, and the offset behind its line.
func (s *Session) FirstEvent(types ...string) (ev Event, end int64, ok bool, err error) {
	end, _, err = s.ScanRecord(0, func(_ int64, line []byte) error {
		if !slices.Contains(types, eventType(line)) {
			return nil
		}
		ev, ok = ParseEvent(bytes.Clone(line)), true
		return ErrStop
	})
	return ev, end, ok, err
}

// CutRecord cuts events.jsonl behind its first n bytes, durably. n must be the end of a line, or 0. No Record may be open.
func (s *Session) CutRecord(n int64) error {
	f, err := OpenFile(s.Path(RecordFile), os.O_RDWR|syscall.O_NOFOLLOW)
	if err != nil {
		return err
	}
	defer f.Close()
	last := []byte{'\n'}
	if n > 0 {
		if _, err := f.ReadAt(last, n-1); err != nil {
			return fmt.Errorf("cut %s at byte %d: %w", f.Name(), n, err)
		}
	}
	if n < 0 || last[0] != '\n' {
		return fmt.Errorf("cut %s at byte %d: not the end of a line", f.Name(), n)
	}
	if err := f.Truncate(n); err != nil {
		return err
	}
	return f.Sync()
}

// LastEvent finds the newest event of one of the given types (of any, if there are none given), reading backwards. off is
// where its line begins.
func (s *Session) LastEvent(types ...string) (ev Event, off int64, ok bool, err error) {
	_, err = s.TailRecord(func(at int64, line []byte) bool {
		if ok = len(types) == 0 || slices.Contains(types, eventType(line)); ok {
			ev, off = ParseEvent(bytes.Clone(line)), at
		}
		return !ok
	})
	return ev, off, ok, err
}
