package record

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/git-tilth/git-tilth/internal/jsonl"
)

// Line is one line of the record, split but not decoded. Raw and Payload are parts of the read buffer and share its
// lifetime.
type Line struct {
	Off     int64 // offset of the line
	Raw     []byte
	TS      string // RFC 3339, UTC
	Type    string // empty if the line is not an event
	Payload json.RawMessage
}

// Parse splits a line from a scan. Members of another type are empty.
func Parse(line []byte) Line {
	l := Line{Raw: line}
	gjson.Parse(jsonl.Text(line)).ForEach(func(key, value gjson.Result) bool {
		switch {
		case key.Str == "ts" && value.Type == gjson.String:
			l.TS = strings.Clone(value.Str)
		case key.Str == "type" && value.Type == gjson.String:
			l.Type = typeName(value.Str)
		case key.Str == "payload" && value.IsObject():
			l.Payload = line[value.Index : value.Index+len(value.Raw)]
		}
		return true
	})
	return l
}

// typeName returns a copy of name; a type that is known costs none.
func typeName(name string) string {
	if r, ok := byName[name]; ok && r.name == name {
		return r.name
	}
	return strings.Clone(name)
}

// Event decodes the event and keeps no reference to the line.
func (l Line) Event() Event { return Decode(l.Type, l.Payload) }

// Task returns the event's task and iteration. It decodes nothing else, so it is cheap for a long line.
func (l Line) Task() (id string, iter int) {
	payload := jsonl.Text(l.Payload)
	return strings.Clone(gjson.Get(payload, "task_id").String()), int(gjson.Get(payload, "iter").Int())
}

// Brief decodes the event without the texts of prompts and tool results, which are most of a record.
func (l Line) Brief() Event {
	var scope Scope
	switch l.Type {
	case "prompt_assembled", "memory_load", "tool_result":
		scope.TaskID, scope.Iter = l.Task()
	default:
		return l.Event()
	}
	role := strings.Clone(gjson.Get(jsonl.Text(l.Payload), "role").String())
	switch l.Type {
	case "prompt_assembled":
		return &PromptAssembled{Scope: scope, Role: role}
	case "memory_load":
		return &MemoryLoad{Scope: scope, Role: role}
	}
	return &ToolResult{Scope: scope}
}

// Scan hands fn the lines of the record at path from the byte offset from on; see jsonl.Scan.
func Scan(path string, from int64, fn func(Line) error) (end int64, skipped int, err error) {
	return jsonl.Scan(path, from, func(off int64, raw []byte) error {
		l := Parse(raw)
		l.Off = off
		return fn(l)
	})
}

// Tail calls fn with the lines of the record at path from the last one backwards until fn returns false; see
// jsonl.Tail. If a rewind or undo changed a task, it leaves out the task's superseded events: those after the last one
// that counts.
func Tail(path string, fn func(Line) (more bool)) (skipped int, err error) {
	counts := map[string]int64{} // by task, the end of its events that count
	return jsonl.Tail(path, func(off int64, raw []byte) bool {
		l := Parse(raw)
		l.Off = off
		superseded := func(task string) bool {
			end, is := counts[task]
			return is && off >= end
		}
		if len(counts) > 0 {
			if id, _ := l.Task(); id != "" && superseded(id) {
				return true
			}
		}
		if !fn(l) {
			return false
		}
		at, tasks, _ := l.WentBack()
		for id := range tasks {
			if !superseded(id) {
				counts[id] = at
			}
		}
		return true
	})
}

func wentBack(typ string) bool { return typ == "session_rewound" || typ == "session_undone" }

// WentBack reports whether the event is a rewind or undo, and returns the offset up to which earlier events count, and
// the tasks that changed.
func (l Line) WentBack() (at int64, tasks map[string]TaskState, ok bool) {
	if !wentBack(l.Type) {
		return 0, nil, false
	}
	switch e := l.Event().(type) {
	case *SessionRewound:
		return e.Counts, e.Tasks, true
	case *SessionUndone:
		return e.Counts, e.Tasks, true
	}
	return 0, nil, false
}

// Fingerprint identifies the first n bytes of the record at path by their beginning and end. Events carry their time to
// the millisecond and random ids, so a record that was cut and has grown past n again ends differently there.
func Fingerprint(path string, n int64) (string, error) {
	const part = 4096
	h := sha256.New()
	if n > 0 {
		f, err := jsonl.OpenFile(path, os.O_RDONLY)
		if err != nil {
			return "", err
		}
		defer f.Close()
		buf := make([]byte, min(n, part))
		for _, at := range []int64{0, n - int64(len(buf))} {
			if _, err := f.ReadAt(buf, at); err == io.EOF {
				return "", jsonl.ErrShrunk
			} else if err != nil {
				return "", err
			}
			h.Write(buf)
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:8]), nil
}
