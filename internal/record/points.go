package record

import "slices"

// Begun is how the first attempt at a task began that counts.
type Begun struct {
	*ContextReset
	Counts int64 // the record up to it
	off    int64 // of its event
}

// ReadBegun reads the record at path as a whole and returns, by their tasks and in the order in which they began, the
// first attempts that no rewind or undo has superseded. A task to which the session was rewound, and that was not begun
// again, comes last.
func ReadBegun(path string) ([]Begun, error) {
	var all, again []Begun
	var backs [][2]int64 // offset of the event, and up to where the record counts before it
	end, _, err := Scan(path, 0, func(l Line) error {
		if l.Type == "context_reset" {
			all = append(all, Begun{l.Event().(*ContextReset), l.Off, l.Off})
		}
		if l.Type == "session_rewound" {
			e := l.Event().(*SessionRewound)
			again = append(again, Begun{&ContextReset{Scope: Scope{TaskID: e.To}, Base: e.SHA}, e.Counts, l.Off})
		}
		if at, ok := l.WentBack(); ok && at < l.Off {
			backs = append(backs, [2]int64{l.Off, at})
		}
		return nil
	})
	all = append(all, again...)
	// From the end backwards, as Tail goes.
	for _, back := range slices.Backward(backs) {
		if back[0] >= end {
			continue
		}
		all = slices.DeleteFunc(all, func(b Begun) bool { return b.off >= back[1] && b.off < back[0] })
		end = back[1]
	}
	seen := map[string]bool{}
	return slices.DeleteFunc(all, func(b Begun) bool {
		again := b.TaskID == "" || seen[b.TaskID]
		seen[b.TaskID] = true
		return again
	}), err
}
