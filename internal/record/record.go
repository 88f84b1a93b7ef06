package record

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/text"
)

// Options configure a record. The zero value redacts nothing and uses the system's clock.
type Options struct {
	Redact *Redactor
	Clock  func() time.Time
	// Sink sees every event after it was written, valid only until Sink returns. It is called under the record's lock,
	// one event at a time, in order.
	Sink func(Line)
}

// Record is events.jsonl open for appending. It is safe for concurrent use; only the holder of the session's lock may
// have one.
type Record struct {
	opts Options
	path string
	out  *jsonl.File
	sum  *sum // hash of the contents of out
	mu   sync.Mutex
	buf  bytes.Buffer
}

// Open opens or creates the record at path. It first repairs and records damage by a crash at the end of the record or
// of the session's other line files. If one of these cannot be opened, the next append to it reports that.
func Open(path string, opts Options, others ...string) (*Record, error) {
	if opts.Clock == nil {
		opts.Clock = time.Now
	}
	r := &Record{opts: opts, path: path}
	repair, err := r.reopen()
	if err != nil {
		return nil, err
	}
	err = r.logRepair(filepath.Base(path), repair)
	for _, other := range others {
		name, rerr := filepath.Rel(filepath.Dir(path), other)
		repair, ferr := jsonl.RepairFile(other)
		if err == nil && rerr == nil && ferr == nil {
			err = r.logRepair(name, repair)
		}
	}
	if err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// reopen opens the current record. Its hash begins with the first Mark: a gigabyte takes a second, which a start that
// commits nothing need not pay.
func (r *Record) reopen() (repair jsonl.Repair, err error) {
	r.sum = &sum{path: r.path, hash: sha256.New()}
	r.out, repair, err = jsonl.Open(r.path)
	return repair, err
}

func (r *Record) logRepair(file string, repair jsonl.Repair) error {
	why := repair.Why()
	if why == "" {
		return nil
	}
	return r.append(&LogRepaired{File: file, CutBytes: &repair.CutBytes, Why: why})
}

// Append writes one event. When it returns, the line is in the file, safe from a crash of the process. The seed,
// verdicts, commits, and the start or end of an operation are also safe from a crash of the machine.
func (r *Record) Append(ev Event) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	err := r.follow()
	if err == nil {
		err = r.append(ev)
	}
	if err != nil {
		return fmt.Errorf("log %s: %w", TypeOf(ev), err)
	}
	return nil
}

func (r *Record) append(ev Event) error {
	line, err := r.encode(r.shortened(ev))
	if err != nil {
		return err
	}
	err = r.out.Add(r.buf.Bytes(), byName[line.Type].durable)
	if err == nil && r.opts.Sink != nil {
		r.opts.Sink(line)
	}
	return err
}

// previewChars limits a tool's result or an error in the record; the transcript has the whole result.
const previewChars = 2000

// shortened returns an event with long texts cut. Secrets are redacted first, because half a secret is not recognised.
func (r *Record) shortened(ev Event) Event {
	switch e := ev.(type) {
	case *ToolResult:
		if len(e.Preview) <= previewChars {
			return ev
		}
		short := *e
		short.Preview = r.opts.Redact.String(e.Preview)
		if more := len(short.Preview) - previewChars; more > 0 {
			short.Preview = fmt.Sprintf("%s\n[... %d more]",
				strings.ToValidUTF8(short.Preview[:previewChars], ""), more)
		}
		return &short
	case *PromptAssembled:
		short := *e
		short.Content = text.Head(r.opts.Redact.String(e.Content), MaxText)
		return &short
	case *ModelCall:
		short := *e
		short.Content = text.Head(r.opts.Redact.String(e.Content), MaxText)
		short.Reasoning = text.Clip(r.opts.Redact.String(e.Reasoning), MaxText)
		short.Error = text.Clip(r.opts.Redact.String(e.Error), previewChars)
		return &short
	}
	return ev
}

// follow reopens the record if its file or length changed since this process wrote it, because it was edited.
func (r *Record) follow() error {
	same, err := r.out.Same()
	if same || err != nil {
		return err
	}
	r.out.Close()
	repair, err := r.reopen()
	if err != nil {
		return err
	}
	return r.logRepair(filepath.Base(r.path), repair)
}

// Mark returns the record's length in bytes and its SHA-256 in hex, for a commit's trailer. The first call reads the
// whole record, later ones only what was appended since.
func (r *Record) Mark() (size int64, sum string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err = r.follow(); err == nil {
		size = r.out.Size()
		sum, err = r.sum.upTo(size)
	}
	if err != nil {
		return 0, "", fmt.Errorf("mark the record: %w", err)
	}
	return size, sum, nil
}

// encode builds the line in r.buf, with its newline, redacted.
func (r *Record) encode(ev Event) (Line, error) {
	r.buf.Reset()
	line := Line{Off: r.out.Size(), TS: FormatTime(r.opts.Clock()), Type: TypeOf(ev)}
	fmt.Fprintf(&r.buf, `{"ts":"%s","type":"%s","payload":`, line.TS, line.Type)
	at := r.buf.Len()
	if err := encode(&r.buf, ev); err != nil {
		return line, err
	}
	// Only the payload is redacted: a secret that is also an event's name cannot make the record unreadable.
	clean := r.opts.Redact.JSON(r.buf.Bytes()[at:])
	r.buf.Truncate(at)
	r.buf.Write(clean)
	end := r.buf.Len()
	r.buf.WriteString("}\n")
	if r.buf.Len() > jsonl.MaxLine {
		return line, fmt.Errorf("the event has %d bytes, and a line at most %d", r.buf.Len(), jsonl.MaxLine)
	}
	line.Raw, line.Payload = r.buf.Bytes()[:end+1], r.buf.Bytes()[at:end:end]
	return line, nil
}

// Size returns the length of the record in bytes: where the next event will begin.
func (r *Record) Size() int64 { return r.out.Size() }

// Close closes the file. Appending after it is an error.
func (r *Record) Close() error { return r.out.Close() }

// FormatTime formats a time for a session's files: RFC 3339 in UTC, to the millisecond.
func FormatTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// ParseTime reads the times of a session's files: RFC 3339, with or without a zone (then UTC). Anything else is the
// zero time.
func ParseTime(s string) time.Time {
	layouts := []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999"}
	for _, layout := range layouts {
		if t, err := time.Parse(layout, s); err == nil {
			return t.UTC()
		}
	}
	return time.Time{}
}

// sum is the hash of the beginning of a file that only grows.
type sum struct {
	path string
	hash hash.Hash
	n    int64 // size in bytes
}

// upTo returns the hash of the first size bytes. It reads only bytes that are not hashed yet.
func (s *sum) upTo(size int64) (string, error) {
	f, err := jsonl.OpenFile(s.path, os.O_RDONLY)
	if err != nil {
		return "", err
	}
	defer f.Close()
	n, err := io.Copy(s.hash, io.NewSectionReader(f, s.n, size-s.n))
	s.n += n
	if err == nil && s.n < size {
		err = io.ErrUnexpectedEOF
	}
	return hex.EncodeToString(s.hash.Sum(nil)), err
}
