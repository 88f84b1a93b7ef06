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

// screenLines is how many lines the review of a session has at most: one screen of a terminal.
const screenLines = 24

// Write prints the review, of one task if it is named, for a person, a program or in Markdown for a pull request.
func (r *Review) Write(w io.Writer, o Terminal, task string, markdown bool) error {
	if o.Width <= 0 {
		o.Width = 80 // a pipe is read like a screen; scripts have --json
	}
	out := bufio.NewWriter(o.Writer(w))
	t := r.Task(task)
	switch {
	case o.JSON && t != nil:
		one := *r
		one.Tasks = []ReviewTask{*t}
		return writeJSON(w, &one)
	case o.JSON:
		return writeJSON(w, r)
	case markdown:
		r.markdown(out, task)
	case t != nil:
		r.task(printer{out, o}, t)
	default:
		r.screen(printer{out, o})
	}
	return out.Flush()
}

// line prints one line, cut to the width, with its beginning in a style.
func (p printer) line(style, head, rest string) {
	head = fit(text.VisibleLine(head), p.term.Width)
	rest = text.VisibleLine(rest)
	if room := p.term.Width - width(head); room > 0 {
		rest = fit(rest, room)
	} else {
		rest = ""
	}
	fmt.Fprintln(p.out, strings.TrimRight(p.term.paint(style, head)+rest, " "))
}

// screen is the review of a session in one screen. What has no room is counted.
func (r *Review) screen(p printer) {
	p.line(bold, r.SessionID, "  "+r.Label)
	p.line(stateStyle(r.State), r.headline(), "")
	p.line(plain, "", r.spent())
	var risks, tasks [][3]string // style, head and rest of a line
	var done []*ReviewTask
	reasons := 0
	for i := range r.Tasks {
		t := &r.Tasks[i]
		for _, s := range t.risks() {
			risks = append(risks, [3]string{yellow, "  " + t.ID + "  ", s})
		}
		if t.Reason != "" {
			reasons++
		}
		if t.Status == session.TaskDone {
			done = append(done, t)
		}
	}
	room := screenLines - 3 - 1 - len(r.Commands) - 1
	if len(risks) > 0 {
		room -= 2 + min(len(risks), 5)
	}
	fold := len(r.Tasks)+reasons > room && len(done) > 1
	if fold {
		tasks = append(tasks, [3]string{green, "done    ", folded(done)})
	}
	for i := range r.Tasks {
		t := &r.Tasks[i]
		if t.Status == session.TaskDone && fold {
			continue
		}
		tasks = append(tasks, [3]string{taskStyle(t.Status), fmt.Sprintf("%-8s", statusWord(t.Status)),
			t.line(p.term.Width - 8)})
		if t.Reason != "" {
			tasks = append(tasks, [3]string{dim, strings.Repeat(" ", 15), t.Reason})
		}
	}
	fmt.Fprintln(p.out)
	p.some(tasks, room)
	if len(risks) > 0 {
		fmt.Fprintln(p.out)
		p.line(bold, "look at before you take it; in full: git tilth review "+strings.TrimSpace(risks[0][1]), "")
		p.some(risks, max(screenLines-3-1-min(len(tasks), room)-2-1-len(r.Commands), 1))
	}
	r.next(p)
}

// some prints lines, at most most of them, the last one of which says how many there are more.
func (p printer) some(lines [][3]string, most int) {
	for i, l := range lines {
		if n := len(lines) - i; i == most-1 && n > 1 {
			p.line(dim, fmt.Sprintf("        and %s more: git tilth review --md", text.Plural(n, "line")), "")
			return
		}
		p.line(l[0], l[1], l[2])
	}
}

// next lists the commands. The terminal wraps one that is too long: cut off it could not be run.
func (r *Review) next(p printer) {
	fmt.Fprintln(p.out)
	longest := 0
	for _, c := range r.Commands {
		longest = max(longest, width(c.Line))
	}
	for i, c := range r.Commands {
		head := "next  "
		if i > 0 {
			head = "      "
		}
		line := text.VisibleLine(c.Line)
		if room := p.term.Width - len(head) - longest - 3; room >= 10 {
			line = fmt.Sprintf("%-*s   %s", longest, line, fit(text.VisibleLine(c.Why), room))
		}
		fmt.Fprintln(p.out, p.term.paint(dim, head)+line)
	}
}

// headline says how the session stands.
func (r *Review) headline() string {
	n, s := r.counts, cmp.Or(r.State, "damaged") // there is a state wherever checkpoint.json can be read
	if r.Stop != "" && r.Stop != "all_done" {
		s += " (" + r.Stop + ")"
	}
	s += fmt.Sprintf(": %d of %s done", n.Done, text.Plural(n.Total, "task"))
	s += counted(count{n.Failed, "failed"}, count{n.Skipped, "skipped"}, count{n.Pending, "to do"})
	if r.Why != "" && n.Failed == 0 {
		s += "; " + r.Why
	}
	return s
}

func (r *Review) spent() string {
	parts := []string{}
	if r.Cost > 0 {
		parts = append(parts, "cost "+Money(r.Cost))
	}
	parts = append(parts, Count(r.Tokens)+" tokens")
	if s := r.span(); s != "" {
		parts = append(parts, s)
	}
	return strings.Join(parts, ", ")
}

// folded is tasks in one line.
func folded(tasks []*ReviewTask) string {
	files, added, deleted := 0, 0, 0
	for _, t := range tasks {
		files, added, deleted = files+t.Files, added+t.Insertions, deleted+t.Deletions
	}
	return fmt.Sprintf("%s, %s to %s  %s", text.Plural(len(tasks), "task"), tasks[0].ID, tasks[len(tasks)-1].ID,
		stat(files, added, deleted))
}

// line is the task in a line of a width: its title, and at the right what it changed and cost.
func (t *ReviewTask) line(columns int) string {
	right := ""
	if t.Files > 0 {
		right = stat(t.Files, t.Insertions, t.Deletions)
	}
	if t.Aside != nil {
		right = "partial work set aside"
	}
	if t.Cost > 0 {
		right += fmt.Sprintf("%8s", Money(t.Cost))
	}
	left := fit(text.VisibleLine(t.ID+"  "+t.Title), max(columns-width(right)-2, 20))
	return left + strings.Repeat(" ", max(columns-width(left)-width(right), 2)) + right
}

func stat(files, added, deleted int) string {
	return fmt.Sprintf("%s +%d -%d", text.Plural(files, "file"), added, deleted)
}

func statusWord(status string) string {
	return cmp.Or(map[string]string{session.TaskPending: "to do", session.TaskFailed: "FAILED"}[status], status)
}

// task is the review of one task.
func (r *Review) task(p printer, t *ReviewTask) {
	p.line(bold, t.ID, "  "+t.Title)
	p.line(taskStyle(t.Status), statusWord(t.Status), prefixed(": ", t.Reason))
	cost := ""
	if t.Cost > 0 {
		cost = Money(t.Cost) + ", "
	}
	p.line(plain, "", fmt.Sprintf("%s%s tokens, %s, %s", cost, Count(t.Tokens),
		text.Plural(int(t.Iterations), "iteration"), text.Plural(int(t.Rejections), "rejection")))
	wrapped := func(head string, lines []string) {
		if len(lines) > 0 {
			fmt.Fprintln(p.out)
			p.line(bold, head, "")
		}
		for _, l := range lines {
			p.wrap("  ", l)
		}
	}
	wrapped("look at", t.risks())
	if t.Summary != "" {
		wrapped("the worker's case", []string{t.Summary})
	}
	for _, c := range t.Coverage {
		p.wrap("  - ", joined(": ", oneLine(c.Criterion), joined(", ", oneLine(c.AddressedBy), oneLine(c.Evidence))))
	}
	if t.Verdict != "" {
		last := "accepted"
		if t.Verdict != "accept" {
			last = "the last one: " + t.Verdict
		}
		wrapped("the verdicts", append(slices.Clone(t.Rejected), last+prefixed(" by ", t.By)))
	}
	wrapped("validators", t.Validators)
	wrapped("changed", t.Changed)
	if t.Aside != nil {
		wrapped("set aside in "+t.Aside.Bundle, t.Aside.Files)
	}
	r.next(p)
}

// wrap prints a text in lines of the width.
func (p printer) wrap(indent, s string) {
	line := indent
	for _, word := range strings.Fields(text.VisibleLine(s)) {
		if width(line)+width(word) >= p.term.Width && strings.TrimSpace(line) != "" {
			p.line(plain, "", line)
			line = strings.Repeat(" ", len(indent))
		}
		line += word + " "
	}
	p.line(plain, "", line)
}

// markdown is the review as the text of a pull request. Titles aside, all words in it are a model's: none of them is
// markup, mentions a person or closes an issue.
func (r *Review) markdown(out *bufio.Writer, only string) {
	fmt.Fprintf(out, "%s\n\n%s; session `%s`\n\n| task | | change |\n|---|---|---|\n", r.headline(), r.spent(),
		r.SessionID)
	var risks []string
	for i := range r.Tasks {
		t := &r.Tasks[i]
		if only != "" && t.ID != only {
			continue
		}
		change := ""
		if t.Files > 0 {
			change = stat(t.Files, t.Insertions, t.Deletions)
		}
		fmt.Fprintf(out, "| %s | %s | %s |\n", t.ID+" "+inMarkdown(t.Title),
			statusWord(t.Status)+inMarkdown(prefixed(": ", t.Reason)), change)
		for _, s := range t.risks() {
			risks = append(risks, fmt.Sprintf("- %s %s", t.ID, inMarkdown(s)))
		}
	}
	if len(risks) > 0 {
		fmt.Fprintf(out, "\nTo look at:\n\n%s\n", strings.Join(risks, "\n"))
	}
}

var markdownSigns = strings.NewReplacer(`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "<", "&lt;",
	">", "&gt;", "|", `\|`, "&", "&amp;", "@", "@\u200b", "#", "#\u200b", "!", `\!`, "://", ":\u200b//")

func inMarkdown(s string) string { return markdownSigns.Replace(text.VisibleLine(s)) }

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

func resultLine(r record.ValidatorResult) string {
	switch {
	case r.Skipped:
		return oneLine(r.Name + " skipped: " + deref(r.Output))
	case r.Passed:
		return oneLine(fmt.Sprintf("%s passed in %.1f s", r.Name, r.Seconds))
	}
	return oneLine(r.Name + " failed: " + text.FailingLine(deref(r.Output)))
}
