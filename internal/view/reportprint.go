package view

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/session"
	"github.com/git-tilth/git-tilth/internal/text"
)

// screenLines is the maximum number of lines of a session's review: one screen of a terminal.
const screenLines = 24

// Write prints the review, or that of one task, for a terminal, a program or in Markdown for a pull request.
func (r *Report) Write(w io.Writer, o Terminal, task string, markdown bool) error {
	wide := o.Width <= 0 || o.Width >= wideColumns
	if o.Width <= 0 {
		o.Width = 80 // a pipe gets the screen with complete reasons of failures; scripts use --json
	}
	out := bufio.NewWriter(w)
	t := r.Task(task)
	switch {
	case o.JSON && t != nil:
		one := *r
		one.Tasks = []ReportTask{*t}
		return one.Write(w, o, "", false)
	case o.JSON:
		why := ""
		if r.Failure != nil {
			why = r.Failure.String()
		}
		return writeJSON(w, struct {
			*Report
			Stop   string `json:"stop"`
			Why    string `json:"why,omitempty"` // the last run failed, in the words of the objection
			Tokens int64  `json:"tokens"`
		}{r, r.LastStop, why, r.TokensUsed})
	case markdown:
		r.markdown(out, task)
	case t != nil:
		r.task(printer{out, o}, t)
	default:
		r.screen(printer{out, o}, wide)
	}
	return out.Flush()
}

// line prints one line, cut to the width, with its beginning in a style.
func (p printer) line(style, head, rest string) {
	head = Fit(text.VisibleLine(head), p.term.Width)
	rest = text.VisibleLine(rest)
	if room := p.term.Width - Width(head); room > 0 {
		rest = Fit(rest, room)
	} else {
		rest = ""
	}
	fmt.Fprintln(p.out, strings.TrimRight(p.term.Paint(style, head)+rest, " "))
}

// wideColumns is the terminal width from which reasons of failures are shown in full.
const wideColumns = 160

// Standing returns the state and the cost of the session, one per line.
func (r *Report) Standing() []string {
	lines := []string{r.headline()}
	if why := r.stopped(); why != "" {
		lines = append(lines, text.Clip(text.VisibleLine(why), 160))
	}
	return append(append(lines, r.Spent()), r.edited()...)
}

// notices counts the unchecked tasks, and names whatever is not committed.
func (r *Report) notices() (lines []string) {
	var unchecked []*ReportTask
	why := ""
	for _, t := range r.done() {
		if t.Unchecked {
			why, _, _ = strings.Cut(strings.TrimPrefix(t.Checks[0], notChecked), " (")
			unchecked = append(unchecked, t)
		}
	}
	if n := len(unchecked); n > 0 {
		lines = append(lines, fmt.Sprintf("%s NOT checked: %s; %s", text.Plural(n, "task"), r.idsOf(unchecked), why))
	}
	return append(lines, r.edited()...)
}

// edited returns the time of waits, the state of the request, and the submodules with uncommitted edits.
func (r *Report) edited() (lines []string) {
	if waited := r.waited(); waited != "" {
		lines = append(lines, waited)
	}
	if r.Request != nil {
		lines = append(lines, r.Request.Line())
	}
	if len(r.Edited) > 0 {
		lines = append(lines, "uncommitted edits in submodules: "+strings.Join(r.Edited, ", "))
	}
	return append(lines, r.Notes...)
}

// screenLine is a line of the screen: its style, its head in that style, and the rest.
type screenLine struct{ style, head, rest string }

// screen prints the review of a session in one screen, and the number of tasks without room. wide shows the full
// reasons of failures.
func (r *Report) screen(p printer, wide bool) {
	p.line(bold, r.ID, "  "+r.Label)
	p.line(styles[r.State], r.headline(), "")
	above := 3
	if p.term.TTY {
		above++ // for the prompt below
	}
	if why := r.stopped(); why != "" {
		lines := p.lines("", why, 3, wide)
		p.rows(lines, len(lines))
		above += len(lines)
	}
	p.line(plain, "", r.Spent())
	for _, line := range r.notices() {
		p.line(yellow, "", line)
		above++
	}
	risks, tasks := r.riskRows(p), r.taskRows(p, false, wide, nil)
	room := screenLines - above - 1 - len(r.Commands) - 1
	if len(risks) > 0 {
		room -= 2 + min(len(risks), 5)
	}
	if n := len(r.Commands) - fewCommands; len(tasks) > room && n > 0 {
		r.Commands, room = r.Commands[:fewCommands], room+n
	}
	for _, brief := range []bool{false, true} {
		if done := r.done(); len(tasks) > room {
			tasks = r.folded(p, done)
			rest := r.taskRows(p, brief, wide && !brief, done)
			few := min(len(tasks), max(room-len(rest), 1))
			tasks = append(tasks[:few], rest...)
		}
	}
	if n := min(len(risks), 5) - 2; n > 0 {
		room = max(room, min(len(tasks), room+n)) // failed tasks come first
	}
	fmt.Fprintln(p.out)
	p.rows(tasks, room)
	if len(risks) > 0 {
		fmt.Fprintln(p.out)
		p.line(bold, "to check; details: git tilth review "+strings.TrimSpace(risks[0].head), "")
		p.rows(risks, max(screenLines-above-1-min(len(tasks), room)-2-1-len(r.Commands), 1))
	}
	r.next(p)
}

// Unfinished prints the tasks that are not done, as the review does, each failed one with the command that helps.
func (r *Report) Unfinished(w io.Writer, o Terminal) {
	out := bufio.NewWriter(w)
	o.Width = cmp.Or(o.Width, 80)
	p := printer{out, o}
	for i := range r.Tasks {
		t := &r.Tasks[i]
		if t.Status == session.TaskDone || t.Status == session.TaskSkipped {
			continue
		}
		rows := r.rowsOf(p, t, false, true)
		p.rows(rows, len(rows))
		if t.Status == session.TaskFailed && t.help != "" {
			fmt.Fprintln(out, "         "+text.VisibleLine(t.afterFailure(r.ID)[0].Line))
		}
	}
	out.Flush()
}

// done returns the tasks that are done.
func (r *Report) done() (done []*ReportTask) {
	for i := range r.Tasks {
		if t := &r.Tasks[i]; t.Status == session.TaskDone {
			done = append(done, t)
		}
	}
	return done
}

// fewCommands is the number of commands on a full screen.
const fewCommands = 5

// riskRows returns the points to check, each in at most two lines.
func (r *Report) riskRows(p printer) (rows []screenLine) {
	for _, risk := range r.risks() {
		head := "  " + risk.task + "  "
		lines := p.lines(strings.Repeat(" ", Width(head)), risk.says, 2, false)
		for j := range lines {
			lines[j].style = plain
		}
		lines[0].style, lines[0].head = yellow, head
		rows = append(rows, lines...)
	}
	return rows
}

// taskRows returns the lines of the tasks, except tasks in without.
func (r *Report) taskRows(p printer, brief, wide bool, without []*ReportTask) (rows []screenLine) {
	for i := range r.Tasks {
		if t := &r.Tasks[i]; !slices.Contains(without, t) {
			rows = append(rows, r.rowsOf(p, t, brief, wide)...)
		}
	}
	return rows
}

// rowsOf returns the lines of one task. A brief failure has one line, with its cause instead of its title. Otherwise
// the reason has one line and the cause two, or more if wide.
func (r *Report) rowsOf(p printer, t *ReportTask, brief, wide bool) (rows []screenLine) {
	const indent = "        "
	says, first := t.line(p.term.Width-len(indent)), t.first()
	if brief && t.Status == session.TaskFailed && p.term.TTY {
		says = t.ID + "  " + t.inBrief(p.term.Width-len(indent)-Width(t.ID)-2)
	} else if brief && t.Status == session.TaskFailed {
		says = joined(": ", t.ID+"  "+t.Title, t.Reason)
	}
	rows = append(rows, screenLine{styles[t.Status], fmt.Sprintf("%-8s", statusWord(t.Status)), says})
	switch {
	case r.refused(t):
		rows = append(rows, screenLine{yellow, indent, first + "; the commit hook says:"})
		said := r.hookSaid()
		for _, said := range said[:min(len(said), maxHookLines)] {
			rows = append(rows, p.lines(indent+"  ", said, 3, true)...)
		}
	case brief || t.Reason == "" && t.Status != session.TaskDone:
	case t.Status == session.TaskDone && t.Reason == "":
		rows = append(rows, p.lines(indent, t.checked(false), 2, false)...)
	case t.Cause != "" && first != "":
		rows = append(rows, screenLine{styles[t.Status], indent, first})
		rows = append(rows, p.lines(indent, t.Cause, 2, wide)...)
	default:
		rows = append(rows, p.lines(indent, t.Reason, 2, wide)...)
	}
	return rows
}

// first returns the reason without its cause.
func (t *ReportTask) first() string {
	return strings.TrimSuffix(strings.TrimSuffix(t.Reason, t.Cause), ": ")
}

// inBrief returns the reason why the task is not done in one line. If the line is too short, it cuts the cause first.
func (t *ReportTask) inBrief(columns int) string {
	if Width(t.Reason) <= columns || t.failure == nil || t.Cause == "" {
		return t.Reason
	}
	word := inBrackets(t.failure.Reason)
	return Fit(text.VisibleLine(t.Cause), columns-len(word)) + word
}

// maxHookLines limits a commit hook's output on one screen, in lines.
const maxHookLines = 8

// hookSaid returns the lines of the commit hook that refused.
func (r *Report) hookSaid() []string {
	if r.Failure == nil {
		return nil
	}
	return r.Failure.Words
}

// refused reports whether a task is accepted but a commit hook refuses its commit.
func (r *Report) refused(t *ReportTask) bool {
	return len(r.hookSaid()) > 0 && t.Status == session.TaskPending && strings.HasPrefix(t.Reason, "accepted, ")
}

// lines wraps a text into at most so many lines, or with whole into as many as it needs.
func (p printer) lines(indent, s string, most int, whole bool) (rows []screenLine) {
	lines := []string{text.VisibleLine(s)}
	if p.term.TTY {
		lines = strings.Split(text.Wrap(lines[0], max(p.term.Width-len(indent), 20)), "\n")
	}
	if !whole && len(lines) > most {
		lines = append(lines[:most-1], strings.Join(lines[most-1:], " "))
	}
	for _, line := range lines {
		rows = append(rows, screenLine{dim, indent, line})
	}
	return rows
}

// rows prints at most most lines; the last one counts the rest.
func (p printer) rows(lines []screenLine, most int) {
	for i, l := range lines {
		if n := len(lines) - i; i == most-1 && n > 1 {
			p.line(dim, fmt.Sprintf("        and %s more: git tilth review --md", text.Plural(n, "line")), "")
			return
		}
		if !p.term.TTY { // whole in a pipe
			fmt.Fprintln(p.out, strings.TrimRight(p.term.Paint(l.style, l.head)+text.VisibleLine(l.rest), " "))
			continue
		}
		p.line(l.style, l.head, l.rest)
	}
}

// next lists the commands.
func (r *Report) next(p printer) { fmt.Fprint(p.out, "\n"+p.term.Commands("next  ", r.Commands)) }

// headline returns the state of the session and the number of tasks in each state.
func (r *Report) headline() string {
	n := r.Overview.Tasks
	return fmt.Sprintf("%s: %d of %s done", r.State, n.Done, text.Plural(n.Total, "task")) +
		counted(count{n.Failed, "failed"}, count{n.Skipped, "skipped"}, count{n.Pending, "pending"})
}

// EndLine returns the reason why a run stopped and the number of tasks that ended.
func (r *Report) EndLine(reason string) string {
	n := r.Overview.Tasks
	return fmt.Sprintf("%s  %d of %d tasks done", reason, n.Done, n.Total) +
		counted(count{n.Failed, "failed"}, count{n.Skipped, "skipped"})
}

// stopped returns why the last run stopped, "" if all was done. The reason of a failure is at its task.
func (r *Report) stopped() string {
	if r.LastStop == "" || record.ReasonOf(r.LastStop).Last {
		return ""
	}
	s := "stopped: " + inWords(r.LastStop)
	if reset := record.ParseTime(r.Reset); !reset.IsZero() {
		s += ", until " + reset.Local().Format("Jan 2 15:04")
	}
	if f := r.Failure; f != nil && len(f.Words) == 0 {
		t := r.Task(f.Task)
		if r.Overview.Tasks.Failed == 0 || t != nil && t.Status != session.TaskFailed {
			s += "; " + f.String()
		}
	}
	return s
}

// idsOf names tasks. Three and more that follow each other are named by the first and the last one.
func (r *Report) idsOf(tasks []*ReportTask) string {
	ids := []string{}
	for i, from := 0, 0; i < len(r.Tasks); i++ {
		t := &r.Tasks[i]
		switch n := i - from; {
		case !slices.Contains(tasks, t):
			from = i + 1
		case n < 2:
			ids = append(ids, t.ID)
		default:
			ids = append(ids[:len(ids)-1-2/n], r.Tasks[from].ID+" to "+t.ID)
		}
	}
	return strings.Join(ids, ", ")
}

// folded returns the tasks that are done in one line, followed by their checks.
func (r *Report) folded(p printer, done []*ReportTask) (rows []screenLine) {
	files, added, deleted, taken := 0, 0, 0, []string{}
	for _, t := range done {
		files, added, deleted = files+t.Files, added+t.Insertions, deleted+t.Deletions
		if t.Taken != "" {
			taken = append(taken, t.ID)
		}
	}
	if len(done) == 0 {
		return nil
	}
	says := text.Plural(len(done), "task") + ", " + r.idsOf(done) + "  " + stat(files, added, deleted)
	rows = []screenLine{{green, "done    ", says + prefixed("; taken: ", strings.Join(taken, ", "))}}
	for _, line := range r.CheckLines(false) {
		rows = append(rows, screenLine{dim, "        ", Fit(text.VisibleLine(line), p.term.Width-8)})
	}
	return rows
}

// line returns the task in a line of a width: its title, and right-aligned its changes and cost.
func (t *ReportTask) line(columns int) string {
	right := ""
	if t.Files > 0 {
		right = stat(t.Files, t.Insertions, t.Deletions)
	}
	if t.Taken != "" {
		right = strings.TrimSuffix("taken, "+right, ", ")
	}
	if t.Aside != nil {
		right = "partial work stashed"
	}
	if t.Cost > 0 {
		right += fmt.Sprintf("%8s", Money(t.Cost))
	}
	left := Fit(text.VisibleLine(t.ID+"  "+t.Title), max(columns-Width(right)-2, 20))
	return left + strings.Repeat(" ", max(columns-Width(left)-Width(right), 2)) + right
}

func stat(files, added, deleted int) string {
	return fmt.Sprintf("%s +%d -%d", text.Plural(files, "file"), added, deleted)
}

func statusWord(status string) string {
	return cmp.Or(map[string]string{session.TaskPending: "pending", session.TaskFailed: "FAILED"}[status], status)
}

// effort returns the task's cost, tokens, iterations and rejections.
func (t *ReportTask) effort() string {
	cost := ""
	if t.Cost > 0 {
		cost = Money(t.Cost)
	}
	return joined(", ", cost, Count(t.Tokens)+" tokens", text.Plural(int(t.Iterations), "iteration"),
		text.Plural(int(t.Rejections), "rejection"))
}

// task prints the review of one task.
func (r *Report) task(p printer, t *ReportTask) {
	p.line(bold, t.ID, "  "+t.Title)
	p.wrap("", statusWord(t.Status)+prefixed(": ", t.Reason)+prefixed(", taken into ", oneLine(t.Taken)))
	for _, f := range append([]labelled{fact("Check", t.risks()...)}, t.facts()...) {
		if len(f.Says) > 0 {
			fmt.Fprintln(p.out)
			p.line(bold, strings.ToLower(f.Label), "")
		}
		for _, says := range f.Says {
			p.wrap("  ", says)
		}
	}
	r.next(p)
}

// wrap prints a text in lines of the width.
func (p printer) wrap(indent, s string) {
	for line := range strings.SplitSeq(text.Wrap(indent+text.VisibleLine(s), p.term.Width), "\n") {
		p.line(plain, "", line)
	}
}

func prefixed(prefix, s string) string {
	if s == "" {
		return ""
	}
	return prefix + s
}

func times(n int64) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}
