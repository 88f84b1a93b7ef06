package view

import (
	"context"
	"errors"
	"hash/maphash"
	"io"
	"os"
	"time"

	"github.com/git-tilth/git-tilth/internal/jsonl"
	"github.com/git-tilth/git-tilth/internal/session"
)

// pollEvery is how often a followed record is looked at. A look costs one stat when nothing has happened. (No inotify:
// it knows nothing of network file systems.)
const pollEvery = 150 * time.Millisecond

// tailBytes is how much before its place a follower remembers, to notice that the record under it was replaced by
// another.
const tailBytes = 512

var tailSeed = maphash.MakeSeed()

// follower reads a record as it grows. It hands out whole lines only, so a torn line shows when it is complete; and it
// notices when the record is not the one that it has read: cut by a rewind, replaced, or cut and grown again in
// between.
type follower struct {
	s    *session.Session
	off  int64 // everything before it was handed out
	tail uint64
	info os.FileInfo // of the record when it was last read
}

// poll hands out the lines that are new. reset says that the record is another one than before; then no line was handed
// out, and the next poll begins at its start.
func (f *follower) poll(fn func(off int64, line []byte) error) (skipped int, reset bool, err error) {
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
	end, skipped, err := f.s.ScanRecord(f.off, fn)
	if errors.Is(err, jsonl.ErrShrunk) {
		return 0, f.restart(), nil
	}
	if err != nil {
		return skipped, false, err
	}
	f.off, f.info = end, info
	f.tail, err = tailHash(f.s.Path(session.RecordFile), end)
	return skipped, false, err
}

// startAt makes off, the beginning of a line, the place to go on from.
func (f *follower) startAt(off int64) (err error) {
	f.off = off
	if off > 0 {
		f.tail, err = tailHash(f.s.Path(session.RecordFile), off)
	}
	return err
}

// restart forgets the place. It reports whether there was anything to forget.
func (f *follower) restart() bool {
	had := f.off > 0
	f.off, f.tail, f.info = 0, 0, nil
	return had
}

func (f *follower) same(info os.FileInfo) bool {
	if info.Size() < f.off {
		return false
	}
	tail, err := tailHash(f.s.Path(session.RecordFile), f.off)
	return err == nil && tail == f.tail
}

// tailHash identifies what stands before end. Lines carry times to the millisecond, so two records do not agree in it
// by chance.
func tailHash(path string, end int64) (uint64, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	n := min(end, tailBytes)
	buf := make([]byte, n)
	if _, err := f.ReadAt(buf, end-n); err != nil && err != io.EOF {
		return 0, err
	}
	return maphash.Bytes(tailSeed, buf), nil
}

// wait returns after d, or false when ctx ends before.
func wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
