package view

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"time"

	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
)

// LogOptions say which events log prints, and how.
type LogOptions struct {
	Terminal
	Follow bool
	Tail   int    // only the last events that match the filter; 0: all
	Task   string // only events of this task
	Type   string // only events of this type
}

// Log prints the record of a session, oldest first. With Follow it continues with appended events, through stops,
// resumes and rewinds, until ctx ends or the session is deleted, which is not an error. The cost of Tail depends on
// the distance of its events from the end, not on the record's length. With JSON it prints the record's lines. It
// returns the number of lines that are not events.
func Log(ctx context.Context, w io.Writer, s *session.Session, o LogOptions) (skipped int, err error) {
	l := &logger{out: bufio.NewWriter(w), o: o, doing: Doings{}}
	f := &follower{s: s}
	after := int64(-1)
	if o.Tail > 0 {
		if after, skipped, err = l.tail(s); err != nil {
			return skipped, err
		}
		if err := f.startAt(max(after, 0)); err != nil {
			return skipped, err
		}
	}
	replaced := false
	for {
		if replaced && there(s.Path(session.RecordFile)) {
			replaced = false
			if after, err = l.rewound(s); err != nil {
				return skipped, err
			}
		}
		if o.Follow && removed(s) {
			return skipped, nil
		}
		n, reset, err := f.poll(func(e record.Line) error {
			l.doing.Feed(e)
			if err := ctx.Err(); err != nil || e.Off <= after || !l.fits(e) {
				return err
			}
			return l.write(e)
		})
		skipped += n
		l.showDoing(s)
		if failed := l.out.Flush(); failed != nil {
			err = failed // failed to write the output
		}
		if ctx.Err() != nil {
			return skipped, nil
		}
		if err != nil || !o.Follow && !reset {
			return skipped, err
		}
		if reset {
			// A missing record may be replaced by another one, or is deleted with its session.
			replaced = true
			continue
		}
		after = -1
		if !wait(ctx, pollEvery) {
			return skipped, nil
		}
	}
}

// removed reports whether a session, or at least its record, was deleted. It returns false for a session without a
// record yet.
func removed(s *session.Session) bool {
	return !there(s.Dir) || !there(s.Path(session.RecordFile)) && there(s.Path(session.ResetMarkFile))
}

// there returns false only if a path certainly does not exist.
func there(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, os.ErrNotExist)
}

type logger struct {
	out   *bufio.Writer
	o     LogOptions
	doing Doings
	shown string // the part on the terminal's last line
}

// showDoing keeps a last line with the worker's activity, on a terminal that follows a running session.
func (l *logger) showDoing(s *session.Session) {
	if !l.o.Follow || !l.o.TTY || l.o.JSON {
		return
	}
	const label = "now: "
	now := l.doing.Text(time.Now(), max(l.o.Width-1-len(label), 0))
	if now == l.shown {
		return
	}
	if _, runs := s.Holder(); !runs {
		now = ""
	}
	l.clear()
	if now != "" {
		l.out.WriteString(label + now)
		l.shown = now
	}
}

// clear takes the last line off the terminal.
func (l *logger) clear() {
	if l.shown != "" {
		l.out.WriteString("\r\x1b[K")
		l.shown = ""
	}
}

// tail prints the last events that match and returns the offset of the record's last line, at which following starts;
// -1 if there is no line.
func (l *logger) tail(s *session.Session) (last int64, skipped int, err error) {
	last = -1
	var lines []record.Line
	told := !l.o.Follow // the worker's current action, which an earlier event may have
	skipped, err = jsonl.Tail(s.Path(session.RecordFile), func(off int64, raw []byte) bool {
		last = max(last, off)
		e := record.Parse(raw)
		told = told || l.doing.Feed(e)
		if len(lines) < l.o.Tail && l.fits(e) {
			lines = append(lines, record.Parse(slices.Clone(raw)))
		}
		return len(lines) < l.o.Tail || !told
	})
	if err != nil {
		return last, skipped, err
	}
	for _, line := range slices.Backward(lines) {
		l.write(line)
	}
	return last, skipped, l.out.Flush()
}

// rewound reports that the record was cut, and returns the offset up to which its lines have been printed: a rewind
// keeps everything up to the seed's commit.
func (l *logger) rewound(s *session.Session) (int64, error) {
	seed := int64(-1)
	_, _, err := record.Scan(s.Path(session.RecordFile), 0, func(e record.Line) error {
		if e.Type == "seed_committed" {
			seed = e.Off
		}
		return nil
	})
	l.clear()
	if !l.o.JSON {
		l.out.WriteString(l.o.Paint(yellow, "-- the record was replaced; this is the new one --") + "\n")
	}
	return seed, err
}

func (l *logger) fits(e record.Line) bool {
	task, _ := e.Task()
	return (l.o.Type == "" || e.Type == l.o.Type) && (l.o.Task == "" || task == l.o.Task)
}

func (l *logger) write(e record.Line) error {
	l.clear()
	if l.o.JSON {
		l.out.Write(e.Raw)
	} else {
		l.event(e)
	}
	return l.out.WriteByte('\n')
}
