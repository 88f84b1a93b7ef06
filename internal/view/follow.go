package view

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
)

// pollEvery is the interval at which a followed record is checked. A check without new events costs one stat. (inotify
// does not work on network file systems.)
const pollEvery = 150 * time.Millisecond

// follower reads a growing record. It returns complete lines only, so a torn line appears when it is complete. It
// detects another record at its path: cut by a rewind, replaced, or cut and grown again in between.
type follower struct {
	s    *session.Session
	off  int64       // end of the lines that poll returned
	read string      // fingerprint of the record up to off
	info os.FileInfo // file info of the record at the last read
}

// poll returns the new lines. reset means that the record was replaced; then poll returned no line, and the next poll
// starts at its beginning.
func (f *follower) poll(fn func(record.Line) error) (skipped int, reset bool, err error) {
	info, err := os.Stat(f.s.Path(session.RecordFile))
	if errors.Is(err, os.ErrNotExist) {
		return 0, f.restart(), nil
	}
	if err != nil {
		return 0, false, err
	}
	was := f.info
	if was != nil && os.SameFile(was, info) && info.Size() == was.Size() && info.ModTime().Equal(was.ModTime()) {
		return 0, false, nil
	}
	if f.off > 0 && !f.same(info) {
		return 0, f.restart(), nil
	}
	end, skipped, err := record.Scan(f.s.Path(session.RecordFile), f.off, fn)
	if errors.Is(err, jsonl.ErrShrunk) {
		return 0, f.restart(), nil
	}
	if err != nil {
		return skipped, false, err
	}
	f.info = info
	if err = f.startAt(end); errors.Is(err, jsonl.ErrShrunk) {
		err = nil // the next poll detects it
	}
	return skipped, false, err
}

// startAt continues from off, the beginning of a line.
func (f *follower) startAt(off int64) (err error) {
	f.off = off
	f.read, err = record.Fingerprint(f.s.Path(session.RecordFile), off)
	return err
}

// restart goes back to the beginning of the record. It reports whether any line was read.
func (f *follower) restart() bool {
	had := f.off > 0
	f.off, f.read, f.info = 0, "", nil
	return had
}

func (f *follower) same(info os.FileInfo) bool {
	if info.Size() < f.off {
		return false
	}
	now, err := record.Fingerprint(f.s.Path(session.RecordFile), f.off)
	return err == nil && now == f.read
}

// wait waits for d. It returns false if ctx ends before.
func wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
