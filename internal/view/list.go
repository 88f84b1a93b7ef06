package view

import (
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/git-tilth/git-tilth/internal/config"
	"github.com/git-tilth/git-tilth/internal/session"
)

// ListOptions say how list prints.
type ListOptions struct {
	Terminal
	JSON   bool
	Source bool // with the repo of each session: the list is of all repos
	Now    time.Time
}

// Tasks counts the tasks of a session, as --json shows them.
type Tasks struct {
	Total   int `json:"total"`
	Done    int `json:"done"`
	Failed  int `json:"failed"`
	Pending int `json:"pending"`
}

// Row is one session of `list --json`; `show --json` has the same members and more. Times are RFC 3339, cost is in
// dollars, last_stop is empty where there is none.
type Row struct {
	SessionID   string   `json:"session_id"`
	Status      string   `json:"status"` // as in checkpoint.json
	State       string   `json:"state"`  // status, or what it means now: running, stopped, crashed
	Source      string   `json:"source"`
	Branch      string   `json:"branch"`
	Workspace   string   `json:"workspace"`
	Label       string   `json:"label"`
	Tasks       Tasks    `json:"tasks"`
	TokensUsed  int64    `json:"tokens_used"`
	Cost        float64  `json:"cost"`
	LastStop    string   `json:"last_stop"`
	LastStopAt  string   `json:"last_stop_at,omitempty"`
	StartedAt   string   `json:"started_at"`
	LastEventAt string   `json:"last_event_at,omitempty"`
	Holder      *Holder  `json:"holder,omitempty"`
	Rewinding   bool     `json:"rewinding,omitempty"`
	Resetting   bool     `json:"resetting,omitempty"`
	Failure     *Failure `json:"failure,omitempty"`
	Skipped     int      `json:"skipped,omitempty"` // lines at the record's end that are no events; show has them all
	Problems    []string `json:"problems,omitempty"`
}

// Holder is the process that has a session now.
type Holder struct {
	PID   int    `json:"pid"`
	Host  string `json:"host"`
	Since string `json:"since"`
}

// RowOf is an overview in the shape of --json.
func RowOf(o session.Overview) Row {
	r := Row{
		SessionID: o.ID, Status: o.Status, State: State(o), Source: o.Source, Branch: o.Branch, Workspace: o.Workspace,
		Label: o.Label, Tasks: Tasks(o.Tasks), TokensUsed: o.TokensUsed, Cost: o.Cost, LastStop: o.LastStop,
		LastStopAt: o.LastStopAt, StartedAt: o.StartedAt, LastEventAt: o.LastEventAt, Rewinding: o.Rewinding,
		Resetting: o.Resetting, Failure: failureIn(o), Skipped: o.Skipped, Problems: o.Problems,
	}
	if o.Busy != nil {
		r.Holder = &Holder{PID: o.Busy.PID, Host: o.Busy.Host, Since: fmt.Sprint(o.Busy.Since)}
	}
	return r
}

// failureIn is why a session is failed, nil for one that is not: nothing more is read of that.
func failureIn(o session.Overview) *Failure {
	if o.Status != session.Failed || o.Dir == "" {
		return nil
	}
	return readFailure(filepath.Join(o.Dir, session.RecordFile))
}

// State is a session's status as a person means it. The checkpoint of a stopped session says `running`, because nothing
// about its work is wrong.
func State(o session.Overview) string {
	switch {
	case o.Busy != nil:
		return "running"
	case o.Resetting:
		return "resetting"
	case o.Rewinding:
		return "rewinding"
	case o.Status != session.Running:
		return o.Status
	case o.LastStop != "":
		return "stopped"
	default:
		return "crashed"
	}
}

func stateStyle(state string) string {
	switch state {
	case "running":
		return green
	case "all_done":
		return plain
	case "failed", "crashed":
		return red
	case "stopped", "rewinding", "resetting":
		return yellow
	}
	return cyan
}

// List prints sessions in the order given, one a line, or as a JSON array.
func List(w io.Writer, rows []session.Overview, o ListOptions) error {
	if o.JSON {
		out := make([]Row, len(rows))
		for i, r := range rows {
			out[i] = RowOf(r)
		}
		return writeJSON(w, out)
	}
	t := table{term: o.Terminal, columns: []column{
		{name: "SESSION"}, {name: "STATUS"}, {name: "TASKS", spare: true}, {name: "TOKENS", right: true, spare: true},
		{name: "COST", right: true, spare: true}, {name: "AGE", right: true, spare: true},
		{name: "LAST STOP", spare: true}, {name: "LABEL", grow: true}, {name: "SOURCE", grow: true},
	}}
	for _, r := range rows {
		state := State(r)
		label, tasks := r.Label, taskCount(r.Tasks)
		if len(r.Problems) > 0 {
			if r.Tasks.Total == 0 {
				tasks = "-" // there may well be a seed, which nothing can be read of
			}
			label = "! " + r.Problems[0]
		}
		source := ""
		if o.Source || !o.TTY {
			source = r.Source
		}
		if o.TTY {
			source = filepath.Base(source)
			if source == "." {
				source = ""
			}
		}
		t.add(cell{r.ID, plain}, cell{state, stateStyle(state)}, cell{tasks, plain}, cell{Count(r.TokensUsed), plain},
			cell{costOrNothing(r.Cost), plain}, cell{Age(o.Now, startOf(r)), plain}, cell{r.LastStop, stopStyle(r.LastStop)},
			cell{label, labelStyle(r)}, cell{source, dim})
		if f := failureIn(r); f != nil {
			t.note(f.String())
		}
	}
	return t.write(w)
}

func labelStyle(r session.Overview) string {
	if len(r.Problems) > 0 {
		return red
	}
	return plain
}

func stopStyle(reason string) string {
	switch {
	case reason == "all_done" || reason == "":
		return plain
	case reason == "interrupted" || config.IsCapStop(reason):
		return yellow
	}
	return red
}

// taskCount is "2/3", with the failed ones named. A session without tasks is one whose preparation has not come to a
// seed.
func taskCount(c session.TaskCounts) string {
	if c.Total == 0 {
		return "no seed"
	}
	s := fmt.Sprintf("%d/%d", c.Done, c.Total)
	if c.Failed > 0 {
		s += fmt.Sprintf(" %d failed", c.Failed)
	}
	return s
}

func costOrNothing(v float64) string {
	if v == 0 {
		return "-"
	}
	return Money(v)
}

// startOf is when a session began: what its checkpoint says, else what its id does.
func startOf(o session.Overview) time.Time {
	if t, ok := session.IDTime(o.ID); ok {
		return t
	}
	return parseTime(o.StartedAt)
}

func writeJSON(w io.Writer, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	_, err = w.Write(append(data, '\n'))
	return err
}
