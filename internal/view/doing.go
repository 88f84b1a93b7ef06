package view

import (
	"path"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/text"
)

// Doing is what a worker does at present: the last tool that it used in this turn, and on what.
type Doing struct {
	What  string
	Since time.Time
}

// Feed takes the next event of the record, and reports whether it says what is done. What follows a turn is none of it.
func (d *Doing) Feed(l record.Line) bool {
	switch l.Type {
	case "tool_call":
		if call, ok := l.Event().(*record.ToolCall); ok {
			*d = Doing{strings.TrimSpace(call.Tool + " " + on(call.Args)), record.ParseTime(l.TS)}
		}
	case "tool_result", "agent_waits", "pre_tool_block", "agent_session":
		return false
	default:
		*d = Doing{}
	}
	return true
}

// Text says it in at most room columns, 0 for any number; "" for nothing. For how long is never what is left out.
func (d Doing) Text(now time.Time, room int) string {
	if d.What == "" || d.Since.IsZero() {
		return ""
	}
	what, long := text.VisibleLine(d.What), " for "+Span(now.Sub(d.Since))
	if room > 0 {
		what = fit(what, max(room-len(long), 1))
	}
	return what + long
}

// maxOn is how much is shown of a command, in characters.
const maxOn = 60

// on is the file that a tool's arguments name, else its command. Programs call them by many names.
func on(args []byte) string {
	for _, in := range []string{"", "input."} {
		for _, key := range []string{"file_path", "filePath", "absolute_path", "notebook_path", "path", "0.path"} {
			if at := gjson.GetBytes(args, in+key).Str; at != "" {
				dir, file := path.Split(path.Clean(at))
				return text.Clip(path.Join(path.Base(dir), file), maxOn)
			}
		}
		for _, key := range []string{"command", "pattern", "query", "url"} {
			if said := gjson.GetBytes(args, in+key).Str; said != "" {
				return text.Clip(text.OneLine(said), maxOn)
			}
		}
	}
	return text.Clip(text.OneLine(gjson.GetBytes(args, "title").Str), maxOn)
}
