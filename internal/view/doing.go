package view

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/text"
)

// Doings are the current activities of a session's workers, by task.
type Doings map[string]Doing

// Doing is a worker's current activity: the last tool of this turn and its target.
type Doing struct {
	What  string
	Since time.Time
}

// Feed adds the next event of the record, and reports whether it changes an activity. An event without a task is for
// all. Events after a turn change nothing.
func (d Doings) Feed(l record.Line) bool {
	task, _ := l.Task()
	switch l.Type {
	case "tool_call":
		if call, ok := l.Event().(*record.ToolCall); ok {
			d[task] = Doing{strings.TrimSpace(call.Tool + " " + on(call.Args)), record.ParseTime(l.TS)}
		}
		return true
	case "tool_result", "agent_waits", "pre_tool_block", "agent_session":
		return false
	}
	if delete(d, task); task == "" {
		clear(d)
	}
	return true
}

// Text returns the activity in at most room columns; 0 is no limit. With several workers it names each one's task.
func (d Doings) Text(now time.Time, room int) string {
	var parts []string
	for _, task := range slices.Sorted(maps.Keys(d)) {
		if len(d) == 1 {
			return d[task].Text(now, room)
		}
		name := text.VisibleLine(task) + " "
		parts = append(parts, name+d[task].Text(now, max(room/len(d)-Width(name)-len(", "), 0)))
	}
	return strings.Join(parts, ", ")
}

// Text returns the activity in at most room columns, or any number with 0; "" for none. It never leaves out the
// duration.
func (d Doing) Text(now time.Time, room int) string {
	if d.What == "" || d.Since.IsZero() {
		return ""
	}
	what, long := text.VisibleLine(d.What), " for "+Span(now.Sub(d.Since))
	if room > 0 {
		what = Fit(what, max(room-len(long), 1))
	}
	return what + long
}

// maxOn is the number of characters that are shown of a command.
const maxOn = 60

// on returns the file or command of a tool's arguments in a few words.
func on(args []byte) string {
	said, isFile := argument(args)
	if dir, file := path.Split(path.Clean(said)); isFile {
		said = path.Join(path.Base(dir), file)
	}
	return text.Clip(text.OneLine(said), maxOn)
}

// argument returns the file that a tool's arguments name, else its command. Programs have many names for these.
func argument(args []byte) (said string, isFile bool) {
	for _, in := range []string{"", "input."} {
		for _, key := range []string{"file_path", "filePath", "absolute_path", "notebook_path", "path", "0.path"} {
			if at := gjson.GetBytes(args, in+key).Str; at != "" {
				return at, true
			}
		}
		for _, key := range []string{"command", "pattern", "query", "url"} {
			if said := gjson.GetBytes(args, in+key).Str; said != "" {
				return said, false
			}
		}
	}
	return cmp.Or(gjson.GetBytes(args, "title").Str, gjson.GetBytes(args, "summary").Str), false
}
