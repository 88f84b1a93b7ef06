package view

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/text"
)

// event prints one event: on a terminal time, task, type and what it says in the width that there is; in a pipe the
// same, separated by tabs and not cut.
func (l *logger) event(e record.Line) {
	ev := e.Event()
	where := text.VisibleLine(ev.Common().TaskID)
	if n := ev.Common().Iter; n > 0 && where != "" {
		where += "/" + strconv.Itoa(n)
	}
	style, says := lineOf(ev, e.Payload)
	says = text.VisibleLine(text.HeadBytes(says, maxLine))
	if !l.o.TTY {
		l.out.WriteString(strings.Join([]string{text.VisibleLine(e.TS), where, text.VisibleLine(e.Type), says}, "\t"))
		return
	}
	clock := ""
	if t := record.ParseTime(e.TS); !t.IsZero() {
		clock = t.Local().Format(time.TimeOnly)
	}
	head := fmt.Sprintf("%-8s  %-9s ", clock, fit(where, 9))
	name := fmt.Sprintf("%-18s", fit(text.VisibleLine(e.Type), 18))
	if l.o.Width > 0 {
		says = fit(says, max(l.o.Width-width(head)-width(name)-1, 20))
	}
	l.out.WriteString(l.o.paint(dim, head) + l.o.paint(style, name) + " " + says)
}

// RunLine is a line of a run's output: the time of day, and what an event says in the style of the event, nil for none.
func (t Terminal) RunLine(at time.Time, ev record.Event, says string) string {
	style := bold
	if ev != nil {
		style, _ = lineOf(ev, nil)
	}
	return t.paint(dim, at.Local().Format("15:04:05")) + "  " + t.paint(style, says)
}

const maxLine = 4 << 10 // bytes: more of a text than any line of a terminal shows

// lineOf is what an event says in one line, and its style: by its kind, and by how it ended where it can fail. The text
// is foreign; the caller cleans it.
func lineOf(ev record.Event, payload []byte) (style, line string) {
	switch ev := ev.(type) {
	case *record.SessionStart:
		phase := ev.Phase
		if ev.ForkedFrom != "" {
			phase = joined(" ", phase, "of", ev.ForkedFrom, "at", ev.At)
		}
		return bold, joined(" ", phase, "in", ev.Source)
	case *record.SessionResume:
		if last := deref(ev.LastStop); last != "" {
			return bold, "after " + last + ": " + ev.Plan
		}
		return bold, ev.Plan // the run before was killed, or there was none
	case *record.SeedCommitted:
		return green, joined(" ", ev.SHA, ev.Branch)
	case *record.MemoryLoad:
		return byRole(ev.Role), text.Plural(ev.UserPromptChars, "character")
	case *record.PromptAssembled:
		return byRole(ev.Role), ev.Role + ", " + text.Plural(ev.Chars, "character")
	case *record.ModelCall:
		return byRole(ev.Phase), modelLine(ev)
	case *record.EmptyModelResponse:
		return red, joined(" ", strconv.Itoa(ev.Streak)+" in a row", ev.FinishReason)
	case *record.Nudge:
		return yellow, ev.Kind + ": " + ev.Content
	case *record.ToolCall:
		return cyan, ev.Tool + " " + argsLine(ev.Args)
	case *record.ToolResult:
		return cyan, ev.Tool + " " + text.Plural(ev.Chars, "character") + ": " + ev.Preview
	case *record.PreToolBlock:
		return red, ev.Tool + " blocked: " + ev.Reason
	case *record.HookRun:
		return cyan, joined(" ", ev.Hook, ev.Outcome, ev.Reason)
	case *record.ValidatorRun:
		return validatorLine(ev)
	case *record.Preflight:
		if !ev.Passed {
			return red, Preflight(ev)
		}
		return plain, Preflight(ev)
	case *record.BuildProducts:
		return plain, "left out of the commit: " + strings.Join(ev.LeftOut, ", ")
	case *record.CaseParseError:
		return red, ev.Error
	case *record.EvaluatorParseError:
		return red, ev.Error
	case *record.EvaluatorVerdict:
		style = yellow
		if ev.Accepted() {
			style = green
		}
		by := ""
		if ev.By == record.ByPerson {
			by = "by a person"
		}
		says := joined(" ", verdictOf(ev), by, deref(ev.RejectionCategory), deref(ev.Concern))
		return style, withNext(says, deref(ev.NextStep))
	case *record.LedgerAppended:
		return bold, ev.VerdictSummary
	case *record.AgentSession:
		return bold, joined("  ", ev.Role, ev.Agent, ev.How, ev.Conversation, ev.Why)
	case *record.AgentWaits:
		return yellow, joined("  ", ev.Agent+" waits", ev.Said, ev.Since)
	case *record.CaseSubmitted:
		return plain, gjson.GetBytes(ev.Case, "summary").String()
	case *record.TaskMarked:
		return bold, joined(": ", ev.Mark+" by a person", ev.Note)
	case *record.TaskDone:
		return green, ev.Summary
	case *record.TaskFailed:
		return red, joined(": ", ev.Reason, ev.Detail, ev.Objection)
	case *record.Commit:
		if ev.Placeholder {
			return red, ev.SHA + " (placeholder of a failed task)"
		}
		return green, ev.SHA
	case *record.SessionRewound:
		return bold, joined(": ", "to "+ev.To+", undo "+strconv.Itoa(ev.Undo), ev.Note)
	case *record.SessionUndone:
		return bold, fmt.Sprintf("undo %d taken back, redo is undo %d", ev.Undo, ev.Redo)
	case *record.RepoChanged:
		return yellow, joined(" ", ev.What, "was", ev.Before, "is", ev.After)
	case *record.LogRepaired:
		return yellow, joined(": ", ev.File, ev.What, ev.Why, ev.Done)
	case *record.Stop:
		return stopStyle(ev.Reason), joined(": ", ev.Reason, ev.Detail, ev.Error)
	case *record.SessionPrepared, *record.ContextReset, *record.ProposedLearnings:
	}
	return bold, membersLine(payload)
}

func byRole(role string) string {
	if role == "" || role == "worker" {
		return blue
	}
	return purple
}

// verdictOf is accept or reject, whichever way the record has it.
func verdictOf(ev *record.EvaluatorVerdict) string {
	if ev.Accepted() {
		return "accept"
	}
	return "reject"
}

func modelLine(ev *record.ModelCall) string {
	health, cost := ev.Health, ""
	if health == "ok" {
		health = ""
	}
	if c := deref(ev.Cost); c > 0 {
		cost = Money(c)
	}
	tokens := Count(ev.PromptTokens) + " → " + Count(ev.EvalTokens)
	return joined("  ", cmp.Or(ev.Phase, "worker"), tokens, cost, joined(": ", health, ev.Error), ev.Content)
}

func argsLine(args []byte) string {
	for _, k := range []string{"command", "path", "pattern", "summary"} {
		if v := gjson.GetBytes(args, k).String(); v != "" {
			return v
		}
	}
	return string(args[:min(len(args), maxLine)])
}

func validatorLine(ev *record.ValidatorRun) (style, line string) {
	style, line = red, "failed"
	if ev.Passed {
		style, line = green, "passed"
	}
	if len(ev.Results) == 0 {
		return style, joined("  ", line, cmp.Or(ev.Note, "no validators"))
	}
	for _, r := range ev.Results[:min(len(ev.Results), 50)] {
		switch {
		case r.Skipped:
			line += "  – " + r.Name + " skipped"
		case r.Passed:
			line += "  ✓ " + r.Name
		default:
			line += "  ✕ " + joined(": ", r.Name, text.FailingLine(deref(r.Output)))
		}
	}
	return style, line
}

// membersLine lists the members of an event that has no line of its own.
func membersLine(payload []byte) string {
	var b strings.Builder
	eachMember(payload, func(key string, v gjson.Result) bool {
		if b.Len() > 0 {
			b.WriteString("  ")
		}
		b.WriteString(key + "=" + text.HeadBytes(v.String(), maxLine))
		return b.Len() < maxLine
	})
	return b.String()
}

// eachMember hands fn the members of a payload that are not shown everywhere.
func eachMember(payload []byte, fn func(key string, v gjson.Result) bool) {
	gjson.ParseBytes(payload).ForEach(func(key, value gjson.Result) bool {
		switch key.Str {
		case "task_id", "trace_id", "span_id", "iter":
			return true
		}
		return fn(key.Str, value)
	})
}

// joined is the parts that are not empty.
func joined(between string, parts ...string) string {
	kept := parts[:0]
	for _, p := range parts {
		if p != "" {
			kept = append(kept, p)
		}
	}
	return strings.Join(kept, between)
}

// deref is what a member says that may be null.
func deref[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}
