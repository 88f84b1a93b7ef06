package view

import (
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
)

// row is one session of `list --json`. `show --json` has the same members and more.
type row struct {
	session.Overview
	State   string   `json:"-"`     // the status, or its current meaning: running, stopped, crashed
	Word    string   `json:"state"` // the status, or taken, or cleansed
	Failure *failure `json:"failure,omitempty"`
}

// pageRow is one session in the live page's list, with the fields of `list`.
type pageRow struct {
	row
	State string `json:"state"`
}

// pageRows returns the overviews as rows of the page, in their order.
func pageRows(all []session.Overview) []pageRow {
	rows := make([]pageRow, len(all))
	for i := range all {
		rows[i] = pageRow{rowOf(all[i]), all[i].State()}
	}
	return rows
}

// rowOf returns an overview in the shape of --json.
func rowOf(o session.Overview) row {
	r := row{Overview: o, State: o.State(), Word: o.Word()}
	if r.objected() && o.Summary != nil {
		r.Failure = failureIn(o.Summary.State)
	}
	return r
}

// objected reports whether the session's last run ended with an objection.
func (r row) objected() bool {
	return (r.Status == session.Failed || r.LastStop != "" && !record.ReasonOf(r.LastStop).Calm) && r.Dir != ""
}

// styles are the styles of the states of sessions and tasks; others are plain.
var styles = map[string]string{"running": green, "done": green, "prepared": cyan, "stopped": yellow,
	"rewinding": yellow, "rewound": yellow, "resetting": yellow, "failed": red, "crashed": red, "damaged": red}

// List prints sessions in the given order, one per line or as a JSON array. With several repositories it names each
// session's.
func List(w io.Writer, all []session.Overview, o Terminal, many bool) error {
	if o.JSON {
		rows := make([]row, len(all))
		for i := range all {
			rows[i] = rowOf(all[i])
		}
		return writeJSON(w, rows)
	}
	t := table{term: o, rows: make([]tableRow, len(all)), columns: []column{
		{name: "SESSION"}, {name: "STATUS"}, {name: "TASKS", spare: true}, {name: "TOKENS", right: true, spare: true},
		{name: "COST", right: true, spare: true}, {name: "AGE", right: true, spare: true},
		{name: "LAST STOP", spare: true}, {name: "LABEL", grow: true}, {name: "SOURCE", grow: true},
	}}
	for i := range all {
		t.rows[i] = rowOf(all[i]).listed(o, many)
	}
	return t.write(w)
}

// listed returns the session as a line of the list.
func (r row) listed(o Terminal, many bool) tableRow {
	label, style, tasks := r.Label, plain, taskCount(r.Tasks)
	if r.ForkedFrom != "" {
		label = joined(", ", label, "fork of "+r.ForkedFrom)
	}
	if r.Request != nil {
		label = joined("; ", r.Request.Line(), label)
	}
	if len(r.Problems) > 0 {
		if r.Tasks.Total == 0 {
			tasks = "-" // there may be a seed, but it is unreadable
		}
		label, style = "! "+r.Problems[0], red
	}
	source, note := "", ""
	switch {
	case !o.TTY:
		source = r.Source
	case many && r.Source != "":
		source = filepath.Base(r.Source)
	}
	if r.Failure != nil {
		note = r.Failure.String()
	}
	return newRow(note, cell{r.ID, plain}, cell{r.State, styles[r.State]}, cell{tasks, plain},
		cell{Count(r.TokensUsed), plain}, cell{orDash(r.Cost, Money), plain},
		cell{age(o.Now, startOf(r.Overview)), plain}, cell{r.LastStop, stopStyle(r.LastStop)}, cell{label, style},
		cell{source, dim})
}

func stopStyle(reason string) string {
	switch why := record.ReasonOf(reason); {
	case why.Last || reason == "":
		return plain
	case why.Calm:
		return yellow
	}
	return red
}

// taskCount returns "2/3", and names failed, skipped and waiting tasks. A session without tasks has no seed yet.
func taskCount(c session.TaskCounts) string {
	if c.Total == 0 {
		return "no seed"
	}
	more := counted(count{c.Failed, "failed"}, count{c.Skipped, "skipped"}, count{c.Waiting, "waiting"})
	return fmt.Sprintf("%d/%d", c.Done, c.Total) + strings.Replace(more, ",", "", 1)
}

// count formats a number with its word, such as 2 failed.
type count struct {
	n  int
	so string
}

// counted returns the counts that are not zero, each after a comma.
func counted(counts ...count) (s string) {
	for _, c := range counts {
		if c.n > 0 {
			s += fmt.Sprintf(", %d %s", c.n, c.so)
		}
	}
	return s
}

// orDash returns a value in words, or a dash for zero.
func orDash[T int64 | float64](v T, words func(T) string) string {
	if v == 0 {
		return "-"
	}
	return words(v)
}

// startOf returns the start time of a session by its id, else by its checkpoint.
func startOf(o session.Overview) time.Time {
	if t, ok := session.IDTime(o.ID); ok {
		return t
	}
	return record.ParseTime(o.StartedAt)
}

func writeJSON(w io.Writer, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	shown, _ := text.Escaped(append(data, '\n'))
	_, err = w.Write(shown)
	return err
}
