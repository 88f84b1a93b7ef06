package record

import (
	"cmp"
	"math"
	"slices"

	"github.com/git-tilth/git-tilth/internal/jsonl"
)

// Begun is how the first attempt at a task began that counts.
type Begun struct {
	*ContextReset
	Counts int64 // the record up to it
	Last   int64 // where the last attempt that counts began; 0 for none
	off    int64 // of its event
}

// Begins reports whether ReadBegun needs the line.
func (l Line) Begins() bool {
	return l.Type == "context_reset" || l.Type == "session_rewound" || l.Type == "session_undone"
}

// ReadBegun returns of the record at path, by their tasks and in the order in which they began, the first attempts that
// no rewind or undo has superseded. A task to which the session was rewound, and that was not begun again, comes last.
// The record is read as a whole where at is nil; at is otherwise where each line that Begins lies, and only those are
// read.
func ReadBegun(path string, at []int64) ([]Begun, error) {
	var all, again []Begun
	var backs [][2]int64 // offset of the event, and up to where the record counts before it
	see := func(l Line) error {
		if l.Type == "context_reset" {
			all = append(all, Begun{ContextReset: l.Event().(*ContextReset), Counts: l.Off, off: l.Off})
		}
		if l.Type == "session_rewound" {
			e := l.Event().(*SessionRewound)
			to := &ContextReset{Scope: Scope{TaskID: e.To}, Base: e.SHA}
			again = append(again, Begun{ContextReset: to, Counts: e.Counts, off: l.Off})
		}
		if at, ok := l.WentBack(); ok && at < l.Off {
			backs = append(backs, [2]int64{l.Off, at})
		}
		return nil
	}
	var err error
	if at == nil {
		_, _, err = Scan(path, 0, see)
	}
	for i := 0; i < len(at) && err == nil; i++ {
		_, _, err = Scan(path, at[i], func(l Line) error { return cmp.Or(see(l), jsonl.ErrStop) })
	}
	all = append(all, again...)
	// From the end backwards, as Tail goes.
	end := int64(math.MaxInt64)
	for _, back := range slices.Backward(backs) {
		if back[0] >= end {
			continue
		}
		all = slices.DeleteFunc(all, func(b Begun) bool { return b.off >= back[1] && b.off < back[0] })
		end = back[1]
	}
	last := map[string]int64{}
	for _, b := range all {
		if b.off == b.Counts {
			last[b.TaskID] = max(last[b.TaskID], b.off)
		}
	}
	for i := range all {
		all[i].Last = last[all[i].TaskID]
	}
	seen := map[string]bool{}
	return slices.DeleteFunc(all, func(b Begun) bool {
		again := b.TaskID == "" || seen[b.TaskID]
		seen[b.TaskID] = true
		return again
	}), err
}
