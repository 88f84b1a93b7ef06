package view

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/text"
)

// event prints one event: time, task, type and line, shortened to the terminal's width; in a pipe separated by tabs
// and complete.
func (l *logger) event(e record.Line) {
	ev := e.Event()
	where := text.VisibleLine(ev.Common().TaskID)
	if n := ev.Common().Iter; n > 0 && where != "" {
		where += "/" + strconv.Itoa(n)
	}
	style, says := Line(ev, e.Payload)
	says = text.VisibleLine(text.HeadBytes(says, maxLine))
	if !l.o.TTY {
		l.out.WriteString(strings.Join([]string{text.VisibleLine(e.TS), where, text.VisibleLine(e.Type), says}, "\t"))
		return
	}
	clock := ""
	if t := record.ParseTime(e.TS); !t.IsZero() {
		clock = t.Local().Format(time.TimeOnly)
	}
	head := fmt.Sprintf("%-8s  %-9s ", clock, Fit(where, 9))
	name := fmt.Sprintf("%-18s", Fit(text.VisibleLine(e.Type), 18))
	if l.o.Width > 0 {
		says = Fit(says, max(l.o.Width-Width(head)-Width(name)-1, 20))
	}
	l.out.WriteString(l.o.Paint(dim, head) + l.o.Paint(style, name) + " " + says)
}

// RunLine returns a line of a run's output: the time of day and a text in the style of an event, or plain for nil.
func (t Terminal) RunLine(at time.Time, ev record.Event, says string) string {
	style := bold
	if ev != nil {
		style, _ = Line(ev, nil)
	}
	const margin = "          " // the time's
	if t.Width > 2*len(margin) {
		says = strings.ReplaceAll(text.Hang(says, t.Width-len(margin), ""), "\n", "\n"+margin)
	}
	return t.Paint(dim, at.Local().Format("15:04:05")) + "  " + t.Paint(style, says)
}

const maxLine = 4 << 10 // bytes; longer than any terminal line

// membersLine lists the members of an event without a special line.
func membersLine(payload []byte) string {
	var b strings.Builder
	gjson.ParseBytes(payload).ForEach(func(key, v gjson.Result) bool {
		if !slices.Contains([]string{"task_id", "trace_id", "span_id", "iter"}, key.Str) { // they are shown everywhere
			b.WriteString("  " + key.Str + "=" + text.HeadBytes(v.String(), maxLine))
		}
		return b.Len() < maxLine
	})
	return strings.TrimPrefix(b.String(), "  ")
}

// joined returns the parts that are not empty.
func joined(between string, parts ...string) string {
	kept := parts[:0]
	for _, p := range parts {
		if p != "" {
			kept = append(kept, p)
		}
	}
	return strings.Join(kept, between)
}

// deref returns the value of an optional member, or zero.
func deref[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}
